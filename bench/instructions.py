"""
The instructions that something takes, as valgrind counts them: they do not wobble as times do.

``python -m bench.instructions ROW TIMES`` does what a row says so often. There are two runs, one of few and one of many
times: the difference is what it takes, because Python's start and its imports are in both.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from bench.rows import ROWS

if TYPE_CHECKING:
    from pathlib import Path

_ENVIRONMENT: Final = frozenset({"PATH", "HOME", "LD_LIBRARY_PATH"})
"""What Python and valgrind may need to be found."""

_VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
"""Its cheapest tool that prints a sum; without a cache to simulate it counts nothing else."""

_SUM: Final = re.compile(r"I +refs: +([\d,]+)")

_FEW: Final = 3
"""The short run has so many times less to do than the long one; enough for Python to have specialized its code."""


class NotCountedError(Exception):
    """What was to be counted has failed; the message is what it has written to standard error."""


def lacking() -> str | None:
    """Return why instructions cannot be counted here, or None if they can."""
    if shutil.which(_VALGRIND[0]):
        return None
    return "Instructions are not counted: there is no valgrind; on Debian or Ubuntu: apt-get install valgrind"


def instructions(name: str, path: tuple[Path, ...]) -> float:
    """
    Return how many instructions row *name* takes with the `sharestate` that is first on *path*.

    Raises:
        NotCountedError: What the row does, or valgrind, has failed.
    """
    row = ROWS[name]
    few = max(1, row.times // _FEW)
    _run(name, 1, path, counted=False)  # so that no counted run compiles what it imports
    return (_counted(name, row.times, path) - _counted(name, few, path)) / ((row.times - few) * row.size)


def _counted(name: str, times: int, path: tuple[Path, ...]) -> int:
    printed = _run(name, times, path)
    found = _SUM.search(printed)
    if found is None:
        raise NotCountedError(printed.strip())
    return int(found[1].replace(",", ""))


def _run(name: str, times: int, path: tuple[Path, ...], *, counted: bool = True) -> str:
    """Return what doing it so often has written to standard error."""
    searched = os.pathsep.join(filter(None, (*map(str, path), os.environ.get("PYTHONPATH"))))
    # With hashes of its own each process would take another number of instructions; so it may with another environment,
    # which lies in memory before all else: where a batch needs a new arena each time, it takes half as many again.
    environment = {name: os.environ[name] for name in _ENVIRONMENT & os.environ.keys()}
    environment |= {"PYTHONPATH": searched, "PYTHONHASHSEED": "0"}
    program = [sys.executable, "-P", "-m", "bench.instructions", name, str(times)]
    command = [*_VALGRIND, *program] if counted else program
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NotCountedError(ended.stderr.strip())
    return ended.stderr


def main() -> None:
    """Do what a row says."""
    name, times = sys.argv[1:]
    gc.disable()  # as bench.clock does
    for operation in ROWS[name].repeated(int(times)):
        operation()


if __name__ == "__main__":
    main()
