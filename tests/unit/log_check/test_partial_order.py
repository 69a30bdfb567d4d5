"""What is known of which steps come before which, and the order that fits it."""

from __future__ import annotations

import pytest

from sharestate.log_check.budget import Budget, BudgetSpentError
from sharestate.log_check.partial_order import PartialOrder
from sharestate.log_check.schedule import LATE_US, Step, What
from tests.support.hand_made_events import HandMadeLife

Times = tuple[int, int, int]
"""When a step takes effect at the earliest, preferably, and at the latest. [µs]"""


def known(*times: Times, most: int = 1000) -> PartialOrder:
    """Return what is known of steps of which there are only their times; the times of a log may be late by 25 ms."""
    event = HandMadeLife().events[0]
    steps = [
        Step(at, What.FETCH, earliest, latest, seq, event._replace(seq=seq))
        for seq, (earliest, at, latest) in enumerate(times)
    ]
    return PartialOrder(steps, Budget(most))


def test_what_is_put_again_was_known() -> None:
    """Nor is anything new that a step comes before itself, or before one that there is not."""
    order = known((0, 0, 0), (0, 0, 0))

    assert order.put(0, 1)

    assert [order.put(*pair) for pair in ((0, 1), (0, 0), (None, 1), (0, None))] == [False] * 4


@pytest.mark.parametrize(("earliest_us", "may_be"), [(1000 + 2 * LATE_US, True), (1001 + 2 * LATE_US, False)])
def test_a_step_that_began_after_another_one_was_over_is_not_put_before_it(earliest_us: int, *, may_be: bool) -> None:
    """Each of the two times may be late by 25 ms."""
    order = known((earliest_us, earliest_us, earliest_us), (0, 500, 1000))

    assert order.may_put(0, 1) is may_be
    assert order.put(0, 1) is may_be
    assert order.comes_after(0, 1) is may_be


@pytest.mark.parametrize("between_us", [0, 1000 + 2 * LATE_US])
def test_what_comes_after_a_step_comes_after_those_before_it(between_us: int) -> None:
    """However late the one between them is, as long as it may come before the last one."""
    order = known((0, 0, 0), (between_us, between_us, between_us), (0, 500, 1000), (0, 0, 0))
    order.put(0, 1)
    order.put(1, 2)

    assert order.comes_after(0, 2)
    assert not order.comes_after(2, 0)
    assert not order.may_put(2, 0)
    assert order.may_put(3, 0)


def test_looking_for_what_comes_after_costs_as_many_steps_as_are_looked_at() -> None:
    """They are two where one comes after the other, and one where nothing is known to come after it."""
    order = known((0, 0, 0), (0, 0, 0), most=3)
    order.put(0, 1)
    assert order.comes_after(0, 1)

    assert not order.comes_after(1, 0)
    with pytest.raises(BudgetSpentError):
        order.comes_after(0, 1)


def test_steps_narrow_the_times_of_each_other() -> None:
    """A step is over when one after it is, and begins no earlier than one before it; of the rest nothing follows."""
    order = known((0, 40_000, 90_000), (10_000, 20_000, 30_000), (5_000, 5_000, 50_000))
    order.put(0, 1)
    order.put(1, 2)

    order.narrow()

    assert [each - LATE_US for each in order.latest_us] == [30_000, 30_000, 50_000]
    assert [each + LATE_US for each in order.earliest_us] == [0, 10_000, 10_000]


def test_a_step_is_preferred_no_later_than_those_after_it() -> None:
    """Those come no earlier than it can."""
    order = known((50, 60, 200), (0, 10, 100), (0, 30, 40))
    order.put(0, 1)

    assert order.preferred_us() == [50, 50, 30]


def test_steps_are_sorted_by_what_is_known_and_by_time() -> None:
    """What is known comes first; times decide the rest, and of equal ones the place in the log."""
    order = known((0, 10, 10), (0, 20, 20), (0, 20, 20), (0, 40, 40))
    order.put(3, 0)

    order.sort([10, 20, 20, 40])

    assert order.order == [1, 2, 3, 0]


def test_what_contradicts_the_rest_is_forgotten() -> None:
    """Three steps go round in a circle: the earliest of them comes first, and nothing comes before it any more."""
    order = known((0, 10, 10), (0, 20, 20), (0, 30, 30), (0, 50, 50), (0, 40, 40))
    for first, then in ((0, 1), (1, 2), (2, 0), (2, 3), (3, 4)):
        assert order.put(first, then)

    order.sort([10, 20, 30, 50, 40])

    assert order.order == [0, 1, 2, 3, 4]
    assert order.comes_after(0, 2)
    assert not order.comes_after(2, 0)


def test_sorted_steps_have_times_that_ascend() -> None:
    """A step that is known to come before an earlier one gets its time."""
    order = known((0, 10, 10), (0, 40, 40), (0, 20, 50))
    order.put(1, 2)

    assert [(step.line, step.at_us) for step in order.sorted_steps()] == [(0, 10), (1, 20), (2, 20)]


def test_sorted_steps_are_sorted_by_time() -> None:
    """Whatever order they had."""
    order = known((0, 30, 30), (0, 10, 10), (0, 20, 20))

    assert [step.line for step in order.sorted_steps()] == [1, 2, 0]
