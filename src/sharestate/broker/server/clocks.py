"""The time of a server, and who wakes it: the computer's clock, or one that a test sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

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
