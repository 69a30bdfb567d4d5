"""The time of a simulation: what happens next, at the earliest time; what was planned first comes first."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

Action: TypeAlias = Callable[..., object]
"""What happens."""


class Agenda:
    """
    What is still to happen, and when.

    >>> agenda, seen = Agenda(), []
    >>> agenda.at(7, seen.append, "later")
    >>> agenda.at(5, seen.append, "sooner")
    >>> while agenda.step():
    ...     pass
    >>> seen, agenda.now_us
    (['sooner', 'later'], 7)

    Attributes:
        now_us: The time. [µs since the beginning]
        steps: How much has happened.
    """

    def __init__(self) -> None:
        """Begin at 0, with nothing."""
        self.now_us = 0
        self.steps = 0
        self._planned: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._number = 0

    def at(self, at_us: int, action: Action, *arguments: object) -> None:
        """Plan *action* for a time that is not over."""
        self._number += 1
        heapq.heappush(self._planned, (at_us, self._number, action, arguments))

    def after(self, later_us: int, action: Action, *arguments: object) -> None:
        """Plan *action* for so much later."""
        self.at(self.now_us + later_us, action, *arguments)

    def step(self) -> bool:
        """Let the next thing happen; return False if there is none."""
        if not self._planned:
            return False
        self.now_us, _, action, arguments = heapq.heappop(self._planned)
        self.steps += 1
        action(*arguments)
        return True
