"""The time of a server, and who wakes it: the computer's clock, or one that a test sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from sortedcontainers import SortedDict

from sharestate.errors import TimeReversedError
from sharestate.values.checks import integer

_MS: Final = 1_000_000
"""A millisecond. [ns]"""

_LONGEST_S: Final = 86_400.0
"""The longest time that a timer is set for: what is due later is looked at again then. [s]"""


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """See to it that it does not come."""


class Clock(Protocol):
    """
    The time of a server. It must not go backwards.

    Its methods are called in the thread of the server's event loop.
    """

    def now_ms(self) -> int:
        """Return the time. [ms since 1970]"""

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Call *callback* in the thread of the event loop as soon as it is *deadline_ms*, or later."""


class SystemClock:
    """The computer's clock, as it is when this one is made; from then on it goes steadily, whatever becomes of that."""

    def __init__(self) -> None:
        """Begin now."""
        self._ahead_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """Return the time. [ms since 1970]"""
        return (time.monotonic_ns() + self._ahead_ns) // _MS

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Call *callback* as soon as it is *deadline_ms*, or after a day."""
        delay_s = (deadline_ms * _MS - self._ahead_ns - time.monotonic_ns()) / 1e9
        return asyncio.get_running_loop().call_later(min(max(delay_s, 0.0), _LONGEST_S), callback)


class _StandingTimer:
    """A call that is to come; one that is cancelled is forgotten at once."""

    def __init__(self, timers: SortedDict[tuple[int, int], Callable[[], None]], key: tuple[int, int]) -> None:
        self._timers = timers
        self._key = key

    def cancel(self) -> None:
        """See to it that it does not come."""
        self._timers.pop(self._key, None)


class StandingClock:
    """
    A clock that stands until it is moved: the ``clock`` of a ``TestBroker`` whose time is the test's.

    Args:
        now_ms: Its time in the beginning; the computer's by default. [ms since 1970]

    Raises:
        MalformedInputError: *now_ms* is no time.

    >>> clock = StandingClock(now_ms=1_000)
    >>> timer = clock.call_at(1_500, lambda: print("at", clock.now_ms()))
    >>> clock.next_ms()
    1500
    >>> clock.move_to(2_000)
    at 1500
    >>> clock.now_ms()
    2000
    """

    def __init__(self, now_ms: int | None = None) -> None:
        """Begin with the time *now_ms*."""
        self._now_ms = time.time_ns() // _MS if now_ms is None else integer(now_ms, "now_ms", 0)
        self._timers: SortedDict[tuple[int, int], Callable[[], None]] = SortedDict()
        self._numbers = count()

    def now_ms(self) -> int:
        """Return the time. [ms since 1970]"""
        return self._now_ms

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> _StandingTimer:
        """Call *callback* when the clock gets to *deadline_ms*; if it is there already, when it is moved next."""
        key = deadline_ms, next(self._numbers)
        self._timers[key] = callback
        return _StandingTimer(self._timers, key)

    def next_ms(self) -> int | None:
        """Return when something is due; None if nothing is. [ms since 1970]"""
        return self._timers.peekitem(0)[0][0] if self._timers else None

    def step_to(self, target_ms: int) -> bool:
        """
        Go on to what is due first, by *target_ms*, and let it happen; False if nothing is: then it is *target_ms*.

        Raises:
            TimeReversedError: *target_ms* is before the time that it is; nothing was changed.
        """
        if target_ms < self._now_ms:
            message = f"a clock does not go back: {target_ms} after {self._now_ms}"
            raise TimeReversedError(message, "target_ms")
        next_ms = self.next_ms()
        if next_ms is None or next_ms > target_ms:
            self._now_ms = target_ms
            return False
        _, callback = self._timers.popitem(0)
        self._now_ms = max(self._now_ms, next_ms)
        callback()
        return True

    def move_to(self, target_ms: int, follow_up: Callable[[], object] | None = None) -> None:
        """
        Go on to *target_ms*; what is due until then happens in its order, each at its own time.

        Args:
            target_ms: The time that it is then. [ms since 1970]
            follow_up: Called after each thing that was due: what follows from it happens at its time.

        Raises:
            TimeReversedError: As ``step_to``.
        """
        while self.step_to(target_ms):
            if follow_up is not None:
                follow_up()


class AutoAdvance:
    """
    Moves a clock to what is due next whenever nothing has happened for a while, as trio's autojump clock does.

    Args:
        clock: The clock.
        activity: Returns something else whenever something has happened.
        is_waited: Returns whether somebody waits for something that is yet to come.
        quiet_s: How long nothing has to happen before, by the computer's clock. [s]
        follow_up: Called after each move.

    Attributes:
        moves: How often it has moved the clock.
    """

    def __init__(
        self,
        clock: StandingClock,
        *,
        activity: Callable[[], int],
        is_waited: Callable[[], bool],
        quiet_s: float,
        follow_up: Callable[[], object],
    ) -> None:
        """Make one that does nothing yet."""
        self._clock = clock
        self._activity = activity
        self._is_waited = is_waited
        self._quiet_s = quiet_s
        self._follow_up = follow_up
        self.moves = 0

    async def run(self) -> None:
        """Move the clock until this is cancelled."""
        before = None
        while True:
            await asyncio.sleep(self._quiet_s)
            activity, next_ms = self._activity(), self._clock.next_ms()
            if activity != before or next_ms is None or not self._is_waited():
                before = activity
                continue
            self.moves += 1
            self._clock.step_to(max(next_ms, self._clock.now_ms()))
            self._follow_up()
            before = None  # what clients do about it takes at least two looks more
