"""What steps have led to, in a search that tries many orders which begin alike."""

from __future__ import annotations

from typing import Final

import pytest

from sharestate.log_check.budget import Budget
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import Allowed, Step, What, schedule
from sharestate.log_check.search_state import Saved
from sharestate.log_check.tried_steps import TriedSteps
from sharestate.log_check.visible_log import VisibleLog
from tests.support.hand_made_events import HandMadeLife

ENOUGH: Final = 10**6


class Counted(CheckedPartition):
    """A share partition that notes which steps are taken."""

    def __init__(self) -> None:
        """Begin before the state is read: one member acquires all records, and so does another one."""
        life = HandMadeLife()
        life.reads(10, 100, 0)
        life.appends(12, 0, 3)
        life.fetches(20, 2, "m1", 1, (0, 3, 1))
        life.fetches(30, 2, "m2", 1, (0, 3, 1))
        plan = schedule(enumerate(life.events))
        log = VisibleLog(event for event in life.events if event.kind == "log")
        super().__init__(life.events[0].key, plan, log, Budget(ENOUGH))
        self.taken: list[Step] = []
        self.steps = plan.steps
        self.fetches = [step for step in plan.steps if step.what is What.FETCH]

    def take(self, step: Step, saved: Saved) -> Mismatch | None:
        """Note a step."""
        self.taken.append(step)
        return super().take(step, saved)

    def before_fetches(self) -> Saved:
        """Take the steps before the fetches, and return what is saved then."""
        saved = self.save()
        for step in self.steps:
            if step.what is not What.FETCH:
                assert self.take(step, saved) is None
                saved = self.save()
        self.taken.clear()
        return saved


def take_all(checked: Counted, tried: TriedSteps, saved: Saved) -> tuple[list[int | str], int]:
    """Take both fetches in both orders; return the end offset after each that fits, and what they have cost."""
    led_to: list[int | str] = []
    spent = checked.budget.spent
    for order in (checked.fetches, checked.fetches[::-1]):
        at = saved
        for step in order:
            found = tried.take(step, at)
            if isinstance(found, Mismatch):
                led_to.append(found.what)
            else:
                assert found.partition is not None
                led_to.append(found.partition.end_offset)
                at = found
    return led_to, checked.budget.spent - spent


def test_a_step_is_taken_once_and_costs_the_same_again() -> None:
    """At the same place it leads to the same."""
    checked = Counted()
    saved = checked.before_fetches()
    tried = TriedSteps(checked, ENOUGH)

    first, again = (take_all(checked, tried, saved) for _ in range(2))

    assert first == again
    assert first[0] == [3, "fetch", 3, "fetch"]
    assert checked.taken == [*checked.fetches, *checked.fetches[::-1]]


@pytest.mark.parametrize("most_held", range(0, 60, 5))
def test_whatever_there_is_memory_for_steps_lead_to_the_same_at_the_same_cost(most_held: int) -> None:
    """A budget reaches as far with little memory as with enough."""
    checked, other = Counted(), Counted()
    saved, its = checked.before_fetches(), other.before_fetches()
    enough, little = TriedSteps(checked, ENOUGH), TriedSteps(other, most_held)

    for _ in range(2):
        assert take_all(checked, enough, saved) == take_all(other, little, its)


@pytest.mark.parametrize("lacks", [0, 1])
def test_no_more_is_held_than_there_is_memory_for(lacks: int) -> None:
    """There is memory for what one fetch has led to, or nearly: the other one is taken again, or both are."""
    checked = Counted()
    saved = checked.before_fetches()
    one, other = checked.fetches
    size = next(at.size for at in [TriedSteps(checked, 0).take(one, saved)] if isinstance(at, Saved))
    tried = TriedSteps(checked, size - lacks)
    checked.taken.clear()

    for step in (one, other, one, other):
        assert isinstance(tried.take(step, saved), Saved)

    assert checked.taken == ([one, other, one, other] if lacks else [one, other, other])


def test_a_step_with_more_allowed_is_another_one() -> None:
    """A fetch that does not fit fits if it is left undecided, and as it was it still does not."""
    checked = Counted()
    tried = TriedSteps(checked, ENOUGH)
    one, other = checked.fetches
    after = tried.take(one, checked.before_fetches())
    assert isinstance(after, Saved)

    undecided = other._replace(allowed=Allowed.UNDECIDED)

    assert isinstance(tried.take(other, after), Mismatch)
    assert isinstance(tried.take(undecided, after), Saved)
    assert isinstance(tried.take(other, after), Mismatch)


@pytest.mark.parametrize("wrong_first", [True, False])
def test_what_did_not_fit_has_changed_nothing(*, wrong_first: bool) -> None:
    """A write has failed, but its acknowledgement was answered without an error; as one that succeeded it fits."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.acknowledges(30, 5, "m1", 2, (0, 3, 1), None)
    life.writes(32, 101, (0, 4), (0, 3, 2, 1))
    plan = schedule(enumerate(life.events))
    log = VisibleLog(event for event in life.events if event.kind == "log")
    checked = CheckedPartition(life.events[0].key, plan, log, Budget(ENOUGH))
    tried = TriedSteps(checked, ENOUGH)
    right = next(step for step in plan.steps if step.what is What.OUTCOME)
    wrong = right._replace(line=99, event=right.event._replace(response={"error": "fenced_state_epoch"}))
    at = checked.save()
    for step in plan.steps[: plan.steps.index(right)]:
        led_to = tried.take(step, at)
        assert isinstance(led_to, Saved)
        at = led_to

    first, then = (tried.take(step, at) for step in ((wrong, right) if wrong_first else (right, wrong)))

    failed, succeeded = (first, then) if wrong_first else (then, first)
    assert isinstance(failed, Mismatch)
    assert isinstance(succeeded, Saved)
    assert succeeded.partition is not None
    assert succeeded.partition.start_offset == 4
