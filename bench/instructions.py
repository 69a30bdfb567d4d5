"""
The instructions that a batch of a workload takes, as valgrind counts them: they do not wobble as times do.

``python -m bench.instructions WORKLOAD READING TIMES`` runs a workload. That is done twice, with few batches and with
many: the difference is what the batches take, because Python's start and its imports are in both.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from bench.workloads import WORKLOADS, repeated

if TYPE_CHECKING:
    from pathlib import Path

_VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
"""Its cheapest tool that prints a sum; without a cache to simulate it counts nothing else."""

_SUM: Final = re.compile(r"I +refs: +([\d,]+)")

_FEW: Final = 3
"""The short run has so many times fewer batches than the long one; enough for Python to have specialized its code."""


class NotCountedError(Exception):
    """What was to be counted has failed; the message is what it has written to standard error."""


def lacking() -> str | None:
    """Return why instructions cannot be counted here, or None if they can."""
    if shutil.which(_VALGRIND[0]):
        return None
    return "Instructions are not counted: there is no valgrind; on Debian or Ubuntu: apt-get install valgrind"


def instructions(workload: str, reading: str, path: tuple[Path, ...]) -> float:
    """
    Return how many instructions a batch takes with the `sharestate` that is first on *path*.

    Raises:
        NotCountedError: The workload or valgrind has failed.
    """
    _, many = WORKLOADS[workload]
    few = max(1, many // _FEW)
    return (_counted(workload, reading, many, path) - _counted(workload, reading, few, path)) / (many - few)


def _counted(workload: str, reading: str, times: int, path: tuple[Path, ...]) -> int:
    searched = os.pathsep.join(filter(None, (*map(str, path), os.environ.get("PYTHONPATH"))))
    # With hashes of its own each process would take another number of instructions.
    environment = os.environ | {"PYTHONPATH": searched, "PYTHONHASHSEED": "0"}
    command = [*_VALGRIND, sys.executable, "-P", "-m", "bench.instructions", workload, reading, str(times)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = _SUM.search(ended.stderr)
    if ended.returncode or found is None:
        raise NotCountedError(ended.stderr.strip())
    return int(found[1].replace(",", ""))


def main() -> None:
    """Run a workload."""
    workload, reading, times = sys.argv[1:]
    gc.disable()  # as bench.clock does
    for operation in repeated(workload, reading=reading, times=int(times)):
        operation()


if __name__ == "__main__":
    main()
