"""What a finding says: where it stands, what else has to do with it, and why."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

import pytest

from sharestate.history import Event, Header, Order
from sharestate.log_check import PartitionReport, Place, Verdict
from sharestate.log_check.budget import Budget
from sharestate.log_check.verify import check_partition, repeated_requests
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


def written_otherwise() -> HandMadeLife:
    """Return a life in which the first write says that records were released, which were accepted."""
    life = begun()
    life.acknowledges(30, 5, "m1", 2, (0, 3, 1), None)
    life.writes(31, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(3_000, 100, "m1", 3)
    return life


def undecided() -> HandMadeLife:
    """Return a life with a fetch that has got nothing where there was something, and later one that contradicts."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(60, 2, "m1", 1)
    life.fetches(300, 2, "m2", 1, (0, 3, 1))
    life.fetches(600, 2, "m3", 1, (0, 3, 2))
    return life


def never_answered() -> HandMadeLife:
    """Return a life whose state could not be read, and so nothing was acquired."""
    life = HandMadeLife()
    life.reads(10, 100, None)
    life.appends(12, 0, 3)
    life.fetches(20, 100, "m1", 1)
    return life


PLACES: Final = {
    acquired_twice: (Verdict.CONTRADICTION, 4, []),
    begun_in_the_middle: (Verdict.NOT_CHECKED, 2, []),
    never_read: (Verdict.NOT_CHECKED, 0, []),
    never_answered: (Verdict.NOT_CHECKED, 0, []),
    sent_twice: (Verdict.CONTRADICTION, 6, [4, 7]),
    locked_otherwise: (Verdict.CONTRADICTION, 4, []),
    thrown: (Verdict.KAFKA_DEFECT, 9, []),
    never_written: (Verdict.CONTRADICTION, 7, [8]),
    written_otherwise: (Verdict.CONTRADICTION, 5, [4]),
    undecided: (Verdict.BOUND_REACHED, 5, [3]),
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


def test_half_a_place_is_none() -> None:
    """An event that says its file or its line only stands where the history has it."""
    event = begun().events[0]

    assert Place.of(event, FILE, 7) == ("request.log", 1)
    for part in (event._replace(source_file=None), event._replace(source_line=None)):
        assert Place.of(part, FILE, 7) == (FILE, 7)


def test_a_line_has_the_name_of_the_topic() -> None:
    """The history says it; a report has it beside the id."""
    life = acquired_twice()
    topic_id = life.events[0].topic_id
    header = Header(order=Order.ARRIVAL, topics={topic_id: "payments"})

    report = check_partition(life.events[0].key, [*enumerate(life.events, FIRST_LINE)], FILE, header).report

    assert (report.key[1], report.topic) == (topic_id, "payments")
    assert report.line(report.findings[0]) == (
        "request.log:5: orders, payments-0: fetch: contradiction: a fetch has acquired something else"
    )


@pytest.mark.parametrize("kind", ["log", "write", "initialize"])
def test_what_a_history_lacks_is_said_at_its_first_event(kind: str) -> None:
    """None of its events is checked then."""
    report = checked(acquired_twice(), lacks=frozenset({kind}), has_source=False)

    (finding,) = report.findings
    assert (finding.verdict, finding.place.line) == (Verdict.NOT_CHECKED, FIRST_LINE)
    assert finding.reason == f"the history lacks events of the kind {kind}"
    assert report.not_checked == report.events == 5


def overlapping() -> HandMadeLife:
    """Return a life whose log has offsets twice."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.appends(13, 2, 5)
    return life


def unknown() -> HandMadeLife:
    """Return a life with a write of a state that no release has which is known."""
    life = begun()
    life.writes(31, 101, (0, 0), (0, 1, 0, 1), (2, 3, 7, 1))
    return life


def without_a_log() -> HandMadeLife:
    """Return a life of which no batch is known."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m1", 1)
    return life


@pytest.mark.parametrize(
    ("made", "work", "verdict", "reason"),
    [
        (overlapping, 10**9, Verdict.NOT_CHECKED, "batch: log batches ascend without overlap: 2-5 after 3"),
        (
            *(unknown, 10**9, Verdict.NOT_CHECKED),
            "unknown delivery state 7 at 2-3, in line 6: a release of Kafka that is not known here has written it",
        ),
        (
            *(without_a_log, 10**9, Verdict.NOT_CHECKED),
            "nothing is known of the topic's log: import it with its segments",
        ),
        (
            never_written,
            1,
            Verdict.BOUND_REACHED,
            "no order was found: that what is known of the order may cost 1 is spent",
        ),
    ],
    ids=["overlapping", "unknown", "without a log", "too costly"],
)
def test_why_nothing_was_looked_for_is_said_at_the_first_event(
    made: Callable[[], HandMadeLife], work: int, verdict: Verdict, reason: str
) -> None:
    """The log cannot be, or nothing is known of it, or it costs too much to begin."""
    report = checked(made(), budget=Budget(work), has_source=False)

    (finding,) = report.findings
    assert (finding.verdict, finding.place.line, finding.reason) == (verdict, FIRST_LINE, reason)
    assert report.not_checked == report.events


def test_where_memory_does_not_suffice_that_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no error: other share partitions are checked all the same."""

    def in_order(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(import_module("sharestate.log_check.verify"), "in_order", in_order)

    report = checked(begun(), has_source=False)

    (finding,) = report.findings
    assert (finding.verdict, finding.place.line) == (Verdict.BOUND_REACHED, FIRST_LINE)
    assert finding.reason == "there is not enough memory"
    assert report.not_checked == report.events


# ---- why


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (acquired_twice, "a fetch has acquired something else"),
        (written_otherwise, "a write says something else"),
        (locked_otherwise, "a fetch was answered with a lock duration that was never set"),
        (sent_twice, "request 2 of the connection of m1 is in the log twice, and so are 1 others"),
    ],
)
def test_a_contradiction_says_no_more_than_what_it_is(made: Callable[[], HandMadeLife], reason: str) -> None:
    """All orders were tried, so nobody has to know how many, nor how far they got."""
    (finding,) = checked(made()).findings

    assert finding.reason == reason


def test_how_many_fetches_are_undecided_is_said() -> None:
    """What they have done may be what does not fit."""
    (finding,) = checked(undecided()).findings

    assert finding.reason.endswith("; fetches without records before it that are undecided: 1")


@pytest.mark.parametrize(("leader", "verdict"), [(1, Verdict.CONTRADICTION), (2, Verdict.BOUND_REACHED)])
def test_where_another_broker_leads_later_nothing_is_proved(leader: int, verdict: Verdict) -> None:
    """Their logs are put together by their clocks, which may be what does not fit."""
    life = HandMadeLife()
    life.reads(10, 100, 0, leader=1)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(300, 2, "m2", 1, (0, 3, 2))
    life.reads(5_000, 101, 0, leader=leader)

    (finding,) = checked(life).findings

    assert (finding.verdict, finding.event.request_no) == (verdict, 1)


def own_numbers(*events: tuple[int | None, float | None]) -> list[tuple[int, Event]]:
    """Return fetches of a connection, each with its number and the time at which it came; each takes 2 ms."""
    life = HandMadeLife()
    for number, at_ms in events:
        life.fetches(at_ms or 0, 2, "m1", number or 0)
        life.events[-1] = life.events[-1]._replace(request_no=number)
        if at_ms is None:
            life.events[-1] = life.events[-1]._replace(at_us=None, done_us=None)
    return [*enumerate(life.events[1:], FIRST_LINE)]


@pytest.mark.parametrize(
    ("events", "again"),
    [
        (((0, 10), (0, 20)), []),  # the client gives all of them this number
        (((0, 10), (0, 11)), [1]),
        (((0, 10), (1, 20), (0, 30)), [2]),
        (((0, 10), (1, 20), (2, 30), (2, 40)), [3]),
        (((None, 10), (None, 11), (1, 20), (2, 30)), []),
        (((0, None), (0, None)), [1]),  # nothing says that one has come after the other
    ],
    ids=["one number", "at once", "two numbers", "more", "none", "no times"],
)
def test_which_requests_are_there_twice(events: tuple[tuple[int | None, float | None], ...], again: list[int]) -> None:
    """A number comes back, on a connection that numbers its requests; or two of them overlap."""
    own = own_numbers(*events)

    assert [own.index(repeated) for _, repeated in repeated_requests(own)] == again


def test_a_request_may_have_several_batches_of_the_log() -> None:
    """A producer sends them together: they have one number, and none of them is there twice."""
    life = begun()
    life.appends(30, 4, 7)
    life.appends(40, 8, 9)
    life.events[-1] = life.events[-1]._replace(request_no=life.events[-2].request_no)
    life.fetches(60, 2, "m1", 2, (4, 9, 1))

    assert checked(life).verdict is Verdict.EXPLAINED


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
    assert finding.other_places == (finding.place,) * bool(others)  # it does not fit after them, either


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
    assert finding.reason.startswith(f"the check ends here for good; that it may cost {work:,} is spent")
    before = sum(event.kind == "fetch" for event in life.events[: finding.event.seq])
    assert before > 5
    assert report.explained.fetches_with_records in {before - 1, before}  # the last step may be given up, too


def test_where_the_budget_is_spent_that_is_the_reason() -> None:
    """What a fetch has acquired that was not answered is not known, but nothing has failed to fit because of that."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m2", 1)
    life.events[-1] = life.events[-1]._replace(response=None)
    for offset in range(30):
        life.appends(50 + 50 * offset, offset, offset)
        life.fetches(60 + 50 * offset, 2, "m1", 1 + offset, (offset, offset, 1))

    (finding,) = checked(life, budget=Budget(2_000)).findings

    assert finding.verdict is Verdict.BOUND_REACHED
    assert finding.reason.startswith("the check ends here for good")
