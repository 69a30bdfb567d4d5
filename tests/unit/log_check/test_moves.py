"""Which steps may be moved where: the orders that are tried."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import pytest
from attrs import evolve

from sharestate.history import Event
from sharestate.log_check.budget import Budget
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.moves import (
    MOST_AHEAD,
    MOST_BACK,
    MOST_WAYS,
    Order,
    Tip,
    deciding_orders,
    orders_with_a_move,
    other_orders,
)
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import Schedule, Step, What, schedule
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch
from tests.support.hand_made_events import HandMadeLife

KEY: Final = ("orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0)


def step(  # noqa: PLR0913 - what differs between steps
    what: What,
    connection: str | None = None,
    number: int = 1,
    *,
    at_ms: int = 1_000,
    write: int = -1,
    acquired: tuple[int, int, int] | None = None,
) -> Step:
    """Return a step that took effect at a time, as far as lines say when."""
    response = {} if acquired is None else {"acquired": (AcquiredRecords(*acquired),)}
    event = Event.of(KEY, 0, what.name.lower(), response=response)._replace(connection=connection, request_no=number)
    return Step(at_ms * 1000, what, at_ms * 1000, at_ms * 1000, 0, event, write)


def fetch(member: str, number: int = 1, at_ms: int = 1_000) -> Step:
    """Return a fetch over a connection of its member."""
    return step(What.FETCH, member, number, at_ms=at_ms)


def write_sent(write: int, number: int = 5, connection: str = "broker") -> Step:
    """Return the arrival of a write."""
    return step(What.ARRIVAL, connection, number, write=write)


def answered(write: int) -> Step:
    """Return the answer to a write."""
    return step(What.OUTCOME, "broker", 5 + write, write=write)


def tip_of(steps: Iterable[Step], index: int, mismatch: Mismatch | None = None) -> Tip:
    """Return steps of which that with an index does not fit; their lines are 0, 1, 2 ..."""
    saved = CheckedPartition(KEY, Schedule([], [], [], [], []), None, Budget(1000)).save()
    return Tip([each._replace(line=line) for line, each in enumerate(steps)], [saved] * (index + 1), 0, mismatch)


def lines(tip: Tip, orders: Iterable[Order]) -> list[list[int]]:
    """Return the lines of the steps in each of the orders."""
    return [[each.line for each in tip.reordered(order)] for order in orders]


def tried(steps: Iterable[Step], index: int) -> list[list[int]]:
    """Return the orders in which a step is moved, by lines."""
    tip = tip_of(steps, index)
    return lines(tip, orders_with_a_move(tip))


@pytest.mark.parametrize("acquired", [(), ((0, 3, 1),)], ids=["nothing", "records"])
def test_only_what_may_be_undecided_comes_before_the_state_was_read(acquired: tuple[tuple[int, int, int], ...]) -> None:
    """Of the requests of a connection that come earlier together, that holds for each of them."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(11, 2, "m1", 1)
    life.fetches(12, 3, "m1", 2, *acquired)
    plan = schedule(enumerate(life.events, 2))
    assert [step.what for step in plan.steps] == [What.CONFIG, What.INITIALIZE, What.FETCH, What.FETCH]
    saved = CheckedPartition(life.events[0].key, plan, None, Budget(1000)).save()

    tip = Tip(plan.steps, [saved] * 3)
    orders = [[step.event.request_no for step in tip.reordered(order)] for order in orders_with_a_move(tip)]

    assert any(numbers.index(2) < numbers.index(100) for numbers in orders) == (not acquired)
    assert any(numbers.index(1) < numbers.index(100) for numbers in orders)


MANY: Final = (
    ([answered(0), fetch("m1"), fetch("m2"), answered(1)], 1),
    ([fetch("m1"), fetch("m1", 2), fetch("m2"), fetch("m3")], 0),
    ([fetch("m1"), fetch("m2"), fetch("m1", 2), fetch("m3"), fetch("m1", 3), fetch("m4")], 0),
    ([step(What.FETCH), step(What.FETCH), fetch("m1"), step(What.LOG)], 1),
    ([fetch("m1"), write_sent(0), write_sent(1)], 1),
    ([fetch("m1"), fetch("m2"), step(What.INITIALIZE, "broker"), fetch("m3"), fetch("m4")], 3),
    ([fetch("m1"), fetch("m2"), step(What.INITIALIZE, "broker"), fetch("m3"), fetch("m4")], 0),
    ([fetch("m1"), fetch("m2"), fetch("m3")], 2),
    ([fetch("m1"), fetch("m1", 2), fetch("m2")], 2),
)


@pytest.mark.parametrize(("steps", "index"), MANY)
def test_every_order_has_each_step_once(steps: list[Step], index: int) -> None:
    """Nothing is lost, nothing comes twice, and nothing is looked for before the first step or after the last one."""
    tip = tip_of(steps, index)

    orders = [*other_orders(tip)]

    assert orders
    assert all(0 <= order.place <= order.place + len(order.steps) <= len(steps) for order in orders)
    assert all(order.place <= index for order in orders)  # else what does not fit would be passed over
    for order in orders:  # and it ends with a step that is moved, or the one that does not fit
        end = order.place + len(order.steps) - 1
        assert order.steps[-1].line in {*range(end), index}
    assert all(sorted(each) == [*range(len(steps))] for each in lines(tip, orders))
    for each in lines(tip, orders):  # and the requests of a member stay in order
        for member in {one.event.connection for one in steps} - {None, "broker"}:
            numbers = [steps[line].event.request_no or 0 for line in each if steps[line].event.connection == member]
            assert all(first < then for first, then in pairwise(numbers))


def test_what_does_not_fit_comes_earlier_or_later_and_so_does_what_is_around_it() -> None:
    """The first step of all may come after it, and it may come after the last one."""
    orders = tried([fetch("m1"), fetch("m2"), fetch("m3"), fetch("m4"), fetch("m5")], 2)

    assert {(2, 0, 1, 3, 4), (0, 1, 3, 4, 2), (1, 2, 0, 3, 4), (0, 1, 4, 2, 3)} <= {*map(tuple, orders)}


def test_what_does_not_fit_may_come_after_records_were_appended() -> None:
    """The line of the log batch stays; what comes after it, too."""
    assert [1, 0, 2] in tried([fetch("m1"), step(What.LOG), fetch("m2")], 0)


def test_right_before_what_does_not_fit_each_step_after_it_is_tried_at_first() -> None:
    """Only then they come earlier than that."""
    orders = tried([fetch("m1"), fetch("m2"), fetch("m3"), fetch("m4")], 1)

    assert orders.index([0, 3, 1, 2]) < orders.index([2, 0, 1, 3])


def test_what_comes_long_after_what_does_not_fit_does_not_come_first() -> None:
    """Eleven steps were needed, and so many are tried."""
    orders = tried([fetch(f"m{number}", at_ms=1_000 + number) for number in range(MOST_AHEAD + 2)], 0)

    assert {order[0] for order in orders if order[1:] == sorted(order[1:])} == {*range(1, MOST_AHEAD)}


@pytest.mark.parametrize("others", [0, 1, 2])
def test_nothing_that_does_not_fit_comes_after_the_next_life_begins(others: int) -> None:
    """What the state was after that is known."""
    after = [fetch(f"m{number}") for number in range(3, 3 + others)]
    read = step(What.INITIALIZE, "broker", at_ms=1_100)
    orders = tried([fetch("m1"), fetch("m2"), *after, read, fetch("m9")], 1)

    begins = others + 2
    assert ([0, 2, 1, *range(3, others + 4)] in orders) == bool(others)
    assert all(order.index(1) < order.index(begins) for order in orders)


@pytest.mark.parametrize("others", [0, 1])
def test_of_writes_sent_together_the_last_is_issued_first(others: int) -> None:
    """Most often all of them were issued before; only then one of those between is tried."""
    after = [fetch(f"m{number}") for number in range(2, 2 + others)]
    orders = tried([fetch("m1"), write_sent(0), write_sent(1), write_sent(2), *after], 1)

    assert orders.index([0, 3, 1, 2, *range(4, 4 + others)]) < orders.index([0, 2, 1, 3, *range(4, 4 + others)])


def test_no_step_is_moved_further_than_40_others() -> None:
    """Fifteen were needed, back."""
    steps = [fetch(f"m{number}") for number in range(MOST_BACK + 4)]

    assert {order.index(MOST_BACK + 3) for order in tried(steps, MOST_BACK + 3)} == {*range(3, MOST_BACK + 4)}
    assert max(order.index(0) for order in tried(steps, 0)) == MOST_BACK


@pytest.mark.parametrize("write", [0, 1])
def test_a_write_is_issued_no_later_than_it_arrives(write: int) -> None:
    """Nothing after it comes first that stays where it is; a fetch may."""
    assert tried([write_sent(write), step(What.LOG), fetch("m1")], 0) == [[2, 0, 1]]


@pytest.mark.parametrize(
    ("number", "connection", "is_one"), [(5, "broker", True), (6, "broker", False), (5, "other broker", False)]
)
def test_nothing_comes_between_writes_of_one_request(number: int, connection: str, *, is_one: bool) -> None:
    """Their lines are one: what comes before the second of them comes before the first, too."""
    orders = tried([write_sent(0), write_sent(1, number, connection), fetch("m1"), fetch("m2")], 3)

    assert [3, 0, 1, 2] in orders
    assert ([0, 3, 1, 2] in orders) == (not is_one)


@pytest.mark.parametrize("writes", [(0, 1), (1, 2), (1, 0)])
def test_answers_to_writes_take_effect_in_their_order(writes: tuple[int, int]) -> None:
    """The second does not come before the first; a fetch comes between them."""
    orders = tried([*map(answered, writes), fetch("m1")], 1)

    assert [0, 2, 1] in orders
    assert all(order.index(0) < order.index(1) for order in orders)


def test_the_state_was_read_before_a_fetch_that_was_done_a_little_earlier() -> None:
    """But not before one that was done long before."""
    steps = [fetch("m1", at_ms=0), fetch("m2", at_ms=500), step(What.INITIALIZE, "broker", at_ms=510)]

    orders = tried([*steps, fetch("m3", at_ms=520)], 3)

    assert [0, 2, 1, 3] in orders
    assert {order[0] for order in orders} == {0}


def test_the_state_was_read_before_a_fetch_that_does_not_fit_if_its_line_may_be_late() -> None:
    """Or before one before that, whatever came meanwhile: that is tried last."""
    steps = [fetch("m1"), step(What.ACKNOWLEDGE, "m2"), fetch("m3"), step(What.LOG), step(What.INITIALIZE, "broker")]

    assert tried(steps, 2)[-2:] == [[0, 1, 4, 2, 3], [4, 0, 1, 2, 3]]


@pytest.mark.parametrize(("member", "orders"), [("m2", [[1, 2, 0], [2, 0, 1]]), ("m1", [])])
def test_who_has_acquired_what_another_one_should_have_comes_after_that(member: str, orders: list[list[int]]) -> None:
    """Either it comes later, or the other one earlier; not before a request of its own connection."""
    mismatch = Mismatch("fetch", [[0, 3, 1]], [])
    steps = [step(What.FETCH, "m1", acquired=(0, 3, 1)), fetch("m3"), step(What.FETCH, member, 2, acquired=(0, 3, 1))]
    tip = tip_of(steps, 2, mismatch)

    assert lines(tip, deciding_orders(tip)) == orders


def test_all_steps_that_decide_are_tried() -> None:
    """Records were to be given back by an answer that comes after it, and another one had acquired them before it."""
    given_back = answered(0)
    event = given_back.event._replace(request={"state_batches": (StateBatch(0, 3, 0, 1),)})
    steps = [step(What.FETCH, "m1", acquired=(0, 3, 1)), fetch("m2"), fetch("m3"), given_back._replace(event=event)]
    tip = tip_of(steps, 2, Mismatch("fetch", [[0, 3, 2]], []))

    orders = lines(tip, deciding_orders(tip))

    assert [0, 1, 3, 2] in orders
    assert [1, 2, 0, 3] in orders


def test_a_fetch_whose_records_a_write_divides_otherwise_has_read_something_else() -> None:
    """However long before that was; and that is tried first."""
    steps = [step(What.FETCH, "m1", acquired=(0, 3, 1)), *(fetch(f"m{number}") for number in range(2, MOST_BACK + 10))]
    whole, divided = ({"state_batches": rows} for rows in ([[0, 3, 2, 1]], [[0, 1, 2, 1], [2, 3, 2, 1]]))

    orders = deciding_orders(tip_of(steps, len(steps) - 1, Mismatch("write", whole, divided)))

    place, others = next(orders)
    assert (place, [each.way for each in others]) == (0, [1] + [0] * (len(steps) - 1))


def test_a_fetch_whose_lock_has_expired_too_early_comes_before_those_before_it() -> None:
    """However long before its write that was."""
    between = [fetch(f"m{number}", at_ms=3_000) for number in range(3, MOST_BACK + 10)]
    steps = [fetch("m1"), step(What.FETCH, "m2", acquired=(0, 3, 1)), *between]
    mismatch = Mismatch("write", {"state_batches": [[0, 3, 0, 1]]}, None)

    tip = tip_of(steps, len(steps) - 1, mismatch)

    assert [1, 0, *range(2, len(steps))] in lines(tip, other_orders(tip))


def test_each_of_the_last_fetches_may_have_read_something_else() -> None:
    """And before each of the last answers to writes locks may have expired, or not."""
    steps = [fetch("m1"), answered(0), fetch("m2"), answered(1), fetch("m3"), answered(2), fetch("m4")]
    tip = tip_of(steps, 4)

    ways = [{each.line for each in order.steps if each.way} for order in other_orders(tip)]

    assert {frozenset(each) for each in ways} >= {frozenset({line}) for line in (0, 2, 3, 4)} | {frozenset({1, 3})}


def test_a_fetch_has_not_read_ever_more_other_things() -> None:
    """One way to read had to be skipped; three are."""
    tip = tip_of([fetch("m1")._replace(way=MOST_WAYS), fetch("m2")._replace(way=MOST_WAYS - 1)], 1)

    ways = {(each.line, each.way) for order in other_orders(tip) for each in order.steps if each.way}

    assert ways == {(0, MOST_WAYS), (1, MOST_WAYS - 1), (1, MOST_WAYS)}


def test_an_order_holds_what_was_saved_from_its_first_step_on() -> None:
    """What was saved up to that step belongs to the order that it was made of."""
    tip = tip_of([fetch("m1"), fetch("m2"), fetch("m3"), fetch("m4")], 3)
    tip = evolve(tip, saved=[evolve(each, size=10**place) for place, each in enumerate(tip.saved)], place=1)

    assert tip.held == 1_100
