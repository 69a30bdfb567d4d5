"""States of a replay: it goes on from one as if it had not stopped, and what is none is refused."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import (
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquiredRecords,
    MalformedInputError,
    SnapshotError,
)
from sharestate.history import OUTPUTS, AppendedBatch, Event, OutputRow, Replay
from sharestate.history.synthetic import SyntheticHistory
from sharestate.json_lines import Json, read_json, write_json
from tests.support.replayed_life import CONFIG, KEY, LOCK_MS, NOTHING, Life


def refused(**changes: Json) -> SnapshotError:
    """Return the error with which a state is refused that has *changes*."""
    state = read_json(Replay(KEY).state())
    assert isinstance(state, dict)
    assert changes.keys() <= state.keys()
    with pytest.raises(SnapshotError) as caught:
        Replay.restore(write_json({**state, **changes}))
    return caught.value


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sharestate_replay":2}'])
def test_a_state_that_is_none_is_refused(text: str) -> None:
    """What is no state of a replay, or of another version, is refused."""
    with pytest.raises(SnapshotError):
        Replay.restore(text)


@pytest.mark.parametrize(
    ("snapshot", "field"), [("nonsense", "snapshot"), ("{}", "snapshot.sharestate_snapshot")], ids=["no JSON", "empty"]
)
def test_a_snapshot_that_is_none_is_named(snapshot: str, field: str) -> None:
    """With the field in it, if there is one."""
    assert refused(snapshot=snapshot).field == field


@pytest.mark.parametrize("count", [-1, 1.5, "1", None])
def test_a_count_that_cannot_be_is_named(count: Json) -> None:
    """There are no events, or more; not less than none."""
    assert refused(counts={"writes_failed": count}).field == "counts.writes_failed"


@pytest.mark.parametrize("cut", range(9))
def test_a_replay_goes_on_where_another_has_stopped(cut: int) -> None:
    """A replay that is restored after any event makes the rows that the first one would have made."""
    events: list[tuple[str, int, dict[str, Any] | None, dict[str, Any] | None]] = [
        ("config", 0, {"isolation": "read_committed", "auto_offset_reset": "earliest"}, None),
        (
            "log",
            0,
            {"batches": (AppendedBatch(0, 4, 9, transactional=True), AppendedBatch(5, 5, 9, None, "abort"))},
            None,
        ),
        ("log", 0, {"batches": (AppendedBatch(6, 9), AppendedBatch(10, 10, 8, transactional=True))}, None),
        ("initialize", 0, {"leader_epoch": 7}, {**NOTHING, "start_offset": -1}),
        ("fetch", 1, {}, {"acquired": (AcquiredRecords(5, 9, 1),)}),
        ("acknowledge", 2, {"batches": (AcknowledgementBatch(6, 9, (2,)),)}, {}),
        ("log", 3, {"batches": (AppendedBatch(11, 11, 8, None, "abort"),)}, None),
        ("fetch", 4, {}, {"acquired": (AcquiredRecords(11, 11, 1),)}),
        ("close", LOCK_MS + 5, None, {}),
    ]

    def rows_of(replay: Replay, first: int, last: int) -> list[OutputRow]:
        rows = []
        for seq, (kind, at_ms, request, response) in list(enumerate(events))[first:last]:
            event = Event.of(KEY, seq, kind, at_us=at_ms * 1000, member_id="m1", request=request, response=response)
            rows += replay.apply(event)
        return rows

    everything = frozenset(OUTPUTS)
    whole = Replay(KEY, profile=KAFKA_4_3, config=CONFIG, outputs=everything)
    expected = rows_of(whole, 0, 9)
    first = Replay(KEY, profile=KAFKA_4_3, config=CONFIG, outputs=everything)
    earlier = rows_of(first, 0, cut)
    second = Replay.restore(first.state(), outputs=everything)

    assert earlier + rows_of(second, cut, 9) == expected
    assert second.finish() == whole.finish()


@pytest.mark.parametrize("every", [50, 189])
def test_ranges_do_not_show_where_a_replay_was_restored(every: int) -> None:
    """A replay that is restored again and again makes transitions of the same ranges as one that never was."""
    events = list(SyntheticHistory(share_partitions=1, events=800, seed=5))
    everything = frozenset(OUTPUTS)
    whole = Replay(events[0].key, outputs=everything)
    expected = [row for event in events for row in whole.apply(event)]

    replay = Replay(events[0].key, outputs=everything)
    rows = []
    for event in events:
        if event.seq % every == 0:
            replay = Replay.restore(replay.state(), outputs=everything)
        rows += replay.apply(event)

    assert rows == expected


def test_a_replay_that_has_too_much_in_flight_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have been refused at the next event, and so it is where another one goes on."""
    monkeypatch.setattr("sharestate.history.replay_budget.MOST_RECORDS", 1_000)
    life = Life()
    life.add("fetch", 0, {"fetch_offset": 0, "batches": (AppendedBatch(0, 17_384),), "max_records": 2**31 - 1})
    life.replay = Replay.restore(life.replay.state())

    with pytest.raises(MalformedInputError, match="more than 1000 records in flight"):
        life.add("config", 1, {})


def test_dead_letters_are_answered_after_a_replay_was_restored() -> None:
    """The queue was given records before; the answer comes to the replay that goes on."""
    life = Life(profile=KAFKA_4_4)
    life.add("config", 0, {"dlq_topic": "dlq"})
    life.fetch(0, 0, 0)
    life.acknowledge(1, 0, 0, 3)
    assert life.write(2, (0, 0, 3, 1)) == [("dead_letter", 0, 0, 1, "client_reject")]
    life.replay = Replay.restore(life.replay.state(), outputs=frozenset(OUTPUTS))

    letter = {"first": 0, "last": 0, "delivery_count": 1, "cause": "client_reject"}
    assert life.add("dead_letter", 3, letter)[0][0] == "write"
