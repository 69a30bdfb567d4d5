"""The search for an order: what is a contradiction, and which orders are tried."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import PartitionReport, Verdict, verify
from sharestate.log_check.budget import Budget, Part
from sharestate.log_check.verify import check_partition
from tests.support.broker_logs import noted
from tests.support.hand_made_events import HandMadeLife

RUNS: Final = Path(__file__).parents[2] / "data" / "broker-log"

PLACES: Final = {
    "k431-before-read": "a member acknowledges while the state is read: it has acquired nothing",
    "k431-late": "the line of an acknowledgement is 101 ms late: its write has arrived before it",
    "k431-undecided": "a fetch found another one at work; with a later one before it what follows does not fit",
    "k431-two-moves": "one step moved is not enough: that would be called a contradiction",
    "k440-aborted": "a fetch has read before what comes after its records was aborted, as a write shows 250 ms later",
    "k440-log-start": "records are deleted while a fetch waits for an answer: it has noticed that",
    "k440-read-late": "the line of a read of the state is 1 ms later than that of the fetch that has waited for it",
    "k440-start": "the SPSO stays at a record that is acknowledged, so writes after its answer name it, too",
}


@pytest.mark.parametrize(
    ("count", "at_ms", "verdict"),
    [(4, 44, Verdict.CONTRADICTION), (7, 44, Verdict.BOUND_REACHED), (7, 90, Verdict.CONTRADICTION)],
)
def test_what_was_allowed_at_that_time_proves_nothing(count: int, at_ms: int, verdict: Verdict) -> None:
    """
    A fetch acquires what was accepted: that is a contradiction if every order of what came at that time was tried.

    Another write has the delivery complete count of a later one, which is allowed where it fits nowhere else: of the
    steps at its time not all orders are tried.
    """
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m2", 1, (0, 3, 1))
    life.appends(25, 4, 7)
    life.fetches(30, 2, "m1", 1, (4, 7, 1))
    life.acknowledges(40, 4, "m1", 2, (4, 7, 1), None)
    life.acknowledges(41, 4, "m2", 2, (1, 3, 1), None)
    life.writes(42, 101, (0, count), (4, 7, 2, 1))
    life.writes(43, 102, (0, 7), *((offset, offset, 2, 1) for offset in (1, 2, 3)))
    life.fetches(at_ms, 1, "m3", 1, (4, 7, 2))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert [finding.verdict for finding in report.findings] == [verdict]
    if verdict is Verdict.BOUND_REACHED:
        assert "orders were tried, the furthest explains 0 steps more" in report.findings[0].reason


@pytest.mark.parametrize(("at_ms", "findings", "not_checked"), [(495, 1, 2), (473, 1, 2), (472.999, 2, 4)])
def test_where_nothing_fits_is_over_with_what_has_waited_for_the_next_read(
    at_ms: float, findings: int, not_checked: int
) -> None:
    """A fetch acquires what another has, and as the state is read again, it is in a line that is up to 25 ms late."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(100, 2, "m2", 1, (0, 3, 1))
    life.fetches(300, 100, "m1", 2)
    life.acknowledges(440, 2, "m1", 3, (0, 3, 1), "not_leader_or_follower")
    life.fetches(at_ms, 2, "m2", 2, (0, 3, 1))
    life.reads(500, 101, 0)
    life.acknowledges(520, 5, "m2", 3, (0, 3, 1), None)
    life.writes(521, 102, (0, 4), (0, 3, 2, 1))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert [finding.verdict for finding in report.findings] == [Verdict.CONTRADICTION] * findings
    assert report.not_checked == not_checked


@pytest.mark.parametrize(
    ("later_ms", "verdict"),
    [(20, Verdict.EXPLAINED), (150, Verdict.EXPLAINED), (300, Verdict.CONTRADICTION), (900, Verdict.CONTRADICTION)],
)
def test_nothing_comes_long_before_it_was_asked_for(later_ms: int, verdict: Verdict) -> None:
    """The coordinator gets a write before the acknowledgement that it is of: times are late by 200 ms at the most."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(50, 101, (0, 4), (0, 3, 2, 1))
    life.acknowledges(50 + later_ms, 5, "m1", 2, (0, 3, 1), None)
    life.fetches(3_000, 100, "m1", 3)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


COSTS: Final = {
    "k431-before-read": (0, 0, 428),
    "k431-late": (1, 0, 56_637),
    "k431-undecided": (1, 1, 599_474),
    "k431-two-moves": (3, 0, 324_332),
    "k440-aborted": (3, 0, 27_301),
    "k440-log-start": (1, 0, 7_627),
    "k440-read-late": (1, 0, 10_804),
    "k440-start": (0, 0, 7_797),
}
"""How many steps were moved at each of them, how many fetches left undecided, and the work; as it was measured."""


@pytest.mark.parametrize("name", PLACES)
def test_places_of_real_runs_are_explained(name: str) -> None:
    """On a busy machine times are late, and what seems to follow from one step is due to another one."""
    budgets: list[Budget] = []
    (report,) = verify(RUNS / "places" / f"{name}.jsonl.gz", budget=noted(budgets))

    assert report.verdict is Verdict.EXPLAINED
    for what in ("fetches_with_records", "codes", "writes"):
        assert getattr(report.explained, what) == getattr(report.observed, what)
    assert (report.moves, report.explained.undecided_fetches, budgets[0].spent) == COSTS[name]


@pytest.mark.parametrize(
    ("accepted", "verdict"), [(0, Verdict.BOUND_REACHED), (3, Verdict.BOUND_REACHED), (4, Verdict.CONTRADICTION)]
)
def test_a_move_proves_nothing_of_the_records_in_flight(*, accepted: int, verdict: Verdict) -> None:
    """
    A fetch acquires what another member has, and before that a fetch was moved: the one without records came after it.

    That move may be wrong as long as one of its records is in flight.
    """
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(60, 2, "m1", 1)
    life.fetches(63, 2, "m2", 1, (0, 3, 1))
    if accepted:
        life.acknowledges(100, 5, "m2", 2, (0, accepted - 1, 1), None)
        each = [(offset, offset, 2, 1) for offset in range(accepted)]
        life.writes(102, 101, (0, accepted), *([(0, 3, 2, 1)] if accepted > 3 else each))
    life.fetches(300, 2, "m3", 1, (3, 3, 2))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.moves == 1
    assert [finding.verdict for finding in report.findings] == [verdict]


@pytest.mark.parametrize(("accepted", "verdict"), [(3, Verdict.BOUND_REACHED), (4, Verdict.CONTRADICTION)])
def test_a_move_proves_nothing_until_the_last_of_the_records_is_passed(*, accepted: int, verdict: Verdict) -> None:
    """They were in flight as steps were moved, and for long after that."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(60, 2, "m1", 1)
    life.fetches(63, 2, "m2", 1, (0, 3, 1))
    for number in range(20):
        life.fetches(100 + 20 * number, 10, "m1", 2 + number)
    life.acknowledges(600, 5, "m2", 2, (0, accepted - 1, 1), None)
    each = [(offset, offset, 2, 1) for offset in range(accepted)]
    life.writes(602, 101, (0, accepted), *([(0, 3, 2, 1)] if accepted > 3 else each))
    life.fetches(800, 2, "m3", 1, (3, 3, 2))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.moves == 1
    assert [finding.verdict for finding in report.findings] == [verdict]


@pytest.mark.parametrize(("most", "verdict"), [(0, Verdict.BOUND_REACHED), (1, Verdict.CONTRADICTION)])
def test_ways_to_read_that_are_left_untried_prove_nothing(
    most: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch says that nothing is delivered for the first time: it may have read one batch of the log, or two."""
    monkeypatch.setattr("sharestate.log_check.checked_fetches._MOST_WAYS", most)
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.appends(14, 4, 7)
    life.fetches(20, 2, "m1", 1, (0, 3, 2))
    life.fetches(3_000, 2, "m1", 2)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


def test_where_too_little_is_kept_to_come_back_to_nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are deleted while a fetch waits: that it has noticed shows where a step comes before earlier ones."""
    monkeypatch.setattr("sharestate.log_check.search.MOST_HELD", 1)

    (report,) = verify(RUNS / "places" / "k440-log-start.jsonl.gz")

    assert (report.verdict, report.moves) == (Verdict.BOUND_REACHED, 0)


@pytest.mark.parametrize(("most", "verdict"), [(1, Verdict.BOUND_REACHED), (100, Verdict.CONTRADICTION)])
def test_orders_that_are_left_untried_prove_nothing(
    most: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch has acquired what another member holds; where few requests come at that time all orders are tried."""
    monkeypatch.setattr("sharestate.log_check.search.MOST_ORDERS", most)
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(21, 2, "m2", 1, (0, 3, 2))
    life.fetches(22, 2, "m3", 1)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


def test_a_fetch_that_throws_for_no_reason_is_a_contradiction() -> None:
    """It was of one partition, so it did not throw for another one."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1)
    life.events[-1] = life.events[-1]._replace(response={"error": "unknown_server_error"})

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert [(each.verdict, each.observed) for each in report.findings] == [
        (Verdict.CONTRADICTION, {"error": "unknown_server_error"})
    ]


@pytest.mark.parametrize(
    ("wanted", "others", "verdict"),
    [
        (5_000, 4_095, Verdict.CONTRADICTION),
        (5_000, 4_096, Verdict.BOUND_REACHED),
        (4_096, 4_096, Verdict.CONTRADICTION),
    ],
)
def test_sums_that_are_left_untried_prove_nothing(wanted: int, others: int, verdict: Verdict) -> None:
    """A fetch may have acquired 4,095 records of another partition; more is not tried, unless that is all it wants."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(300, 2, "m2", 1, (0, 3, 2))
    request = {**(life.events[-1].request or {}), "max_records": wanted, "partitions": 2, "others": (others,)}
    life.events[-1] = life.events[-1]._replace(request=request)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


@pytest.mark.parametrize(("appended", "verdict"), [(30, Verdict.CONTRADICTION), (60, Verdict.BOUND_REACHED)])
def test_steps_that_are_too_far_back_to_be_moved_prove_nothing(appended: int, verdict: Verdict) -> None:
    """A fetch has acquired what another member holds while a third waited; much was appended meanwhile."""
    life = HandMadeLife()
    life.reads(1, 100, 0)
    life.appends(2, 0, 3)
    life.fetches(4, 1, "m3", 1, (0, 3, 1))
    life.acknowledges(20, 121, "m1", 1, (0, 3, 1), "invalid_record_state")
    life.fetches(20, 121, "m1", 1)
    life.events[-1] = life.events[-1]._replace(request={**(life.events[-1].request or {}), "min_bytes": 0})
    for number in range(appended):
        life.appends(21 + number / 2, 4 + number, 4 + number)
    life.fetches(100, 2, "m2", 1, (0, 3, 2))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


@pytest.mark.parametrize(("appended", "verdict"), [(10, Verdict.CONTRADICTION), (11, Verdict.BOUND_REACHED)])
def test_steps_that_are_too_far_ahead_to_be_moved_prove_nothing(appended: int, verdict: Verdict) -> None:
    """A fetch has acquired what another member holds; a third got nothing later, of eleven steps after it the last."""
    life = HandMadeLife()
    life.reads(1, 100, 0)
    life.appends(2, 0, 3)
    life.fetches(4, 1, "m1", 1, (0, 3, 1))
    life.fetches(100, 2, "m2", 1, (0, 3, 2))
    life.fetches(101, 12, "m3", 1)
    for number in range(appended):
        life.appends(102 + number / 2, 4 + number, 4 + number)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


def test_a_fetch_without_records_may_have_looked_before_some_came() -> None:
    """It was answered 2 ms after they were appended: that is no other order, as it changes nothing."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 5, "m1", 1)
    life.appends(22, 0, 3)
    life.fetches(40, 2, "m2", 1, (0, 3, 1))

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert (report.verdict, report.moves) == (Verdict.EXPLAINED, 0)
    assert (report.explained.empty_fetches, report.explained.undecided_fetches) == (1, 0)


class CutShort(Budget):
    """
    A budget with enough of everything, but for how often what is left of a part of it is looked at.

    Args:
        looks: After how many of them nothing is left of any part.
    """

    def __init__(self, looks: int) -> None:
        """Begin with nothing spent."""
        super().__init__(10**9)
        self.looks = looks

    def has_spent(self, part: Part) -> bool:
        """Return whether it was looked at too often."""
        self.looks -= 1
        return self.looks < 0 or super().has_spent(part)


def cut_short(looks: int) -> PartitionReport:
    """Return the report on a fetch that has acquired what another member holds, while a third got nothing."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(300, 20, "m2", 1, (0, 3, 2))
    life.fetches(305, 20, "m3", 1)
    own = [*enumerate(life.events, 2)]
    header = Header(order=Order.ARRIVAL)
    return check_partition(life.events[0].key, own, "history.jsonl", header, CutShort(looks)).report


def test_as_long_as_orders_are_left_untried_nothing_is_proved() -> None:
    """The more of them may be tried, the more are, one after the other; what contradicts goes on to do so."""
    reports = [cut_short(looks) for looks in range(70)]

    verdicts = [report.verdict for report in reports]
    proved = verdicts.index(Verdict.CONTRADICTION)
    assert set(verdicts[:proved]) == {Verdict.BOUND_REACHED}
    assert set(verdicts[proved:]) == {Verdict.CONTRADICTION}
    found = [re.search(r" ([0-9]+) orders were tried", report.findings[0].reason) for report in reports[:proved]]
    tried = [0 if each is None else int(each[1]) for each in found]
    assert {after - before for before, after in pairwise(tried)} == {0, 1}


def test_orders_with_two_moves_have_to_be_tried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is only enough to try all of those with one move, nothing contradicts yet."""
    with monkeypatch.context() as patch:
        patch.setattr("sharestate.log_check.search._PROVING_TIPS", 0)
        enough = next(looks for looks in range(70) if cut_short(looks).verdict is Verdict.CONTRADICTION)

    assert cut_short(enough).verdict is Verdict.BOUND_REACHED
