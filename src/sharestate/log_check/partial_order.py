"""Which steps of a life come before which others, as far as that is known, and an order that fits it."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate

from sharestate.log_check.budget import Budget
from sharestate.log_check.schedule import LATE_US, Step


class PartialOrder:
    """
    What is known of the order of steps: of some that they come before others, and of each when it took effect.

    Args:
        steps: The steps.
        budget: What the check may cost.

    Attributes:
        steps: The steps.
        earliest_us: When each of them took effect at the earliest. [µs since 1970]
        latest_us: When each of them took effect at the latest. [µs since 1970]
        order: Their indexes, in the order that was found last.
    """

    def __init__(self, steps: Sequence[Step], budget: Budget) -> None:
        """Begin with what their times say."""
        self.steps = list(steps)
        self.earliest_us = [step.earliest_us - LATE_US for step in steps]
        self.latest_us = [step.latest_us + LATE_US for step in steps]
        self.order = list(range(len(steps)))
        self._after: list[set[int]] = [set() for _ in steps]
        self._budget = budget
        self._by_order = sorted(self.order, key=lambda index: self.steps[index].order)

    def put(self, first: int | None, then: int | None) -> bool:
        """Put one step before another one unless their times forbid it; return whether that was not known."""
        if first is None or then is None or first == then or then in self._after[first]:
            return False
        if self.earliest_us[first] > self.latest_us[then]:
            return False
        self._after[first].add(then)
        return True

    def comes_after(self, first: int, then: int) -> bool:
        """Return whether it is known that one step comes after another one."""
        limit_us = self.latest_us[then]
        seen = {first}
        todo = [first]
        is_after = False
        while todo and not is_after:
            after = self._after[todo.pop()]
            is_after = then in after
            new = [index for index in after if index not in seen and self.earliest_us[index] <= limit_us]
            seen.update(new)
            todo += new
        self._budget.spend_on_order(len(seen))
        return is_after

    def may_put(self, first: int, then: int) -> bool:
        """Return whether one step may come before another one, as far as is known."""
        return self.earliest_us[first] <= self.latest_us[then] and not self.comes_after(then, first)

    # ---- times

    def narrow(self) -> None:
        """Narrow the time of each step by those of the steps that come before and after it."""
        earliest_us, latest_us = self.earliest_us, self.latest_us
        for index in self.order:
            own_us = earliest_us[index]
            for then in self._after[index]:
                if earliest_us[then] < own_us:
                    earliest_us[then] = max(earliest_us[then], min(own_us, latest_us[then]))
        for index in reversed(self.order):
            for then in self._after[index]:
                if latest_us[then] < latest_us[index]:
                    latest_us[index] = min(latest_us[index], max(latest_us[then], earliest_us[index]))

    def preferred_us(self) -> list[int]:
        """Return the preferred time of each step: no later than that of any that comes after it."""
        earliest_us = [step.earliest_us for step in self.steps]
        for index in self.order:
            own_us = earliest_us[index]
            for then in self._after[index]:
                earliest_us[then] = max(earliest_us[then], own_us)
        preferred_us = [
            min(max(step.at_us, earliest), step.latest_us)
            for step, earliest in zip(self.steps, earliest_us, strict=True)
        ]
        for index in reversed(self.order):
            preferred_us[index] = min((preferred_us[index], *map(preferred_us.__getitem__, self._after[index])))
        return preferred_us

    # ---- orders

    def sort(self, preferred_us: Sequence[int]) -> None:
        """Sort the steps by what comes before what, else by time; forget what contradicts the rest."""
        before = [0] * len(self.steps)
        for after in self._after:
            for then in after:
                before[then] += 1
        by_time = sorted(self._by_order, key=preferred_us.__getitem__)
        rank = [0] * len(by_time)
        for place, index in enumerate(by_time):
            rank[index] = place
        ready = [rank[index] for index in by_time if not before[index]]
        left = iter(by_time)
        self.order = []
        is_sorted = [False] * len(by_time)
        while len(self.order) < len(by_time):
            index = by_time[heappop(ready)] if ready else next(each for each in left if not is_sorted[each])
            is_sorted[index] = True
            self.order.append(index)
            for then in list(self._after[index]):
                if is_sorted[then]:
                    self._after[index].remove(then)
                    continue
                before[then] -= 1
                if not before[then]:
                    heappush(ready, rank[then])

    def sorted_steps(self) -> list[Step]:
        """Return the steps in the order that was found, with times that ascend."""
        preferred_us = self.preferred_us()
        self.sort(preferred_us)
        times_us = accumulate(map(preferred_us.__getitem__, self.order), max)
        return [self.steps[index]._replace(at_us=at_us) for index, at_us in zip(self.order, times_us, strict=True)]
