"""How much the check of a share partition may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from sharestate.values.checks import MAX_INT64

LEAST_WORK: Final = 1_000_000
"""What any share partition may cost. [work]"""

WORK_OF_EVENT: Final = 3_000
"""What it may cost more for each of its events: 80 to 200 with one request at a time, up to 1,700 if hot. [work]"""

WORK_OF_ORDER: Final = 1_000
"""What of that may go into what is known of the order before anything is tried: up to 540 in hot runs. [work]"""

_CLOCK_EVERY: Final = 10_000
"""After how much work one looks at the clock. [work]"""


class BudgetSpentError(Exception):
    """The check of a share partition costs more than it may."""


class Budget:
    """
    What is left of what a check may cost.

    It is counted in what is touched: batches in flight and locks that are copied or compared, records that a command
    names, steps that are ordered. The unit of work is what took a microsecond where it was measured: 0.4 to 1.6 of them
    in runs of brokers, of all kinds, and in histories that were made to cost a lot. What ``TriedSteps`` remembers takes
    less.

    Args:
        most: How much it may cost. [work]
        seconds: How long it may take; as long as it wants if None. [s]
        clock: Returns the time, which must not go backwards. [s]
        most_order: How much of it may go into what is known of the order before anything is tried; all if None. [work]

    Attributes:
        spent: What it has cost. [work]
        is_cut: Whether something was left untried because there would have been too much of it, since it was set to
            False: what does not fit is then no contradiction.
    """

    def __init__(
        self,
        most: int,
        seconds: float | None = None,
        clock: Callable[[], float] | None = None,
        *,
        most_order: int | None = None,
    ) -> None:
        """Begin with nothing spent."""
        self._most, self._clock = most, clock
        self._most_order = most if most_order is None else most_order
        self._order = 0
        self._ends_s = None if seconds is None or clock is None else clock() + seconds
        self._next_look = 0
        self.spent = 0
        self.is_cut = False

    @classmethod
    def of(cls, events: int) -> Budget:
        """Return the usual budget of a share partition with so many events."""
        return cls(LEAST_WORK + WORK_OF_EVENT * events, most_order=LEAST_WORK + WORK_OF_ORDER * events)

    @classmethod
    def lasting(cls, seconds: float, clock: Callable[[], float]) -> Budget:
        """Return a budget of so many seconds by a clock."""
        return cls(MAX_INT64, seconds, clock)

    def spend(self, work: int) -> None:
        """
        Spend some of it.

        Raises:
            BudgetSpentError: Nothing is left.
        """
        self.spent += work
        if self.spent > self._most:
            message = f"that it may cost {self._most:,} is spent"
            raise BudgetSpentError(message)
        if self._ends_s is not None and self._clock is not None and self.spent >= self._next_look:
            self._next_look = self.spent + _CLOCK_EVERY
            if self._clock() > self._ends_s:
                message = "the time that it may take is over"
                raise BudgetSpentError(message)

    def spend_on_order(self, work: int) -> None:
        """
        Spend some of it on what is known of the order of steps.

        Raises:
            BudgetSpentError: Nothing is left, or nothing for that.
        """
        self._order += work
        if self._order > self._most_order:
            message = f"that what is known of the order may cost {self._most_order:,} is spent"
            raise BudgetSpentError(message)
        self.spend(work)

    def part(self, parts: int) -> Part:
        """Return one of so many *parts* of what is left, for something after which there is more to do."""
        ends_s = None
        if self._ends_s is not None and self._clock is not None:
            now_s = self._clock()
            ends_s = now_s + (self._ends_s - now_s) / parts
        return Part(self.spent + (self._most - self.spent) // parts, ends_s)

    def has_spent(self, part: Part) -> bool:
        """Return whether nothing is left of a part."""
        if part.ends_s is not None and self._clock is not None and self._clock() > part.ends_s:
            return True
        return self.spent > part.most


class Part(NamedTuple):
    """
    A part of a budget.

    Attributes:
        most: How much the budget will have been spent when nothing is left of it. [work]
        ends_s: When it ends by the clock; None without one. [s]
    """

    most: int
    ends_s: float | None
