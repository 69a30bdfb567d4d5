"""
Measure every timing once, each in a process of its own: ``python -m bench.timings --append FILE``.

pyperf starts the processes and keeps the figures. They are CPU time, because other work runs on most machines, and the
caller asks for several rounds, because a machine that slows down for a while then slows down every row alike.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

import pyperf

from bench.clock import cpu_time
from bench.machine import REPEATED, empty_calls
from bench.operations import OPERATIONS, SIZES, operation_name
from bench.rows import RECORDING
from bench.workloads import READINGS, RECORDS, RUNS, WORKLOADS, as_read, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Timed = Callable[[], Iterator[Callable[[], object]]]


YARDSTICK: Final = "an empty call"
"""Calling a function that does nothing: what a machine and a build of Python make of everything else."""


def timings() -> Iterator[tuple[str, Timed, int]]:
    """Yield the name of each timing, what makes the operations that it times, and how many batches each handles."""
    yield YARDSTICK, empty_calls, REPEATED
    for name, (_, repetitions) in WORKLOADS.items():
        for reading in READINGS:
            yield workload_name(name, reading), partial(repeated, name, reading=reading), repetitions
        yield workload_name(name, RECORDING), partial(repeated, name, recording=True), repetitions
    for what, operations in OPERATIONS.items():
        for (name, operation), size in product(operations.items(), SIZES[what]):
            yield operation_name(name, size), partial(operation, size), 1


def workload_name(name: str, way: str = RUNS) -> str:
    """Return how the timing of a workload is called: *way* is how writes are read, or RECORDING."""
    return f"{RECORDS} records: {as_read(name, way)}"


def cpu_seconds(loops: int, timed: Timed, batches: int) -> float:
    """Return the CPU time of *loops* operations, each as long as the average of those that *timed* yields. [s]"""
    seconds, count = 0.0, 0
    for _ in range(loops):
        operations = list(timed())
        seconds += cpu_time(operations)
        count += len(operations)
    return seconds / (count * batches) * loops


def main() -> None:
    """Measure every timing in a new process."""
    runner = pyperf.Runner(program_args=("-m", "bench.timings"), processes=1, values=5, warmups=1, loops=1)
    for name, timed, batches in timings():
        runner.bench_time_func(name, cpu_seconds, timed, batches)


if __name__ == "__main__":
    main()
