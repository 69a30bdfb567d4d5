"""How much a check may cost."""

from __future__ import annotations

import pytest

from sharestate.log_check.budget import LEAST_WORK, WORK_OF_EVENT, WORK_OF_ORDER, Budget, BudgetSpentError
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.schedule import schedule
from sharestate.log_check.visible_log import VisibleLog
from tests.support.hand_made_events import HandMadeLife


def test_work_is_spent_when_there_is_none_left() -> None:
    """All of it may be spent, and no more; a part of what is left is spent sooner."""
    budget = Budget(100)
    assert not budget.is_cut
    budget.spend(40)
    part = budget.part(3)
    budget.spend(20)
    assert not budget.has_spent(part)

    budget.spend(1)
    assert budget.has_spent(part)
    budget.spend(39)
    with pytest.raises(BudgetSpentError, match="that it may cost 100 is spent"):
        budget.spend(1)


def test_what_is_known_of_the_order_has_a_part_of_the_work() -> None:
    """What it costs is a part of what all costs; more for it than that is refused, and not spent."""
    budget = Budget(100, most_order=10)
    budget.spend_on_order(10)

    with pytest.raises(BudgetSpentError, match="the order may cost 10 is spent"):
        budget.spend_on_order(1)
    assert budget.spent == 10
    with pytest.raises(BudgetSpentError, match="that it may cost 3 is spent"):
        Budget(3, most_order=9).spend_on_order(4)


def test_time_is_over_when_the_clock_says_so() -> None:
    """Whatever was done in it; a part of what is left is over sooner."""
    now_s = 100.0
    budget = Budget.lasting(8, lambda: now_s)
    budget.spend(10**12)
    now_s = 102
    part = budget.part(3)
    now_s = 104
    assert not budget.has_spent(part)
    now_s = 104.1
    assert budget.has_spent(part)
    now_s = 108
    budget.spend(10**6)

    now_s = 108.1
    with pytest.raises(BudgetSpentError, match="the time that it may take is over"):
        budget.spend(10**6)


def test_the_clock_is_not_looked_at_all_the_time() -> None:
    """Once for ten thousand units of work, which take some milliseconds."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0

    budget = Budget.lasting(1, clock)
    for _ in range(1_000):
        budget.spend(100)

    assert 10 <= looks <= 12

    looks = 0
    for _ in range(3):
        budget.spend(10_000)
    assert looks == 3


def test_a_share_partition_with_more_events_may_cost_more() -> None:
    """So may what is known of their order."""
    most, most_order = LEAST_WORK + 10 * WORK_OF_EVENT, LEAST_WORK + 10 * WORK_OF_ORDER
    Budget.of(10).spend(most)
    Budget.of(10).spend_on_order(most_order)

    with pytest.raises(BudgetSpentError, match=f"may cost {most:,} is spent"):
        Budget.of(10).spend(most + 1)
    with pytest.raises(BudgetSpentError, match=f"the order may cost {most_order:,} is spent"):
        Budget.of(10).spend_on_order(most_order + 1)


@pytest.mark.parametrize("seconds", [None, 1])
def test_without_seconds_and_a_clock_only_work_is_spent(seconds: float | None) -> None:
    """It may take as long as it wants; so may a part of it."""
    budget = Budget(100, seconds, (lambda: 10**9) if seconds is None else None)
    budget.spend(40)
    part = budget.part(3)
    budget.spend(20)
    assert not budget.has_spent(part)

    budget.spend(40)

    assert budget.has_spent(part)


def test_more_records_in_flight_than_any_broker_has_cost_what_they_are() -> None:
    """Batches do not: of 16,384 records, which may be split, only those beyond them cost as many units of work."""
    life = HandMadeLife()
    life.events[0] = life.events[0]._replace(request={**(life.events[0].request or {}), "max_record_locks": 100_000})
    life.reads(10, 100, 0)
    for first in range(0, 18_000, 2_000):
        life.appends(12, first, first + 1_999)
        life.fetches(20 + first, 2, "m1", 1 + first, (first, first + 1_999, 1))
    plan = schedule(enumerate(life.events))
    checked = CheckedPartition(life.events[0].key, plan, VisibleLog(each for each in life.events if each.kind == "log"))

    sizes = [checked.save().size]
    for step in plan.steps:
        checked.take(step, checked.save())
        sizes.append(checked.save().size)

    assert sizes[-2] < 100
    assert 1_600 < sizes[-1] < 1_800
