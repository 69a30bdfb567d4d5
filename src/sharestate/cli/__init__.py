"""The command line; it needs the extra ``cli``."""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line and end the process with its exit code; without the extra, show how to install it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # it may be ignored
        signal.signal(signal.SIGINT, _exit_at_once)
    try:
        from sharestate.cli.commands import run  # noqa: PLC0415 - click and rich may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        print("sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'", file=sys.stderr)  # noqa: T201 - click is missing
        sys.exit(2)
    signal.signal(signal.SIGINT, handler)
    sys.exit(run())


def _exit_at_once(number: int, _frame: FrameType | None) -> None:
    """End the process: while modules are loaded there is nothing to clean up, and an exception might be caught."""
    os._exit(128 + number)  # ``exits.INTERRUPTED``, whose module needs click
