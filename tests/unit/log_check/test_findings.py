"""What a finding says: where it stands, what else has to do with it, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import PartitionReport, Verdict
from sharestate.log_check.budget import Budget
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import HandMadeLife, begun_in_the_middle, thrown

FILE: Final = "history.jsonl"
FIRST_LINE: Final = 2
"""The first line of a history is its header."""


def checked(
    life: HandMadeLife, lacks: frozenset[str] = frozenset(), budget: Budget | None = None, *, has_source: bool = True
) -> PartitionReport:
    """Return the report on a life, whose events may not say where they come from."""
    if not has_source:
        life.events = [event._replace(source_file=None, source_line=None) for event in life.events]
    own = [*enumerate(life.events, FIRST_LINE)]
    return check_partition(life.events[0].key, own, FILE, Header(order=Order.ARRIVAL, lacks=lacks), budget).report


def begun() -> HandMadeLife:
    """Return a life with the events 0 to 3: a member holds four records."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    return life


# ---- where


def acquired_twice() -> HandMadeLife:
    """Return a life in which another member gets the records at once."""
    life = begun()
    life.fetches(300, 2, "m2", 1, (0, 3, 2))
    return life


def never_read() -> HandMadeLife:
    """Return a life whose state was never read."""
    life = HandMadeLife()
    life.appends(1, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    return life


def sent_twice() -> HandMadeLife:
    """Return a life in which two fetches are there twice."""
    life = begun()
    life.fetches(100, 100, "m1", 2)
    life.fetches(300, 100, "m1", 3)
    for event in life.events[-2:]:
        seq = len(life.events)
        life.events.append(event._replace(seq=seq, source_line=seq + 1))
    return life


def locked_otherwise() -> HandMadeLife:
    """Return a life in which the second of three fetches was answered with another lock duration."""
    life = begun()
    for number in (2, 3):
        life.fetches(100 * number, 90, "m1", number)
    life.events[-2] = life.events[-2]._replace(response={"acquired": (), "lock_ms": 7_000})
    return life


def never_written() -> HandMadeLife:
    """Return a life with three acknowledgements, of which the last one was not written, and which goes on for long."""
    life = begun()
    for number, (first, last) in enumerate(((0, 1), (2, 2), (3, 3))):
        life.acknowledges(30 + 50 * number, 5, "m1", 2 + number, (first, last, 1), None)
        if last < 3:
            life.writes(
                31 + 50 * number, 101 + number, (0, last + 1), *((each, each, 2, 1) for each in range(first, last + 1))
            )
    for number in range(5):
        life.fetches(2_000 * (1 + number), 100, "m1", 5 + number)
    return life


PLACES: Final = {
    acquired_twice: (Verdict.CONTRADICTION, 4, []),
    begun_in_the_middle: (Verdict.NOT_CHECKED, 2, []),
    never_read: (Verdict.NOT_CHECKED, 0, []),
    sent_twice: (Verdict.CONTRADICTION, 6, [4, 7]),
    locked_otherwise: (Verdict.CONTRADICTION, 4, []),
    thrown: (Verdict.KAFKA_DEFECT, 9, []),
    never_written: (Verdict.CONTRADICTION, 7, [8]),
}
"""The verdict on each of these lives, which event it is about, and which others it names."""


@pytest.mark.parametrize("has_source", [True, False])
@pytest.mark.parametrize("made", PLACES)
def test_a_finding_names_the_lines_of_its_events(made: Callable[[], HandMadeLife], *, has_source: bool) -> None:
    """In the request log; in the history if that does not say where an event comes from."""
    verdict, index, others = PLACES[made]

    (finding,) = checked(made(), has_source=has_source).findings

    file, first_line = ("request.log", 1) if has_source else (FILE, FIRST_LINE)
    places = [(place.file, place.line) for place in (finding.place, *finding.other_places)]
    assert (finding.verdict, finding.event.seq) == (verdict, index)
    assert places == [(file, first_line + each) for each in (index, *others)]


@pytest.mark.parametrize("kind", ["log", "write", "initialize"])
def test_what_a_history_lacks_is_said_at_its_first_event(kind: str) -> None:
    """None of its events is checked then."""
    report = checked(acquired_twice(), lacks=frozenset({kind}), has_source=False)

    (finding,) = report.findings
    assert (finding.verdict, finding.place.line) == (Verdict.NOT_CHECKED, FIRST_LINE)
    assert finding.reason == f"the history lacks events of the kind {kind}"
    assert report.not_checked == report.events == 5


# ---- why


@pytest.mark.parametrize("others", [0, 1, 2, 3])
def test_how_far_other_orders_got_is_said(others: int) -> None:
    """
    A fetch has acquired what is locked, and so many fetches without records may have come before it instead.

    Nothing is proved, as it may have acquired more than 4,095 records of another partition.
    """
    life = begun()
    life.fetches(300, 50, "m2", 1, (0, 3, 2))
    request = {**(life.events[-1].request or {}), "max_records": 5_000, "partitions": 2, "others": (4_096,)}
    life.events[-1] = life.events[-1]._replace(request=request)
    for number in range(others):
        life.fetches(355 + 5 * number, 2, f"m{3 + number}", 1)

    (finding,) = checked(life).findings

    assert finding.verdict is Verdict.BOUND_REACHED
    assert finding.reason.endswith(f" orders were tried, the furthest explains {others} steps more")


@pytest.mark.parametrize("work", [1_000, 2_000, 3_000])
def test_what_was_explained_before_the_budget_was_spent_is_counted(work: int) -> None:
    """Each fetch has acquired a record, until the one at which there is nothing left to spend."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for offset in range(30):
        life.appends(50 + 50 * offset, offset, offset)
        life.fetches(60 + 50 * offset, 2, "m1", 1 + offset, (offset, offset, 1))

    report = checked(life, budget=Budget(work))

    (finding,) = report.findings
    assert finding.verdict is Verdict.BOUND_REACHED
    before = sum(event.kind == "fetch" for event in life.events[: finding.event.seq])
    assert before > 5
    assert report.explained.fetches_with_records in {before - 1, before}  # the last step may be given up, too
