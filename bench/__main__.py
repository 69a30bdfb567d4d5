"""Measure, and print the tables or put them into a file: ``python -m bench [--rounds N] [--write FILE]``."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyperf import BenchmarkSuite
from rich.console import Console
from rich.progress import track

from bench.report import report
from bench.tables import put
from bench.timings import timings

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT: Final = Path("build/bench.json")
BEGIN: Final = "<!-- figures: what follows is written by `make growth` -->"
END: Final = "<!-- end of the figures -->"
"""The lines between which the tables belong."""


def main() -> None:
    """Measure in several rounds, and say what came of it."""
    parser = ArgumentParser(prog="python -m bench", description="Measure what share partitions cost.")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured; 5 unless given")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in FILE")
    arguments = parser.parse_args()
    tables = report(measured(arguments.rounds))
    if arguments.write is None:
        sys.stdout.write(tables)
    else:
        put(arguments.write, tables, BEGIN, END)


def measured(rounds: int) -> BenchmarkSuite:
    """Measure everything *rounds* times, with a progress bar on standard error if that is a terminal."""
    _KEPT.parent.mkdir(exist_ok=True)
    _KEPT.unlink(missing_ok=True)
    console = Console(stderr=True)
    total = rounds * sum(1 for _ in timings())
    done = (line for _ in range(rounds) for line in _round())
    for _ in track(done, "measuring", total, console=console, transient=True, disable=not console.is_terminal):
        pass
    return BenchmarkSuite.load(str(_KEPT))


def _round() -> Iterator[str]:
    """Measure everything once more, and yield a line for each timing."""
    command = [sys.executable, "-m", "bench.timings", "--quiet", "--append", str(_KEPT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout or ()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


if __name__ == "__main__":
    main()
