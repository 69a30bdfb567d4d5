"""How much the check of a share partition may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LEAST_WORK: Final = 1_000_000
"""What any share partition may cost. [touched]"""

WORK_OF_EVENT: Final = 2_000
"""What it may cost more for each of its events. [touched]"""

_LOOKS: Final = 2_000
"""After how much work one looks at the clock. [touched]"""


class BudgetSpentError(Exception):
    """The check of a share partition costs more than it may."""


class Budget:
    """
    What is left of what a check may cost.

    It is counted in what is touched: batches in flight that are copied, compared or searched, records that a command
    names, and steps that are ordered.

    Args:
        most: How much it may cost. [touched]
        seconds: How long it may take; as long as it wants if None. [s]
        clock: Tells the time, which must not go backwards. [s]

    Attributes:
        spent: What it has cost. [touched]
        is_cut: Whether something was left untried because there would have been too much of it, since it was set to
            False: what does not fit is then no contradiction.
    """

    def __init__(self, most: int, seconds: float | None = None, clock: Callable[[], float] | None = None) -> None:
        """Begin with nothing spent."""
        self._most, self._clock = most, clock
        self._ends_s = None if seconds is None or clock is None else clock() + seconds
        self._next_look = 0
        self.spent = 0
        self.is_cut = False

    @classmethod
    def of(cls, events: int, seconds: float | None = None, clock: Callable[[], float] | None = None) -> Budget:
        """Return the budget of a share partition with so many events."""
        return cls(LEAST_WORK + WORK_OF_EVENT * events, seconds, clock)

    def spend(self, touched: int) -> None:
        """
        Spend some of it.

        Raises:
            BudgetSpentError: Nothing is left.
        """
        self.spent += touched
        if self.spent > self._most:
            message = f"it would have cost more than {self._most:,}"
            raise BudgetSpentError(message)
        if self._ends_s is not None and self._clock is not None and self.spent >= self._next_look:
            self._next_look = self.spent + _LOOKS
            if self._clock() > self._ends_s:
                message = "it would have taken longer than it may"
                raise BudgetSpentError(message)
