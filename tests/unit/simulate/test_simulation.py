"""Simulations give what follows from the rules by arithmetic, from queueing theory, and from what is conserved."""

from __future__ import annotations

import math

import attrs
import pytest

from sharestate import KAFKA_4_4, PROFILES, AcquireMode, MalformedInputError
from sharestate.simulate import (
    Acknowledging,
    Bursts,
    Constant,
    ConstantRate,
    Exponential,
    Load,
    LogNormal,
    Poisson,
    RecordedArrival,
    SimulationResult,
    simulate,
    simulation,
)
from sharestate.simulate.attempts import Attempts
from sharestate.simulate.broker import SimulatedPartition

POISON = Load(records=100, producer_batch=100, poison_rate=1.0)


@pytest.mark.parametrize(("limit", "fetches"), [(2, 2), (3, 102), (5, 105)])
def test_a_batch_that_always_fails(limit: int, fetches: int) -> None:
    """A batch of 100 that always fails takes a fetch a record at its last delivery, and pieces before (rule 20.3)."""
    result = simulate(attrs.evolve(POISON, delivery_count_limit=limit))

    assert (result.fetches, result.empty_fetches) == (fetches, 0)
    assert (result.deliveries, result.archived_at_limit, result.accepted) == (100 * limit, 100, 0)


def test_one_member_by_arithmetic() -> None:
    """What one member takes for a backlog is a sum: requests, processing and writes, one after the other."""
    load = Load(records=1000, processing=Constant(10), request_ms=2, state_write_ms=3)

    result = simulate(load)

    # Two polls of 500; each: fetch 2 ms, 500 times 10 ms, half of 2 ms to the broker, 3 ms for the write; between them
    # the other half of the acknowledgement.
    assert result.duration_ms == 2 * (2 + 5000 + 1 + 3) + 1
    assert (result.fetches, result.acknowledgements, result.state_writes) == (2, 2, 2)
    assert (result.throughput, result.utilization) == (round(1000 / 10.013, 3), round(10_000 / 10_013, 4))
    assert result.latency_p50_ms == 5006
    assert result.latency_max_ms == result.duration_ms


def test_each_record_in_a_request_of_its_own() -> None:
    """A member that acknowledges each record waits for each answer."""
    load = Load(records=10, acknowledging=Acknowledging.EACH_RECORD, request_ms=2, state_write_ms=3)

    result = simulate(load)

    assert result.duration_ms == 2 + 10 * 10 + 9 * 5 + 4
    assert (result.acknowledgements, result.state_writes) == (10, 10)


def test_a_lock_that_is_too_short() -> None:
    """A lock shorter than a poll takes expires for all of it each time, until throttled pieces are small enough."""
    load = Load(records=500, lock_duration_ms=4_000)  # a poll takes 5 s

    result = simulate(load)

    # Three deliveries of all 500; the fourth is of halves (rule 20.3), which take 2.5 s each.
    assert (result.deliveries, result.duplicates, result.expired) == (2000, 1500, 1500)
    assert (result.refused, result.wasted_ms, result.accepted) == (1500, 15_000, 500)


def test_what_expires_is_delivered_again() -> None:
    """Records whose acknowledgement is being written when their lock is due have not expired: no duplicate follows."""
    each = Acknowledging.EACH_RECORD
    load = Load(records=400, processing=Exponential(50), poll_records=20, producer_batch=20, lock_duration_ms=900)

    result = simulate(attrs.evolve(load, members=5, acknowledging=each, state_write_ms=20))

    assert (result.archived_at_limit, result.left) == (0, 0)
    assert result.expired == result.duplicates > 0


def test_renewed_locks_do_not_expire() -> None:
    """The same with renewals every second: nothing expires."""
    result = simulate(Load(records=500, lock_duration_ms=4_000, renew_interval_ms=1_000))

    assert (result.deliveries, result.expired, result.renewals) == (500, 0, 4)  # after 5 s all is acknowledged


def test_record_limit_gives_no_more_than_asked_for() -> None:
    """With a limit of records a poll is no larger than asked for, else it ends with a batch of the log."""
    strict = simulate(Load(records=1000, poll_records=30, acquire_mode=AcquireMode.RECORD_LIMIT))
    whole = simulate(Load(records=1000, poll_records=30))

    assert (strict.fetches, whole.fetches) == (34, 10)


def test_as_a_queue_with_one_server() -> None:
    """Poisson arrivals at one member with exponential times wait as long as in an M/M/1 queue."""
    load = Load(
        records=6_000,
        producer_batch=1,
        poll_records=1,
        arrival=Poisson(50),
        processing=Exponential(10),
        request_ms=0.02,
        state_write_ms=0,
    )

    result = simulate(load, seed=3)

    mean_ms = 1000 / (100 - 50)
    assert result.latency_p50_ms == pytest.approx(mean_ms * math.log(2), rel=0.08)  # sojourn times are exponential
    assert result.latency_p95_ms == pytest.approx(mean_ms * math.log(20), rel=0.08)
    assert result.utilization == pytest.approx(0.5, rel=0.05)


def test_crashes_release_what_is_held() -> None:
    """What a member held that has crashed is delivered again at once, before its lock expires."""
    load = Load(records=5_000, members=4, crash_rate=0.002, restart_ms=100, poll_records=50, producer_batch=50)

    result = simulate(load)

    assert (result.crashes > 0, result.expired) == (True, 0)
    assert 0 < result.duplicates <= 50 * result.crashes


LOADS = (
    Load(records=3_000, members=5, partitions=3, arrival=Poisson(400), failure_rate=0.1, reject_rate=0.02),
    Load(records=600, members=3, crash_rate=0.01, processing=LogNormal(5, 1.5), lock_duration_ms=1_000),
    Load(records=3_000, members=2, partitions=4, poison_rate=0.01, arrival=Bursts(500, 2_000), poll_records=20),
    Load(
        records=2_000,
        members=3,
        acknowledging=Acknowledging.EACH_RECORD,
        processing=Exponential(20),
        lock_duration_ms=2_000,
        retry_backoff_ms=50,
        failure_rate=0.05,
        renew_interval_ms=700,
        acquire_mode=AcquireMode.RECORD_LIMIT,
        dead_letter_queue=True,
        max_record_locks=150,
        arrival=ConstantRate(100),
    ),
)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", ["kafka-4.2", "kafka-4.4-healed"])
def test_what_is_conserved(load: Load, name: str) -> None:
    """Nothing is left, what is delivered has become something, and equal seeds give equal results."""
    profile = PROFILES[name]
    load = attrs.evolve(
        load, profile=profile, dead_letter_queue=load.dead_letter_queue and profile.has_dead_letter_queue
    )

    result = simulate(load, seed=7)

    assert (result.ended, result.left) == ("done", 0)
    assert result.accepted + result.archived_at_limit + result.rejected == load.records
    assert result.deliveries - result.duplicates == load.records
    assert result.in_flight_max <= load.max_record_locks + load.poll_records + load.producer_batch
    assert result.deliveries <= load.records * load.delivery_count_limit
    assert 0 < result.utilization <= 1
    assert result.wasted_ms <= result.processing_ms
    assert simulate(load, seed=7) == result != simulate(load, seed=8)


@pytest.mark.parametrize("load", LOADS[:3])
def test_what_is_accepted_as_a_whole_is_as_if_one_by_one(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range of which every record is accepted is processed at once, and that changes nothing."""
    few = attrs.evolve(load, records=300)
    at_once = simulate(few, seed=7)
    monkeypatch.setattr(Attempts, "all_accepted_us", lambda *_: None)

    assert simulate(few, seed=7) == at_once


def test_dead_letters_are_those_that_are_given_up() -> None:
    """With a dead-letter queue each record that is archived at the limit goes there, and none without."""
    load = attrs.evolve(POISON, profile=KAFKA_4_4)

    assert simulate(load).dead_letters == 0
    assert simulate(attrs.evolve(load, dead_letter_queue=True)).dead_letters == 100


def test_recorded_arrivals_come_when_they_came() -> None:
    """Batches of a recorded arrival are appended at their times to their partitions."""
    load = Load(
        partitions=2, members=2, arrival=RecordedArrival([(0, 0, 5), (1_000_000, 1, 7)]), processing=Constant(1)
    )

    result = simulate(load)

    assert (result.records, result.accepted) == (12, 12)
    assert 1_000 < result.duration_ms < 1_020


def test_more_members_than_partitions_share_them() -> None:
    """Members beyond the number of partitions take part, other than in consumer groups."""
    load = Load(records=10_000, poll_records=50, producer_batch=50, processing=Constant(20))

    one, four = simulate(load), simulate(attrs.evolve(load, members=4))

    assert four.throughput == pytest.approx(4 * one.throughput, rel=0.02)


def test_a_full_window_holds_up_members() -> None:
    """No more is in flight than the locks allow, rounded up to a batch: other members get nothing meanwhile."""
    load = Load(records=2_000, members=4, poll_records=100, max_record_locks=100, processing=Constant(5))

    result = simulate(load)

    assert result.in_flight_max == 100
    assert result.throughput == pytest.approx(simulate(attrs.evolve(load, members=1)).throughput, rel=0.02)


def test_how_simulations_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be had any more, where the time is over, and where too much happens, it ends, and says so."""
    load = Load(records=10)
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedPartition, "is_readable", lambda _: False)
        assert simulate(load).ended == "stalled"
    with monkeypatch.context() as patch:
        patch.setattr(simulation, "LONGEST_SIMULATED_MS", 50)
        assert simulate(load).ended == "time limit"
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedPartition, "is_readable", lambda _: True)
        patch.setattr(SimulatedPartition, "acquire", lambda *_: ())
        patch.setattr(simulation, "_SOME_STEPS", 100)
        assert (simulate(load).ended, simulate(load).left) == ("work limit", 10)


def test_progress_is_told() -> None:
    """Who watches is told how many records are behind the SPSO."""
    told: list[int] = []
    simulate(Load(records=5_000, acknowledging=Acknowledging.EACH_RECORD), watch=told.append)

    assert told == sorted(told)
    assert 0 < told[-1] <= 5_000


def test_results_have_a_form() -> None:
    """A result is read back from its JSON; one of another version is refused."""
    result = simulate(POISON)
    value = result.to_json()

    assert SimulationResult.from_json(value) == result
    assert value["latency_p50_ms"] is None
    with pytest.raises(MalformedInputError, match="result: expected version 1"):
        SimulationResult.from_json({**value, "result": 2})
