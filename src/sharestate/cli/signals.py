"""Ctrl-C and SIGTERM, while modules are loaded and while something is served; this module needs no extra."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


@contextmanager
def ending_at_once() -> Iterator[None]:
    """While modules are loaded, Ctrl-C ends the process: there is nothing to clean up, and others might catch it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler or current_thread() is not main_thread():  # it may be ignored
        yield
        return
    signal.signal(signal.SIGINT, _exit_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _exit_at_once(number: int, _frame: FrameType | None) -> None:
    """End the process."""
    os._exit(128 + number)  # ``exits.INTERRUPTED``, whose module needs click


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
