"""Segments that retention, DeleteRecords or compaction has changed while the request log was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sharestate.broker_log.changed_segments import ChangedSegments
from sharestate.history import Event
from sharestate.segments import LogBatch, LogReader
from tests.support.broker_logs import RUN
from tests.support.logged_requests import TOPIC, GivenRequests, unknown
from tests.support.segments import keep_batches

SOURCE = RUN / "segments" / "s1-0"
BATCHES = [(batch.first_offset, batch.last_offset) for batch in LogReader(SOURCE)][:12]
STARTS = [first for first, _ in BATCHES]
END = BATCHES[-1][1] + 1


def imported(
    tmp_path: Path, log: GivenRequests, keeps: Callable[[LogBatch], bool] = lambda _: True, begin: int = 0
) -> dict[str, list[str]]:
    """Return what is not known after an import with some batches of the log."""
    keep_batches(SOURCE, tmp_path / "t-0", lambda batch: batch.first_offset in STARTS and keeps(batch), begin)
    (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC}")
    return unknown(log.imported(tmp_path))


def with_fetches(*acquired: tuple[int, int, int]) -> GivenRequests:
    """Return requests that have read state at 0, and acquired ranges."""
    log = GivenRequests()
    log.read(by=1)
    for each in acquired:
        log.fetch(each)
    return log


def test_whole_segments_are_no_reason(tmp_path: Path) -> None:
    """What was produced and acquired is in them, also if producers are answered out of order, or once more."""
    log = with_fetches((0, STARTS[3] - 1, 1))
    for start in (*STARTS[2:8], STARTS[5], STARTS[4], *STARTS[8:]):
        log.produce("t", start)
    log.fetch((STARTS[3], END - 1, 1), epoch=1)

    assert imported(tmp_path, log) == {}


def test_segments_that_begin_after_what_was_produced(tmp_path: Path) -> None:
    """Retention or DeleteRecords has deleted it since; the reason has both offsets."""
    log = with_fetches()
    log.produce("t", STARTS[1])
    log.fetch()

    begin, lost = STARTS[4], STARTS[1]
    assert imported(tmp_path, log, begin=begin) == {
        TOPIC: [f"the segments begin at {begin}, and {lost} was produced while the log ran: retention or DeleteRecords"]
    }


def test_segments_that_begin_after_what_was_acquired(tmp_path: Path) -> None:
    """So is it with what a member has got, whoever has produced it."""
    log = with_fetches((0, STARTS[2] - 1, 1))

    assert imported(tmp_path, log, begin=STARTS[4]) == {
        TOPIC: [f"the segments begin at {STARTS[4]}, and 0 was acquired while the log ran: retention or DeleteRecords"]
    }


def test_share_partitions_beyond_what_is_lost_can_be_checked(tmp_path: Path) -> None:
    """One that began where segments are whole does not need the rest."""
    log = GivenRequests()
    log.read(by=1, start=STARTS[5])
    log.produce("t", STARTS[1])
    log.fetch((STARTS[5], STARTS[6] - 1, 1))

    assert imported(tmp_path, log, begin=STARTS[4]) == {}


@pytest.mark.parametrize("is_produced", [True, False])
def test_a_hole_where_something_was(tmp_path: Path, is_produced: bool) -> None:  # noqa: FBT001 - by pytest
    """Compaction has taken batches away that were produced, or acquired, while the log ran."""
    hole = BATCHES[3][0], BATCHES[4][1]
    log = with_fetches() if is_produced else with_fetches((hole[0], BATCHES[3][1], 1))
    if is_produced:
        log.produce("t", BATCHES[4][0])
        log.fetch()

    (reason,) = imported(tmp_path, log, lambda batch: batch.first_offset not in STARTS[3:5])[TOPIC]

    what = f"{BATCHES[4][0]} was produced" if is_produced else f"{hole[0]} was acquired"
    assert (
        reason == f"the segments have no batch {hole[0]}-{hole[1]} any more, and {what} while the log ran: compaction"
    )


def test_a_hole_from_before_is_no_reason(tmp_path: Path) -> None:
    """What was compacted before the log began, members have never got: they acquire it with what is around it."""
    log = with_fetches((0, END - 1, 1))
    log.produce("t", STARTS[9])

    assert imported(tmp_path, log, lambda batch: batch.first_offset not in STARTS[3:5]) == {}


@pytest.mark.parametrize("is_produced", [True, False])
def test_segments_that_end_before_something(tmp_path: Path, is_produced: bool) -> None:  # noqa: FBT001 - by pytest
    """They were copied while the log went on, in which something was produced, or acquired, that they have not."""
    log = with_fetches() if is_produced else with_fetches((END, END + 3, 1))
    if is_produced:
        log.produce("t", END)
        log.fetch()

    what = f"{END} was produced" if is_produced else f"{END} was acquired"
    assert imported(tmp_path, log) == {
        TOPIC: [f"the segments end at {END}, and {what} while the log ran: they were copied before that"]
    }


def test_a_batch_that_has_lost_records() -> None:
    """A batch keeps its offsets when compaction deletes records of it, and gets smaller: a producer's has all."""
    changes = ChangedSegments(0)
    changes.has_batch(0, 9, 10)
    changes.has_batch(10, 19, 3)
    changes.produced(0)
    changes.produced(10)

    assert changes.lost == (19, "the batch 10-19 has 3 records left: compaction; it was produced while the log ran")


def test_what_is_remembered_is_bounded() -> None:
    """Of a million batches the last ones are, and what was produced before them is not held against the segments."""
    changes = ChangedSegments(0)
    for offset in range(1_000_000):
        changes.has_batch(2 * offset, 2 * offset, 1)
        changes.acquired(4_000_000, 4_000_000)

    changes.produced(0)
    changes.produced(1_999_998)

    assert changes.lost is None
    assert all(len(getattr(changes, name)) <= 10_000 for name in ("_starts", "_holes", "_ahead"))


def test_no_event_is_added_if_nothing_is_lost() -> None:
    """A run of a broker whose segments are whole has nothing that is not known."""
    from sharestate.broker_log import LogImport, RequestLog, TopicLogs  # noqa: PLC0415

    events: list[Event] = list(LogImport(RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments")))

    assert unknown(events) == {}
