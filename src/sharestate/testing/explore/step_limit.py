"""How long a step may take: a rule that never ends is a defect, and must not keep an exploration for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Final

STEP_LIMIT_S: Final = 10.0
"""The most processor time of a step, thousands of times what any takes: what else the machine does counts not. [s]"""


class StepLimitError(Exception):
    """A step has taken more processor time than any should."""


@contextmanager
def step_limit(limit_s: float) -> Iterator[None]:
    """
    Raise what has taken so much processor time out of what it does.

    In other threads than the main one, and on Windows, there are no signals to do so, and no limit.

    Args:
        limit_s: The limit. [s]

    Raises:
        StepLimitError: It has taken as much.
    """
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: FrameType | None) -> None:
    message = "it has not ended after as much processor time as thousands of steps take"
    raise StepLimitError(message)
