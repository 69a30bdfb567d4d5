"""Commands whose standard error is a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from tests.support.own_streams import exit_code


def on_terminal(output: Path, *arguments: str | Path, is_process: bool = False) -> str:
    """
    Write what a command prints to a file, and return what it shows on a terminal that is its standard error.

    Args:
        output: The file.
        arguments: The arguments of the command line.
        is_process: Whether it is a process of its own, as one that starts another program is better.
    """
    run = _process_exit_code if is_process else exit_code
    control, terminal = pty.openpty()
    with (
        output.open("wb") as stdout,
        patch.dict(os.environ, {"TERM": "xterm", "COLUMNS": "100"}),
        ThreadPoolExecutor(1) as reader,
    ):
        shown = reader.submit(_read, control)
        try:
            code = run(*arguments, output=stdout.fileno(), errors=terminal)
        finally:
            os.close(terminal)
    os.close(control)
    assert code == 0
    return shown.result().decode()


def _process_exit_code(*arguments: str | Path, output: int, errors: int) -> int:
    command = [sys.executable, "-m", "sharestate", *map(str, arguments)]
    return subprocess.run(command, stdout=output, stderr=errors, check=False).returncode


def _read(control: int) -> bytes:
    """Return all that is shown on a terminal, until nobody has it open any more."""
    shown = b""
    with suppress(OSError):  # as Linux has it then
        while part := os.read(control, 65536):
            shown += part
    return shown
