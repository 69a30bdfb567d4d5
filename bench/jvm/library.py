"""
The library's side: processes that run this tree or another one, and are asked for a figure by a line.

``python -m bench.jvm.library WHAT`` answers each line of standard input with the CPU time of a batch, an operation or
what a record takes in memory. Each thing is measured in a process of its own, for where objects happen to lie in memory
differs from process to process. Trees are compared by turns of a tenth of a second: a machine that slows down for a
while then slows down both. Everything in `bench` that runs there imports from `sharestate` alone what every tree to
compare with has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Final

from attrs import frozen

from bench.clock import cpu_time
from bench.memory import MEMORY, measured
from bench.operations import OPERATIONS, compared_sizes, operation_name
from bench.workloads import READINGS, WORKLOADS, as_read, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Timed = Callable[[], Iterator[Callable[[], object]]]

ROOT: Final = Path(__file__).parents[2]
THIS_TREE: Final = ROOT / "src"
"""Where this tree's `sharestate` is; elsewhere the one that is installed is measured."""

_OPERATIONS: Final[Mapping[str, Timed]] = {
    operation_name(name, size): partial(operation, size)
    for what, operations in OPERATIONS.items()
    for (name, operation), size in product(operations.items(), compared_sizes(what))
}

OPERATION_NAMES: Final = tuple(_OPERATIONS)
"""Every operation, on a small share partition and on a large one."""

TIMED: Final[Mapping[str, tuple[Timed, int]]] = {
    **{
        as_read(name, reading): (partial(repeated, name, reading=reading), repetitions)
        for reading, (name, (_, repetitions)) in product(READINGS, WORKLOADS.items())
    },
    **{name: (operation, 1) for name, operation in _OPERATIONS.items()},
}
"""What makes the operations that are timed, and how many batches each of them handles."""

_TURNS: Final = 10
_TURN_S: Final = 0.1
_TURN_AND_SETTING_S: Final = 0.3
"""How much CPU time a turn may take with what is not timed. [s]"""


class LibraryEndedError(Exception):
    """A process that measured the library ended instead of answering; it has said why on standard error."""


@frozen
class Library:
    """A process that measures one thing with one tree."""

    process: subprocess.Popen[str]
    """It answers each line with a figure."""

    def figure(self) -> float:
        """Return the CPU time of a batch in one turn, or the memory of a record. [µs or bytes]"""
        requests, responses = self.process.stdin, self.process.stdout
        if requests is None or responses is None:
            message = "both streams have to be pipes"
            raise ValueError(message)
        if self.process.poll() is None:
            requests.write("\n")
            requests.flush()
        if not (line := responses.readline()):
            message = f"the library could not be measured: {self.process.args!r} has ended"
            raise LibraryEndedError(message)
        return float(line)


@contextmanager
def started(source: Path, what: str) -> Iterator[Library]:
    """Yield a process that measures *what* with the `sharestate` in *source*, and stop it afterwards."""
    path = os.pathsep.join(filter(None, (str(source), str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "bench.jvm.library", what]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ | {"PYTHONPATH": path}) as child:
        try:
            yield Library(child)
        finally:
            child.kill()


def by_turns(sources: Sequence[Path], what: str) -> list[float]:
    """Return what *what* costs with each tree of *sources*: the median of as many turns. [µs or bytes]"""
    turns = 1 if what in MEMORY else _TURNS
    with ExitStack() as stack:
        libraries = [stack.enter_context(started(source, what)) for source in sources]
        if what not in MEMORY:
            for library in libraries:
                library.figure()  # the first turn warms up
        figures = [[library.figure() for library in libraries] for _ in range(turns)]
    return [median(figures) for figures in zip(*figures, strict=True)]


def turn(what: str, seconds: float = _TURN_S) -> float:
    """Run *what* until *seconds* of CPU time are spent, and return the median of what a batch took. [µs]"""
    timed, batches = TIMED[what]
    times: list[float] = []
    taken, first = 0.0, process_time()
    while not times or (taken < seconds and process_time() - first < _TURN_AND_SETTING_S):
        operations = list(timed())
        elapsed = cpu_time(operations)
        taken += elapsed
        times.append(elapsed / (len(operations) * batches))
    return median(times) * 1e6


def main() -> None:
    """Answer each line with a figure."""
    (what,) = sys.argv[1:]
    for _ in sys.stdin:
        figure = measured(MEMORY[what]) if what in MEMORY else turn(what)
        sys.stdout.write(f"{figure}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
