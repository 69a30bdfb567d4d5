"""What is fitted to a history of a broker is what was done to it; what the history does not show is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from sharestate import AcknowledgementBatch, AcquiredRecords, AcquireMode
from sharestate.cli.commands import sharestate
from sharestate.errors import HistoryError
from sharestate.explain import PartitionLife, Survey
from sharestate.history import AppendedBatch, Event, Header, Order, create_history
from sharestate.simulate import Acknowledging, Empirical, LogNormal, RecordedArrival, fit, fit_lines, simulate
from sharestate.simulate.seen import SeenGroup, Turns
from tests.support.hand_made_stories import RELEASE, Story

DATA: Final = Path(__file__).parents[2] / "data"
TWO: Final = DATA / "simulate/two-loads.jsonl.gz"
"""Two loads on a broker of 4.4.0, carried out by tests/broker/measured_loads: see tests/data/README.md."""

KEY: Final = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)


def test_a_load_of_a_broker_is_found_again() -> None:
    """Members, polls, lock, batches, and the times that were drawn: lognormal, 45 ms in the middle, sigma 0.7."""
    load = fit(TWO, group="load-0").load

    assert (load.members, load.poll_records, load.max_wait_ms, load.producer_batch) == (4, 20, 100, 20)
    assert (load.lock_duration_ms, load.delivery_count_limit) == (1_000, 5)
    assert (load.acquire_mode, load.acknowledging) == (AcquireMode.BATCH_OPTIMIZED, Acknowledging.EACH_POLL)
    assert isinstance(load.arrival, RecordedArrival)
    assert sum(size for _, _, size in load.arrival.batches) == load.records == 400
    assert isinstance(load.processing, LogNormal)
    assert load.processing.mean_ms() == pytest.approx(LogNormal(45, 0.7).mean_ms(), rel=0.1)
    assert (load.failure_rate, load.reject_rate, load.poison_rate, load.crash_rate) == (0, 0, 0, 0)


def test_times_of_single_records_are_taken_as_they_are() -> None:
    """Where each record has a request of its own, its time is known: exponential, 60 ms on average."""
    load = fit(TWO, group="load-1").load

    assert (load.members, load.acquire_mode) == (5, AcquireMode.RECORD_LIMIT)
    assert load.acknowledging is Acknowledging.EACH_RECORD
    assert isinstance(load.processing, Empirical)
    assert load.processing.mean_ms() == pytest.approx(60, rel=0.1)


@pytest.mark.parametrize("group", ["load-0", "load-1"])
def test_what_is_simulated_is_what_was_seen(group: str) -> None:
    """The history's duplicates and expired locks are within those of several seeds, or 15 % of them."""
    fitted = fit(TWO, group=group)

    results = [simulate(fitted.load, seed) for seed in range(5)]

    for measure in ("duplicates", "expired", "throughput"):
        values = [getattr(result, measure) for result in results]
        assert min(values) * 0.85 <= fitted.observed[measure] <= max(values) * 1.15, measure
    assert fitted.observed["accepted"] == 400


@pytest.mark.parametrize("group", ["load-0", "load-1"])
def test_what_was_seen_is_what_explanations_count(group: str) -> None:
    """Records that were delivered again, and those lost to expired locks, are those of ``history explain``."""
    observed = fit(TWO, group=group).observed
    survey = Survey(TWO)
    keys = [key for key in survey.keys if key[0] == group]
    (life,) = survey.lives(keys, PartitionLife).values()
    overview = life.overview()

    assert observed["expired"] == sum(records for _, records in overview.expiries)
    assert observed["expired"] == observed["duplicates"]  # nothing else has made records available again


def test_what_is_not_known_is_assumed() -> None:
    """Settings that the log does not have, and waits that cannot be told from processing."""
    fitted = fit(TWO, group="load-0")

    assert {each.setting for each in fitted.assumed} == {"max_record_locks", "retry_backoff_ms"}
    assert {each.setting for each in fitted.known}.isdisjoint(each.setting for each in fitted.assumed)
    lines = "\n".join(fit_lines(fitted))
    assert "lock_duration_ms      1s: the settings in the history" in lines
    assert "max_record_locks      2,000: the history has no such setting: Kafka's default" in lines


def test_which_group_has_to_be_said() -> None:
    """A history of two groups, one that is not there, and one in order of arrival are refused."""
    with pytest.raises(HistoryError, match="2 groups are in it; choose one: load-0, load-1"):
        fit(TWO)
    with pytest.raises(HistoryError, match="nothing was delivered to the group other"):
        fit(TWO, group="other")


def test_order_of_arrival_is_refused(tmp_path: Path) -> None:
    """Nothing can be computed from a history that was not verified."""
    with create_history(tmp_path / "a.jsonl", Header(order=Order.ARRIVAL)) as file:
        file.write([])

    with pytest.raises(HistoryError, match="order of arrival"):
        fit(tmp_path / "a.jsonl")


# ---- by hand


def happened(*events: tuple[str, int, dict[str, Any] | None, dict[str, Any] | None]) -> list[Event]:
    """Return events of one member, with times in milliseconds."""
    made = [
        Event.of(KEY, seq, kind, at_us=at_ms * 1000, member_id="m1", request=request, response=response)
        for seq, (kind, at_ms, request, response) in enumerate(events)
    ]
    return [event._replace(done_us=(event.at_us or 0) + 2000, connection="c", request_no=event.seq) for event in made]


READ: Final = {"state_epoch": 0, "start_offset": 0, "state_batches": []}


def written(path: Path, events: list[Event], *lacks: str) -> Path:
    """Write a history, and return where it is."""
    with create_history(path, Header(lacks=frozenset({"expire", "write", *lacks}))) as file:
        file.write(events)
    return path


def test_failures_by_hand(tmp_path: Path) -> None:
    """Of ten records two were released, one of them to the end, one was rejected, and seven were accepted at once."""

    def got(at_ms: int, *ranges: tuple[int, int, int]) -> tuple[str, int, dict[str, Any], dict[str, Any]]:
        return "fetch", at_ms, {"max_records": 10}, {"acquired": [AcquiredRecords(*each) for each in ranges]}

    def gave(at_ms: int, *ranges: tuple[int, int, int]) -> tuple[str, int, dict[str, Any], dict[str, Any]]:
        batches = [AcknowledgementBatch(first, last, (kind,)) for first, last, kind in ranges]
        return "acknowledge", at_ms, {"batches": batches}, {}

    config = {"delivery_count_limit": 2, "record_lock_duration_ms": 15_000, "profile": "kafka-4.3"}
    events = happened(
        ("config", 0, config, None),
        ("log", 0, {"batches": [AppendedBatch(0, 9)]}, None),
        ("initialize", 0, None, READ),
        got(100, (0, 9, 1)),
        gave(202, (0, 6, 1), (7, 7, 3), (8, 9, 2)),
        got(205, (8, 9, 2)),
        gave(227, (8, 8, 1), (9, 9, 2)),
        ("fetch", 230, {"max_records": 10, "max_wait_ms": 300}, {"acquired": []}),
    )

    fitted = fit(written(tmp_path / "a.jsonl", events))
    load = fitted.load

    assert fitted.observed["deliveries"] == 12
    assert fitted.observed["duplicates"] == 2
    assert fitted.observed["archived_at_limit"] == 1
    assert (load.poison_rate, load.reject_rate) == (0.1, 0.1)  # 9 of ten records; 7 of the ten other acknowledgements
    assert load.failure_rate == 0.1
    assert (load.request_ms, load.state_write_ms, load.max_wait_ms) == (1, 2, 300)
    assert load.processing.mean_ms() == pytest.approx((100 - 1 + 20 - 1) / 12, abs=0.01)
    assert load.profile.name == "kafka-4.3"


def test_one_is_not_several(tmp_path: Path) -> None:
    """What is said of one record, fetch or session is in the singular."""
    story = Story(log=1)
    story.fetch("m1", 1)
    story.wait(0.1)
    story.say("m1", RELEASE, (0, 0))
    said = "\n".join(fit_lines(fit(story.save(tmp_path / "a.jsonl"))))

    assert "1 was released of 1 acknowledged record, and accepted later or not yet" in said
    assert "0 of 1 record were released to the end" in said
    assert "half of the requests acknowledge up to 1 record" in said
    assert not re.search(r"\b1 (records|fetches|requests|times|members|deliveries)\b", said)


def test_turns_of_a_member() -> None:
    """Requests of several partitions are one; a fetch follows an acknowledgement after a while."""
    seen = SeenGroup("g", lacks=frozenset())
    member = seen.member("m1", 0, 10)
    turns = Turns()
    member.add_turns(turns)

    assert (turns.requests, turns.idle_us) == ([], [])
    assert (member.first_us, member.last_us) == (0, 10)


def test_random_members_of_a_broker(tmp_path: Path) -> None:
    """A history of a broker whose members do anything is fitted, and what is not simulated is noted."""
    run = DATA / "broker-log/k440-busy"
    arrival, history = tmp_path / "arrival.jsonl", tmp_path / "history.jsonl"
    settings = ("--segments", run / "segments", "--config", run / "server.properties", "-o", arrival)
    for arguments in (("import", run / "request.log.gz", *settings), ("verify", arrival, "-o", history)):
        assert CliRunner().invoke(sharestate, ["log", *map(str, arguments)]).exit_code == 0

    fitted = fit(history)

    assert fitted.load.renew_interval_ms > 0
    assert 0 < fitted.load.failure_rate < 1
    assert fitted.notes == (
        "4 deliveries without an acknowledgement: how long the processing took is not known.",
        "Markers, gaps or aborted: 15 records; simulated ones are all there.",
    )
    assert simulate(fitted.load).ended == "done"
