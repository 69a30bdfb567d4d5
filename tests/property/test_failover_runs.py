"""
What a new leader reads, after anything that may happen to the writes of the leaders before it.

`make failover` tries more of the runs; those of seed N are the same ones every time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, Amendment, InMemoryPersister, KipWritePolicy, Persister, Profile
from sharestate.coordinator import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    CoordinatorConfig,
    CoordinatorProfile,
    MemoryLog,
)
from sharestate.persister import CoordinatorPersister, Parameters, SqlitePersister, WriteStateParameters
from sharestate.testing.persisters.failover_runs import (
    Connect,
    FailoverRun,
    FailoverStep,
    WriteDelivery,
    failure,
    fewest_steps,
    in_memory,
    random_steps,
    search,
)
from tests.support.failover_runs import FAILED_BUT_APPLIED, FAILED_BUT_APPLIED_WITH_A_BOUND, OVERTAKEN, seeds

CONFIG: Final = CoordinatorConfig(updates_per_snapshot=3)

every_policy = pytest.mark.parametrize("profile", [KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
in_4_2_and_4_3 = pytest.mark.parametrize("rules", [COORDINATOR_4_2, COORDINATOR_4_3], ids=lambda rules: rules.name)


def in_log(rules: CoordinatorProfile) -> Connect:
    """Return how to connect to persisters over a new log in memory, each leader to one of its own."""
    return partial(CoordinatorPersister, MemoryLog(), profile=rules, config=CONFIG)


def in_file(rules: CoordinatorProfile, path: Path) -> Connect:
    """Return how to open a new file in *path*, for each leader again; it is closed before."""
    file = path / f"{len(list(path.glob('*.db')))}.db"
    opened: list[SqlitePersister] = []

    def connect() -> Persister:
        while opened:
            opened.pop().close()
        opened.append(SqlitePersister(file, profile=rules, config=CONFIG))
        return opened[0]

    return connect


def following(policy: KipWritePolicy) -> Profile:
    """Return the KIP's profile with another write policy."""
    return evolve(KIP_932, write_policy=policy)


def first_failure(
    profile: Profile, rules: CoordinatorProfile, delivery: WriteDelivery = WriteDelivery.LATE, usual: int = 200
) -> str | None:
    """Return what goes wrong first with a persister in memory, and how; None if nothing does."""
    return search(lambda: FailoverRun(profile, in_memory(rules), delivery=delivery), seeds(usual))


def steps_of(seed: int) -> list[FailoverStep]:
    """Return the steps of the run of *seed*."""
    return random_steps(Random(seed))  # noqa: S311 - a replayable run


def first_fault(profile: Profile, rules: CoordinatorProfile, delivery: WriteDelivery) -> str | None:
    """Return what goes wrong first where something has to: nobody wants to see its fewest steps."""
    return next(
        (
            fault
            for seed in seeds(200)
            if (fault := failure(lambda: FailoverRun(profile, in_memory(rules), delivery=delivery), steps_of(seed)))
        ),
        None,
    )


# ---- by the rules of Kafka 4.4


@every_policy
def test_nothing_confirmed_is_lost_or_comes_back(profile: Profile) -> None:
    """
    Whatever becomes of writes and leaders, what is stored is true, and every record is done in the end.

    Writes fail, are late, overtake each other, come twice and lose their answers; leaders crash.
    """
    assert first_failure(profile, COORDINATOR_4_4, usual=400) is None


@every_policy
def test_nor_with_a_log_that_each_leader_loads(profile: Profile) -> None:
    """Neither by what a share coordinator finds that loads its log anew for each leader."""
    assert search(lambda: FailoverRun(profile, in_log(COORDINATOR_4_4)), seeds(100)) is None


@every_policy
def test_nor_with_a_file_that_each_leader_opens(profile: Profile, tmp_path: Path) -> None:
    """Neither by what is in a file that is closed and opened for each leader."""
    assert search(lambda: FailoverRun(profile, in_file(COORDINATOR_4_4, tmp_path)), seeds(15)) is None


# ---- by the rules of Kafka 4.2 and 4.3


@in_4_2_and_4_3
@pytest.mark.parametrize("bound", [None, 3])
def test_the_policy_of_the_kip_takes_writes_in_any_order(rules: CoordinatorProfile, bound: int | None) -> None:
    """By the KIP's policy a write may overtake others that are unanswered: what is stored stays true."""
    assert first_failure(following(KipWritePolicy(bound=bound)), rules, WriteDelivery.OVERTAKING) is None


@in_4_2_and_4_3
@pytest.mark.parametrize(("bound", "steps"), [(None, FAILED_BUT_APPLIED), (3, FAILED_BUT_APPLIED_WITH_A_BOUND)])
def test_a_start_offset_that_may_be_stored_is_not_taken_back(
    rules: CoordinatorProfile, bound: int | None, steps: list[FailoverStep]
) -> None:
    """The write of the KIP's policy that carried it has failed, and was applied all the same."""
    profile = following(KipWritePolicy(bound=bound))

    assert failure(lambda: FailoverRun(profile, in_memory(rules), delivery=WriteDelivery.OVERTAKING), steps) is None


@pytest.mark.parametrize(("profile", "expected"), [(KAFKA_4_4, "104 is never terminal"), (KAFKA_4_4.healed, None)])
def test_what_is_archived_in_memory_only_is_never_terminal(profile: Profile, expected: str | None) -> None:
    """A lock that expires during a write that then fails may archive a record without a write (B15), until healed."""
    steps = [
        FailoverStep("fetch", (0, 3, 0)),
        FailoverStep("fetch", (2, 0, 0)),
        FailoverStep("release", (2, 0, 0)),
        FailoverStep("answer", (0, 0, 0)),
        FailoverStep("fetch", (0, 0, 0)),
        FailoverStep("move_log_start", (4, 0, 0)),
        FailoverStep("acknowledge", (0, 0, 1)),
        FailoverStep("crash", (1, 0, 0)),
        FailoverStep("fetch", (0, 0, 0)),
        FailoverStep("pass_time", (39, 0, 0)),
        FailoverStep("acknowledge", (0, 0, 0)),
        FailoverStep("pass_time", (62, 0, 0)),
        FailoverStep("answer", (0, 2, 0)),
    ]

    assert failure(lambda: FailoverRun(profile, in_memory()), steps) == expected


@pytest.mark.parametrize("amendment", Amendment)
def test_no_amendment_can_be_left_out(amendment: Amendment) -> None:
    """Without any one of them some run loses a record, brings one back, or forgets a delivery."""
    policy = KipWritePolicy(amendments=frozenset(Amendment) - {amendment})

    assert first_fault(following(policy), COORDINATOR_4_3, WriteDelivery.OVERTAKING) is not None


@in_4_2_and_4_3
def test_brokers_writes_are_true_as_long_as_none_overtakes_another(rules: CoordinatorProfile) -> None:
    """They carry a start offset each, so an earlier one that comes late moves the stored one back."""
    assert first_failure(KAFKA_4_3.healed, rules, WriteDelivery.IN_ORDER) is None
    assert "comes back" in str(first_fault(KAFKA_4_3.healed, rules, WriteDelivery.OVERTAKING))


@in_4_2_and_4_3
@every_policy
def test_a_write_that_comes_twice_brings_records_back(profile: Profile, rules: CoordinatorProfile) -> None:
    """By either policy: the start offset of a write that was answered long ago replaces a higher one."""
    assert "comes back" in str(first_fault(profile, rules, WriteDelivery.LATE))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [(COORDINATOR_4_2, "100 comes back"), (COORDINATOR_4_3, "100 comes back"), (COORDINATOR_4_4, None)],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("connect", [in_memory, in_log, in_file])
def test_f3(connect: Callable[..., Connect], rules: CoordinatorProfile, expected: str | None, tmp_path: Path) -> None:
    """A write that is overtaken takes the stored start offset back, through every persister, until Kafka 4.4 (F3)."""
    place = [tmp_path] if connect is in_file else []
    found = failure(
        lambda: FailoverRun(KAFKA_4_3, connect(rules, *place), delivery=WriteDelivery.OVERTAKING), OVERTAKEN
    )

    assert found == expected


def test_a_run_is_shown_in_its_fewest_steps() -> None:
    """Of steps that do not lead to a fault none is left, and numbers are as low as they can be."""

    def begin() -> FailoverRun:
        return FailoverRun(KAFKA_4_3, in_memory(COORDINATOR_4_3), delivery=WriteDelivery.OVERTAKING)

    more = [FailoverStep("pass_time", (1, 0, 0)), *OVERTAKEN, FailoverStep("fetch", (5, 5, 5))]
    fewest = fewest_steps(begin, more)

    assert failure(begin, fewest) is not None
    assert all(failure(begin, fewest[:index] + fewest[index + 1 :]) is None for index in range(len(fewest)))
    assert {step.kind for step in fewest} == {"fetch", "acknowledge", "answer"}
    assert sum(sum(step.numbers) for step in fewest) < sum(sum(step.numbers) for step in OVERTAKEN)


# ---- persisters that do not keep what they have confirmed


class Faulty(InMemoryPersister):
    """A persister that applies something else."""

    def instead(self, request: WriteStateParameters) -> WriteStateParameters | None:
        """Return what is applied instead of *request*, or None for nothing."""
        raise NotImplementedError

    def _apply(self, request: Parameters[Any, Any]) -> Any:  # noqa: ANN401 - as the request
        applied = self.instead(request) if isinstance(request, WriteStateParameters) else request
        return request.failed(0) if applied is None else super()._apply(applied)


class LosesTheSeventh(Faulty):
    """Every seventh write is confirmed and not stored."""

    def instead(self, request: WriteStateParameters) -> WriteStateParameters | None:
        """Return *request* six times of seven."""
        return request if len(self.requests) % 7 else None


class FencesNobody(Faulty):
    """A write of any leader is taken."""

    def instead(self, request: WriteStateParameters) -> WriteStateParameters:
        """Return *request* with the highest of all leader epochs."""
        (topic,) = request.topics
        entries = tuple(evolve(entry, leader_epoch=2**31 - 1) for entry in topic.partitions)
        return evolve(request, topics=(evolve(topic, partitions=entries),))


class ForgetsCounts(Faulty):
    """Delivery counts are stored as 1."""

    def instead(self, request: WriteStateParameters) -> WriteStateParameters:
        """Return *request* with delivery counts of 1."""
        (topic,) = request.topics
        entries = tuple(
            evolve(entry, state_batches=[batch._replace(delivery_count=1) for batch in entry.state_batches])
            for entry in topic.partitions
        )
        return evolve(request, topics=(evolve(topic, partitions=entries),))


class JumpsAhead(Faulty):
    """A start offset is stored one too high."""

    def instead(self, request: WriteStateParameters) -> WriteStateParameters:
        """Return *request* with the next start offset."""
        (topic,) = request.topics
        entries = tuple(evolve(entry, start_offset=entry.start_offset + 1) for entry in topic.partitions)
        return evolve(request, topics=(evolve(topic, partitions=entries),))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LosesTheSeventh, "comes back"),
        (FencesNobody, "a write of an earlier leader was answered"),
        (ForgetsCounts, "is forgotten"),
        (JumpsAhead, "is lost"),
    ],
)
def test_a_persister_that_does_not_keep_its_word_is_found(kind: type[Faulty], expected: str) -> None:
    """Within a hundred runs, of which the few steps are shown that lead to it."""

    def begin() -> FailoverRun:
        persister = kind()
        return FailoverRun(KAFKA_4_4, lambda: persister)

    assert expected in str(search(begin, range(100)))


def test_a_shown_run_can_be_run_again() -> None:
    """The steps that are shown are Python, and fail again with the same message."""

    def begin() -> FailoverRun:
        persister = JumpsAhead()
        return FailoverRun(KAFKA_4_4, lambda: persister)

    message, _, steps = str(search(begin, range(100))).partition(", seed")
    shown = steps.partition("\n")[2]

    assert failure(begin, eval(shown, {"FailoverStep": FailoverStep})) == message  # noqa: S307 - our own output
