"""Commands whose standard error is a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def on_terminal(output: Path, *arguments: str | Path) -> str:
    """Write what a command prints to a file, and return what it shows on a terminal that is its standard error."""
    control, terminal = pty.openpty()
    shown = b""
    with (
        output.open("wb") as stdout,
        subprocess.Popen(
            [sys.executable, "-m", "sharestate", *map(str, arguments)],
            stdout=stdout,
            stderr=terminal,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        ) as process,
    ):
        os.close(terminal)
        with suppress(OSError):  # as Linux has it when nobody has the terminal open any more
            while part := os.read(control, 65536):
                shown += part
    os.close(control)
    assert process.returncode == 0
    return shown.decode()
