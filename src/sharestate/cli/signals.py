"""Ctrl-C and SIGTERM, which end what serves until then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Stopped(BaseException):
    """A signal has asked for the end."""


@contextmanager
def until_signal() -> Iterator[None]:
    """End what is done when a signal comes; another one has no effect while it ends."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _Stopped

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Stopped:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
