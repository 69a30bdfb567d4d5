"""How long a step may take: a rule that never ends is a defect, and must not keep an exploration for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, get_ident, main_thread
from types import FrameType
from typing import Final

STEP_LIMIT_S: Final = 10.0
"""The most processor time of a step, thousands of times what any takes: what else the machine does counts not. [s]"""

_limited: Final = set[int]()
"""The thread whose steps are limited, if there is one."""


class StepLimitError(Exception):
    """A step has taken more processor time than any should."""


@contextmanager
def step_limits() -> Iterator[None]:
    """
    Limit the processor time of steps for a while.

    In other threads than the main one, and on Windows, no signal can end a step, and they have no limit.
    """
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread() or _limited:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    _limited.add(get_ident())
    try:
        yield
    finally:
        _limited.clear()
        signal.signal(signal.SIGVTALRM, before)


def begin_step(limit_s: float) -> None:
    """Have what is done raise a StepLimitError once it has taken so much processor time, where steps are limited."""
    if get_ident() in _limited:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)


def end_step() -> None:
    """Note that a step has ended."""
    if get_ident() in _limited:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _stop(_number: int, _frame: FrameType | None) -> None:
    message = "it has not ended after as much processor time as thousands of steps take"
    raise StepLimitError(message)
