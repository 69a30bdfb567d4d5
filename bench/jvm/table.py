"""The comparison as tables."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from bench.jvm.comparing import BYTES, INSTRUCTIONS, LOAD, MICROSECONDS, NANOSECONDS, costs
from bench.jvm.goals import MOST_BYTES, MOST_TIMES, verdict
from bench.machine import unease
from bench.tables import table
from bench.workloads import READINGS, RECORDS, RUNS, WORKLOADS, as_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.jvm.comparing import Costs, Round

    Column = tuple[str, str]  # the head and the figure

_NS_PER_US: Final = 1_000
_THOUSAND: Final = 1_000
_WORKLOADS: Final = frozenset(as_read(name, reading) for name in WORKLOADS for reading in READINGS)


def comparison(measured: Sequence[Round], about: Sequence[str], called: Mapping[str, tuple[float, float]]) -> str:
    """
    Return the comparison as Markdown.

    Args:
        measured: What was measured.
        about: What it was measured with; lines.
        called: How many functions written in Python and in C a batch of each workload calls here.
    """
    uneasy = _unease(measured)
    tables = (
        _machine(measured),
        *(_workloads(measured, reading, at_ease=uneasy is None) for reading in READINGS),
        _operations(measured),
        _instructions(measured),
        _calls(measured, called),
        _memory(measured),
    )
    if uneasy:
        about = [*about, f"The machine was uneasy ({uneasy}): ratios are not judged; instructions are."]
    parts = [about, *(part for part in tables if part)]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def _unease(measured: Sequence[Round]) -> str | None:
    calibrations, loads = (
        [[round_.library for round_ in cost.rounds] for cost in costs(measured, unit).values()]
        for unit in (NANOSECONDS, LOAD)
    )
    return unease(calibrations, [load for of_one in loads for load in of_one])


def _machine(measured: Sequence[Round]) -> list[str]:
    rows = {
        f"{what}: {unit}": [*_machine_columns([round_.library for round_ in cost.rounds])]
        for unit in (NANOSECONDS, LOAD)
        for what, cost in costs(measured, unit).items()
    }
    return _table("the machine itself", rows)


def _machine_columns(figures: Sequence[float]) -> Iterator[Column]:
    yield "median", f"{median(figures):.1f}"
    yield "from", f"{min(figures):.1f}"
    yield "to", f"{max(figures):.1f}"


def _workloads(measured: Sequence[Round], reading: str, *, at_ease: bool) -> list[str]:
    timed = costs(measured, MICROSECONDS)
    names = {name: as_read(name, reading) for name in WORKLOADS}
    rows = {name: [*_columns(what, timed[what], at_ease=at_ease)] for name, what in names.items() if what in timed}
    return _table(f"{RECORDS} records; {reading}", rows)


def _operations(measured: Sequence[Round]) -> list[str]:
    timed = costs(measured, MICROSECONDS)
    rows = {what: [*_columns(what, cost, at_ease=True)] for what, cost in timed.items() if what not in _WORKLOADS}
    return _table("one operation (with so many batches or records)", rows)


def _instructions(measured: Sequence[Round]) -> list[str]:
    timed = costs(measured, MICROSECONDS)
    rows = {
        what: [*_instruction_columns(cost, timed.get(what))] for what, cost in costs(measured, INSTRUCTIONS).items()
    }
    return _table("thousands of instructions for a batch", rows)


def _instruction_columns(cost: Costs, timed: Costs | None) -> Iterator[Column]:
    if cost.base is not None:
        yield "base", f"{cost.base / _THOUSAND:,.0f}"
    yield "library", f"{cost.library / _THOUSAND:,.0f}"
    if cost.to_base:
        yield "change", _percent(median(cost.to_base))
    if timed is not None:
        yield "for each ns", f"{cost.library / (_NS_PER_US * timed.library):.1f}"


def _columns(what: str, cost: Costs, *, at_ease: bool) -> Iterator[Column]:
    if cost.kafka is not None:
        yield "Kafka: µs", f"{cost.kafka:,.1f}"
        yield "later", f"{cost.later or cost.kafka:,.1f}"
    if cost.base is not None:
        yield "base: µs", f"{cost.base:,.1f}"
    yield "library: µs", f"{cost.library:,.1f}"
    if cost.base_to_kafka:
        yield "base ratio", f"{median(cost.base_to_kafka):.2f}"
    if ratios := cost.to_kafka:
        yield "ratio", f"{median(ratios):.2f}"
    if ratios := cost.to_base or ratios:
        if cost.to_base:
            yield "change", _percent(median(ratios))
        form = _percent if cost.to_base else "{:.2f}".format
        yield "from", form(ratios[0])
        yield "to", form(ratios[-1])
    if cost.to_kafka:
        yield "goal", verdict(median(cost.to_kafka), MOST_TIMES.get(what), at_ease=at_ease)


def _percent(ratio: float) -> str:
    """
    Return by how much more or less something costs.

    >>> _percent(1.049), _percent(0.5)
    ('+4.9 %', '-50.0 %')
    """
    return f"{100 * (ratio - 1):+.1f} %"


def _calls(measured: Sequence[Round], called: Mapping[str, tuple[float, float]]) -> list[str]:
    timed = costs(measured, MICROSECONDS)
    rows = {
        name: [
            ("Python", f"{in_python:,.0f}"),
            ("C", f"{in_c:,.0f}"),
            ("ns for each", f"{_NS_PER_US * timed[as_read(name, RUNS)].library / (in_python + in_c):,.0f}"),
        ]
        for name, (in_python, in_c) in called.items()
    }
    return _table("calls that a batch makes", rows)


def _memory(measured: Sequence[Round]) -> list[str]:
    rows = {what: [*_memory_columns(what, cost)] for what, cost in costs(measured, BYTES).items()}
    return _table("memory for one", rows)


def _memory_columns(what: str, cost: Costs) -> Iterator[Column]:
    yield "Kafka: bytes", f"{cost.kafka:,.1f}"
    if cost.base is not None:
        yield "base: bytes", f"{cost.base:,.1f}"
    yield "library: bytes", f"{cost.library:,.1f}"
    yield "goal", verdict(cost.library, MOST_BYTES.get(what))


def _table(what: str, rows: Mapping[str, Sequence[Column]]) -> list[str]:
    """Return a table of *rows*, which all have the same columns; nothing if there are none."""
    if not rows:
        return []
    heads = [head for head, _ in next(iter(rows.values()))]
    return [*table((what, *heads), [(name, *(figure for _, figure in row)) for name, row in rows.items()])]
