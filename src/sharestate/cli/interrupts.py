"""Ctrl-C while modules are loaded; this one does without the extra."""

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
