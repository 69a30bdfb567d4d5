"""The bounds of the search for an order: what it keeps, what it may cost, and for how long that matters."""

from __future__ import annotations

from typing import Final

import pytest

from sharestate.history import Header, Order, open_history
from sharestate.log_check import PartitionReport, Verdict, search, verify
from sharestate.log_check.budget import Budget, Part
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.moves import Tip
from sharestate.log_check.schedule import schedule
from sharestate.log_check.search import Search, Stop
from sharestate.log_check.verify import check_partition
from sharestate.log_check.visible_log import VisibleLog
from sharestate.values.records import AcquiredRecords
from tests.support.broker_logs import RUN
from tests.support.hand_made_events import HandMadeLife

HEADER: Final = Header(order=Order.ARRIVAL)


def checked(life: HandMadeLife, budget: Budget | None = None) -> PartitionReport:
    """Return the report on a life."""
    own = [*enumerate(life.events, 2)]
    return check_partition(life.events[0].key, own, "history.jsonl", HEADER, budget).report


def begun() -> HandMadeLife:
    """Return a life with four records, none of which was acquired."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    return life


def contradicts(life: HandMadeLife, at_ms: float, *, number: int = 1) -> None:
    """A member acquires all records, and so does another one while it has them."""
    life.fetches(at_ms, 2, "m1", number, (0, 3, 1))
    life.fetches(at_ms + 280, 2, "m2", number, (0, 3, 2))


def verdicts(report: PartitionReport) -> list[Verdict]:
    """Return the verdict of each finding."""
    return [finding.verdict for finding in report.findings]


def test_what_was_left_untried_at_one_place_says_nothing_of_the_next_one() -> None:
    """A fetch has room for more records of others than are tried; after another read one of its own contradicts."""
    life = begun()
    contradicts(life, 20)
    request = {**(life.events[-1].request or {}), "max_records": 5_000, "partitions": 2, "others": (4_096,)}
    life.events[-1] = life.events[-1]._replace(request=request)
    life.reads(5_000, 101, 0)
    contradicts(life, 5_020, number=2)

    assert verdicts(checked(life)) == [Verdict.BOUND_REACHED, Verdict.CONTRADICTION]


@pytest.mark.parametrize(("most", "first"), [(150_000, Verdict.CONTRADICTION), (400, Verdict.BOUND_REACHED)])
def test_what_was_not_kept_matters_until_the_state_is_read_again(
    most: int, first: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is memory for thirty steps to come back to: the first of two fetches that contradict has more before it."""
    monkeypatch.setattr("sharestate.log_check.search.MOST_HELD", most)
    life = begun()
    for number in range(40):
        life.appends(13 + number / 10, 4 + number, 4 + number)
    contradicts(life, 20)
    life.reads(5_000, 101, 0)
    contradicts(life, 5_020, number=2)

    assert verdicts(checked(life)) == [first, Verdict.CONTRADICTION]


def test_places_that_are_too_far_back_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is memory for all that may have to be moved, forty steps: of a hundred before them none is left."""
    monkeypatch.setattr("sharestate.log_check.search.MOST_PLACES", 41)
    monkeypatch.setattr("sharestate.log_check.search.MOST_HELD", 700)
    life = begun()
    for number in range(150):
        life.appends(20 + 20 * number, 4 + number, 4 + number)
    contradicts(life, 4_000)

    assert verdicts(checked(life)) == [Verdict.CONTRADICTION]


def test_what_is_deleted_behind_a_contradiction_is_known_when_the_state_is_read_again() -> None:
    """The group has no state any more, so it begins at the log start."""
    life = begun()
    life.appends(13, 4, 7)
    contradicts(life, 20)
    life.deletes(600, 4)
    life.reads(5_000, 101, -1)
    life.fetches(5_020, 2, "m1", 2, (4, 7, 1))

    report = checked(life)

    assert verdicts(report) == [Verdict.CONTRADICTION]
    assert report.explained.fetches_with_records == 2


def test_a_move_says_nothing_of_what_comes_after_the_next_read() -> None:
    """A fetch without records comes after the one that has acquired them; then the broker forgets who has them."""
    life = begun()
    life.fetches(60, 2, "m1", 1)
    life.fetches(63, 2, "m2", 1, (0, 3, 1))
    for number in range(20):
        life.fetches(100 + 20 * number, 10, "m3", number)
    life.reads(5_000, 101, 0)
    contradicts(life, 5_020, number=2)

    report = checked(life)

    assert report.moves == 1
    assert verdicts(report) == [Verdict.CONTRADICTION]


def test_where_steps_were_moved_memory_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is enough for all steps: one is moved, and the places are kept again, with those before it in place."""
    monkeypatch.setattr("sharestate.log_check.search.MOST_HELD", 400)
    life = begun()
    life.fetches(60, 2, "m1", 1)
    life.fetches(63, 2, "m2", 1, (0, 3, 1))
    for number in range(20):
        life.fetches(100 + 20 * number, 10, "m1", 2 + number)
    life.acknowledges(600, 5, "m2", 2, (0, 3, 1), None)
    life.writes(602, 101, (0, 4), (0, 3, 2, 1))
    life.fetches(800, 2, "m3", 1, (3, 3, 2))

    report = checked(life)

    assert report.moves == 1
    assert verdicts(report) == [Verdict.CONTRADICTION]


def test_orders_to_come_back_to_take_no_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the orders that were tried those that explain the most are kept, while twice as much is held at the most."""
    held = []

    def furthest(tips: list[Tip]) -> list[Tip]:
        held.append(sum(tip.held for tip in tips))
        return kept(tips)

    kept = search._furthest  # noqa: SLF001 - what is held is seen nowhere else
    monkeypatch.setattr(search, "MOST_HELD", 200)
    monkeypatch.setattr(search, "_furthest", furthest)
    life = begun()
    for number in range(6):
        life.fetches(20 + number, 20, f"m{number}", 1)
    life.fetches(40, 2, "m6", 1, (0, 3, 2))

    checked(life)

    assert 400 < max(held) < 500


@pytest.mark.parametrize(("most", "verdict"), [(800, Verdict.CONTRADICTION), (300, Verdict.BOUND_REACHED)])
def test_orders_for_which_there_is_no_memory_prove_nothing(
    most: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another step is to be moved in the ten that explain the most; of which some are not kept."""
    monkeypatch.setattr(search, "MOST_HELD", most)
    life = begun()
    for number in range(6):
        life.fetches(20 + number, 20, f"m{number}", 1)
    life.fetches(40, 2, "m6", 1, (0, 3, 2))

    assert verdicts(checked(life)) == [verdict]


@pytest.mark.parametrize(("others", "verdict"), [(15, Verdict.CONTRADICTION), (16, Verdict.BOUND_REACHED)])
def test_where_many_steps_may_have_come_at_a_time_nothing_is_proved(others: int, verdict: Verdict) -> None:
    """A fetch acquires what another member has, while others look for records; far from it are many more of them."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    for number in range(20):
        life.fetches(100 + 10 * number, 2, "m2", number)
    for number in range(others):
        life.fetches(500, 2, "m3", number)
    life.fetches(500, 3, "m4", 1, (0, 3, 2))
    for number in range(20):
        life.fetches(600 + 10 * number, 2, "m2", 20 + number)

    assert verdicts(checked(life)) == [verdict]


def test_where_no_request_has_come_at_a_time_nothing_is_proved() -> None:
    """A write has the delivery complete count of a later one, which has not come 25 ms after it, as records do."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m2", 1, (4, 7, 1))
    life.acknowledges(40, 4, "m2", 2, (4, 7, 1), None)
    life.writes(42, 101, (0, 7), (4, 7, 2, 1))
    life.appends(200, 8, 11)

    (finding,) = checked(life).findings

    assert (finding.verdict, finding.event.kind) == (Verdict.BOUND_REACHED, "write")


def test_a_fetch_is_taken_for_undecided_once() -> None:
    """What comes after a place of a real run where one was does not fit: it is named, and the search is over."""
    with open_history(RUN.with_name("places") / "k431-undecided.jsonl.gz") as history:
        header, events = history.header, list(history)
    fetch = next(event for event in events if event.kind == "fetch" and (event.response or {}).get("acquired"))
    at_us = max(event.done_us or 0 for event in events) + 1_000
    beyond = {**(fetch.response or {}), "acquired": (AcquiredRecords(10**6, 10**6, 1),)}
    later = fetch._replace(at_us=at_us, taken_us=at_us, handled_us=at_us, done_us=at_us)
    events.append(later._replace(seq=len(events), connection="of another", response=beyond))

    own = [*enumerate(events, 2)]
    report = check_partition(fetch.key, own, "history.jsonl", header, Budget(900_000)).report

    (finding,) = report.findings
    assert (finding.event.connection, report.explained.undecided_fetches) == ("of another", 1)
    assert "ends here for good" not in finding.reason
    without = [event for event in events if event.kind == "fetch" and not (event.response or {}).get("acquired")]
    assert {place.line for place in finding.other_places} & {event.source_line for event in without}


@pytest.mark.parametrize("most", [1, 2])
def test_so_many_steps_are_moved_at_one_place(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one place of a real run two have to be."""
    monkeypatch.setattr(search, "MOST_MOVES", most)

    (report,) = verify(RUN.with_name("places") / "k431-two-moves.jsonl.gz", budget=lambda _: Budget(600_000))

    assert (report.verdict is Verdict.EXPLAINED) is (most == 2)


def searched(life: HandMadeLife) -> tuple[Search, Stop | None]:
    """Return the search over the steps of a life in the order of their times, and where it stops first."""
    plan = schedule(enumerate(life.events))
    log = VisibleLog(event for event in life.events if event.kind == "log")
    search_ = Search(CheckedPartition(life.events[0].key, plan, log, Budget(10**6)), plan.steps)
    return search_, search_.run()


@pytest.mark.parametrize(
    ("most", "records", "is_explained"),
    [(6, 1, True), (6, 4, True), (6, 6, True), (2, 2, True), (2, 3, False)],
)
def test_what_decides_is_moved_step_by_step(
    most: int, records: int, monkeypatch: pytest.MonkeyPatch, *, is_explained: bool
) -> None:
    """
    A fetch acquires what so many others have released, and was answered before their writes seem to have been.

    As late as the lines of the log may be: it cannot have come later, so each of their answers has come earlier.
    """
    monkeypatch.setattr(search, "MOST_DECIDING_MOVES", most)
    monkeypatch.setattr(search, "MOST_MOVES", 1)  # of others
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for offset in range(records):
        life.appends(20 + 2 * offset, offset, offset)
        life.fetches(21 + 2 * offset, 0.5, f"m{offset}", 1, (offset, offset, 1))
        life.acknowledges(50, 15, f"m{offset}", 2, (offset, offset, 2), None)
        life.writes(59 + offset / 10, 101 + offset, (0, 0), (offset, offset, 0, 1))
        life.events[-1] = life.events[-1]._replace(done_us=84_600 + 10 * offset)
    life.fetches(45, 14.8, "m9", 1, *((offset, offset, 2) for offset in range(records)))

    found, stop = searched(life)

    assert (stop is None) is is_explained
    assert not is_explained or found.moves == records


@pytest.mark.parametrize(("appended", "is_explained"), [(10, True), (35, True), (60, False)])
def test_what_decides_may_come_many_steps_later(appended: int, *, is_explained: bool) -> None:
    """A fetch acquires what was released long before; the answer to that write seems to have come as many did."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(50, 30, "m1", 2, (0, 3, 2), None)
    life.fetches(52, 10, "m2", 1, (0, 3, 2))
    for number in range(appended):
        life.appends(62 + number / 10, 4 + number, 4 + number)
    life.writes(61, 101, (0, 0), (0, 3, 0, 1))
    life.events[-1] = life.events[-1]._replace(handled_us=70_000, done_us=70_000)

    _, stop = searched(life)

    assert (stop is None) is is_explained


def test_orders_that_lead_to_the_same_state_are_the_same() -> None:
    """Whatever the steps before it were: another state is another order, and so are other steps that are left."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(30, 2, "m2", 1)
    plan = schedule(enumerate(life.events))
    log = VisibleLog(event for event in life.events if event.kind == "log")
    checked_ = CheckedPartition(life.events[0].key, plan, log)
    saved = [checked_.save()]
    for step in plan.steps[:4]:
        assert checked_.take(step, saved[-1]) is None
        saved.append(checked_.save())
    left = plan.steps[3:]

    key = search._key(Tip(left, [saved[2], saved[3]]))  # noqa: SLF001 - what is the same is seen nowhere else

    assert key == search._key(Tip(left, [saved[1], saved[3]]))  # noqa: SLF001
    assert key != search._key(Tip(left, [saved[2], saved[4]]))  # noqa: SLF001
    assert key != search._key(Tip(left[::-1], [saved[2], saved[3]]))  # noqa: SLF001


def test_two_fetches_that_acquire_the_same_at_the_same_time_contradict() -> None:
    """Each of them fits before the other one, which then does not: nothing is explained by that."""
    life = begun()
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(20, 2, "m2", 1, (0, 3, 1))

    report = checked(life)

    assert (report.moves, verdicts(report)) == (0, [Verdict.CONTRADICTION])


class Parted(Budget):
    """A budget that notes into how many parts what is left of it was divided."""

    def __init__(self) -> None:
        """Begin with enough."""
        super().__init__(10**9)
        self.parts: list[int] = []

    def part(self, parts: int) -> Part:
        """Note it."""
        self.parts.append(parts)
        return super().part(parts)


@pytest.mark.parametrize(("kind", "parts"), [("none", 2), ("acknowledge", 2), ("fetch", 16)])
def test_after_a_fetch_whose_answer_nobody_knows_the_search_takes_less(kind: str, parts: int) -> None:
    """Nobody knows what it has acquired, so no order may fit: it spends a sixteenth of what is left, and not half."""
    life = begun()
    if kind == "acknowledge":
        life.acknowledges(15, 2, "m3", 1, (0, 3, 1), None)
    elif kind == "fetch":
        life.fetches(15, 2, "m3", 1)
    if kind != "none":
        life.events[-1] = life.events[-1]._replace(response=None)
    contradicts(life, 20)
    budget = Parted()

    checked(life, budget)

    assert [each for each in budget.parts if each in {2, 16}] == [parts]


def test_where_the_budget_ends_in_a_search_it_says_what_was_tried() -> None:
    """Where it ends later, what was tried before has led on."""
    life = begun()
    life.fetches(60, 2, "m1", 1)
    life.fetches(63, 2, "m2", 1, (0, 3, 1))
    for number in range(20):
        life.fetches(100 + 20 * number, 10, "m3", number)
    life.fetches(800, 2, "m3", 20, (0, 3, 3))
    said: dict[int, set[bool]] = {}

    for most in range(1_200, 2_010, 15):
        report = checked(life, Budget(most))
        for finding in report.findings:
            if "ends here for good" in finding.reason:
                said.setdefault(finding.event.seq, set()).add("orders were tried" in finding.reason)
                before = [event for event in life.events[: finding.event.seq] if event.kind == "fetch"]
                assert report.explained.fetches_with_records + report.explained.empty_fetches == len(before)

    assert said.pop(life.events[-1].seq) == {True, False}
    assert len(said) > 5
    assert set().union(*said.values()) == {False}
