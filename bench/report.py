"""The figures as tables: ratios first, because they say the same on every machine."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench.machine import python_build
from bench.memory import MEMORY, measured
from bench.operations import OPERATIONS, SERVED, SIZES, operation_name
from bench.rows import RECORDING
from bench.tables import table
from bench.timings import YARDSTICK, workload_name
from bench.workloads import EVERY_BATCH, RECORDS, RUNS, WHOLE, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyperf import BenchmarkSuite

_MICROSECOND = 1e-6


def report(suite: BenchmarkSuite) -> str:
    """Return what *suite* says, and how much memory things take, as Markdown."""
    parts = [_machine(suite), _workloads(suite), *(_operations(suite, what) for what in OPERATIONS), _memory()]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def _machine(suite: BenchmarkSuite) -> Iterator[str]:
    about, (begin, _) = suite.get_metadata(), suite.get_dates()
    yield f"{begin:%Y-%m-%d}; {about['cpu_model_name']}, {about['cpu_count']} cores;"
    yield from python_build()
    yield f"it takes {_seconds(suite, YARDSTICK) * 1e9:.0f} ns to call a function that does nothing."
    yield f"CPU time, median of {len(_rounds(suite, YARDSTICK))} rounds; ratios are taken round by round."


def _workloads(suite: BenchmarkSuite) -> Iterator[str]:
    rows = []
    for name in WORKLOADS:
        silent, every, recording = (workload_name(name, way) for way in (RUNS, EVERY_BATCH, RECORDING))
        rows.append(
            (
                name,
                _microseconds(suite, silent),
                _ratio(suite, silent, workload_name(WHOLE)),
                _ratio(suite, every, silent),
                _ratio(suite, recording, silent),
            )
        )
    yield from table((f"{RECORDS} records, acknowledged as", "µs", f"x {WHOLE}", EVERY_BATCH, RECORDING), rows)


def _operations(suite: BenchmarkSuite, what: str) -> Iterator[str]:
    if what == SERVED:
        yield from _served(suite)
        return
    smallest, *larger = SIZES[what]
    rows = [
        (
            name,
            _microseconds(suite, operation_name(name, smallest)),
            *(_ratio(suite, operation_name(name, size), operation_name(name, smallest)) for size in larger),
        )
        for name in OPERATIONS[what]
    ]
    yield from table((what, f"{smallest}: µs", *(f"{size:,}: x {smallest}" for size in larger)), rows)


def _served(suite: BenchmarkSuite) -> Iterator[str]:
    rows = [
        (name, *(f"{1 / _seconds(suite, operation_name(name, size)):,.0f}" for size in SIZES[SERVED]))
        for name in OPERATIONS[SERVED]
    ]
    yield from table((SERVED, *(f"{size:,}" for size in SIZES[SERVED])), rows)


def _memory() -> Iterator[str]:
    yield from table(
        ("memory for one", "bytes"), [(name, f"{measured(growth):,.1f}") for name, growth in MEMORY.items()]
    )


def _rounds(suite: BenchmarkSuite, name: str) -> list[float]:
    """Return the median of each round. [s]"""
    return [median(run.values) for run in suite.get_benchmark(name).get_runs()]


def _seconds(suite: BenchmarkSuite, name: str) -> float:
    return median(_rounds(suite, name))


def _microseconds(suite: BenchmarkSuite, name: str) -> str:
    return f"{_seconds(suite, name) / _MICROSECOND:,.1f}"


def _ratio(suite: BenchmarkSuite, name: str, base: str) -> str:
    pairs = zip(_rounds(suite, name), _rounds(suite, base), strict=True)
    return f"{median(seconds / base_seconds for seconds, base_seconds in pairs):,.2f}"
