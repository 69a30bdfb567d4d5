"""Which steps may be moved where: the orders that are tried."""

from __future__ import annotations

import pytest

from sharestate.log_check.budget import Budget
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.moves import Tip, orders_with_a_move
from sharestate.log_check.schedule import What, schedule
from tests.support.hand_made_events import HandMadeLife


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
