"""The comparison as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.jvm.comparing import BYTES, MICROSECONDS, costs
from bench.jvm.goals import MOST_BYTES, MOST_TIMES, verdict
from bench.tables import table
from bench.workloads import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.jvm.comparing import Costs, Pair


def comparison(pairs: Sequence[Pair], about: Sequence[str]) -> str:
    """Return the lines of *about*, then what *pairs* say of time and of memory, as Markdown."""
    parts = [about, *(part for part in (_time(pairs), _memory(pairs)) if part)]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def _time(pairs: Sequence[Pair]) -> list[str]:
    rows = [(what, *_time_row(cost), _goal(what, cost)) for what, cost in costs(pairs, MICROSECONDS).items()]
    head = (f"{RECORDS} records, acknowledged as", "Kafka: µs", "later", "library: µs", "ratio", "from", "to", "goal")
    return [*table(head, rows)] if rows else []


def _time_row(cost: Costs) -> Iterator[str]:
    yield from (f"{figure:,.1f}" for figure in (cost.kafka, cost.later or cost.kafka, cost.library))
    least, median, greatest = cost.ratios
    yield from (f"{ratio:.2f}" for ratio in (median, least, greatest))


def _goal(workload: str, cost: Costs) -> str:
    _, ratio, _ = cost.ratios
    return verdict(ratio, MOST_TIMES.get(workload))


def _memory(pairs: Sequence[Pair]) -> list[str]:
    rows = [
        (what, f"{cost.kafka:,.1f}", f"{cost.library:,.1f}", verdict(cost.library, MOST_BYTES.get(what)))
        for what, cost in costs(pairs, BYTES).items()
    ]
    return [*table(("memory for one", "Kafka: bytes", "library: bytes", "goal"), rows)] if rows else []
