"""The command line; it needs the extra ``cli``."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


def main() -> None:
    """Run the command line and end the process with its exit code; without the extra, show how to install it."""
    try:
        with ending_at_once():
            import rich  # noqa: F401, PLC0415 - click and rich may be missing; commands need both, and are imported later

            from sharestate.cli.commands import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        print("sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'", file=sys.stderr)  # noqa: T201 - click is missing
        sys.exit(2)
    sys.exit(run())


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
