"""Timelines: what was true of which records, from when to when."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

from sharestate import AcknowledgementBatch, AcquiredRecords, Cause, RecordState
from sharestate.history import AppendedBatch, Event
from sharestate.report import PartitionTimeline
from tests.support.recorded_histories import KEY, LACKS, exchanges, history_of, recorded_runs

VECTORS = Path(__file__).parents[2] / "data" / "vectors"
CAUSES = [cause.value for cause in Cause]


def timeline_of(events: list[Event], kept: int = 1000) -> PartitionTimeline:
    """Return the timeline of *events*."""
    timeline = PartitionTimeline(KEY, lacks=LACKS, kept=kept)
    for event in events:
        timeline.apply(event)
    return timeline


def spans_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans with absolute numbers."""
    packed = columns["spans"] | {
        "first": list(accumulate(columns["spans"]["first"])),
        "begin": list(accumulate(columns["spans"]["begin"])),
    }
    return [dict(zip(packed, row, strict=True)) for row in zip(*packed.values(), strict=True)]


def small_history(at_s: tuple[float | None, ...] = (0, 1, 4)) -> list[Event]:
    """Return a history in which a member acquires 0-9 and accepts 0-4."""
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    fetch = {"fetch_offset": 0, "batches": (AppendedBatch(0, 9),)}
    got = {"acquired": (AcquiredRecords(0, 9, 1),)}
    accepted = {"batches": (AcknowledgementBatch(0, 4, (1,)),)}
    first, second, third = (None if each is None else int(each * 10**6) for each in at_s)
    return [
        Event.of(KEY, 0, "initialize", at_us=first, request={"leader_epoch": 1}, response=read),
        Event.of(KEY, 1, "fetch", at_us=second, member_id="m1", request=fetch, response=got),
        Event.of(KEY, 2, "acknowledge", at_us=third, member_id="m1", request=accepted, response={}),
    ]


def test_a_span_lasts_from_one_change_to_the_next() -> None:
    """What is acknowledged ends a span of its records only; what has not ended goes on to the last event."""
    columns = timeline_of(small_history()).reported().timeline

    spans = [(s["first"], s["size"], s["begin"], s["duration"], s["state"], s["ended"]) for s in spans_of(columns)]
    accepted = CAUSES.index("accepted")
    assert spans == [
        (0, 4, 1_000_000, 3_000_000, RecordState.ACQUIRED, accepted),
        (5, 4, 1_000_000, 3_000_000, RecordState.ACQUIRED, -1),
        (0, 4, 4_000_000, 0, RecordState.ACKNOWLEDGED, -1),
    ]
    assert (columns["is_timed"], columns["origin_us"], columns["duration_us"]) == (True, 0, 4_000_000)
    assert (columns["members"], columns["points"]["end"]) == (["m1"], [0, 9])


def test_what_goes_on_at_the_end_is_what_kafka_has() -> None:
    """The spans that have not ended are the records in flight that Kafka's class has at the end of a conversation."""
    for path in sorted((VECTORS / "found").glob("*.jsonl")):
        columns = timeline_of(history_of(path)).reported().timeline
        going_on = {
            offset: (span["state"], span["count"])
            for span in spans_of(columns)
            if span["ended"] == -1
            for offset in range(span["first"], span["first"] + span["size"] + 1)
        }
        recorded = {
            offset: (RecordState[name], count)
            for first, last, (name, count, *_) in recorded_runs(exchanges(path)[-1][1]["state"])
            for offset in range(first, last + 1)
        }

        assert going_on == recorded, path.stem


def test_a_new_leader_ends_what_it_has_not_read() -> None:
    """Acquisitions are not persisted: their spans end without a change when another leader has read the state."""
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    failover = Event.of(KEY, 3, "initialize", at_us=9_000_000, request={"leader_epoch": 2}, response=read)

    spans = spans_of(timeline_of([*small_history(), failover]).reported().timeline)

    assert {(span["begin"] + span["duration"], span["ended"]) for span in spans[1:]} == {(9_000_000, -2)}


def test_events_without_times_are_a_second_apart() -> None:
    """The axis counts events then, and the page is told so."""
    columns = timeline_of(small_history((None, None, None))).reported().timeline

    assert (columns["is_timed"], columns["duration_us"]) == (False, 2_000_000)
    assert [span["begin"] for span in spans_of(columns)] == [1_000_000, 1_000_000, 2_000_000]


def test_the_last_spans_are_kept() -> None:
    """Those that are dropped are counted; what goes on is there in any case."""
    columns = timeline_of(history_of(VECTORS / "section19/ex-19.B15.jsonl"), kept=1).reported().timeline

    assert columns["dropped"] > 0
    assert len(spans_of(columns)) == 1 + sum(span["ended"] == -1 for span in spans_of(columns))
