"""
A program that runs a command, and ends it together with whatever it has started when its own parent is gone.

``python guardian.py PIPE COMMAND...``: ``PIPE`` is the end to read of a pipe into which nobody writes. It comes to its
end when the last process that has the other end closes it, or ends in whatever way: no process can say that it was
killed, and the signal that says it exists on Linux alone. When the command ends, what it has started is ended as well.
Nothing of the package is imported, so that it starts in 20 ms.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from threading import Thread
from typing import Final

_SIGNALED: Final = 128
"""What shells add to the number of a signal that has ended a command, for the status."""


def _guard(pipe: int, command: list[str]) -> int:
    """Run *command*, and return its status; the pipes that it was given are its own."""
    # A session of its own has a process group of its own, of which only what asks for another is no part.
    process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - the command is the caller's
    for standard in range(3):
        os.close(standard)
    Thread(target=_end_with_parent, args=(pipe, process.pid), daemon=True).start()
    status = process.wait()
    _end(process.pid)
    return status if status >= 0 else _SIGNALED - status


def _end_with_parent(pipe: int, group: int) -> None:
    os.read(pipe, 1)
    _end(group)


def _end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    try:
        ended = _guard(int(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
    os._exit(ended)  # what Python does at its end needs the standard streams
