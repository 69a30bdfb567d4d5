"""The comparison as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.jvm.comparing import BYTES, MICROSECONDS, costs
from bench.jvm.goals import MOST_BYTES, MOST_TIMES, verdict
from bench.tables import table
from bench.workloads import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.jvm.comparing import Costs, Pair

_NS_PER_US: Final = 1_000


def comparison(pairs: Sequence[Pair], about: Sequence[str], called: Mapping[str, tuple[float, float]]) -> str:
    """
    Return the comparison as Markdown.

    Args:
        pairs: What was measured.
        about: What it was measured with; lines.
        called: How many functions written in Python and in C a batch of each workload calls here.
    """
    parts = [about, *(part for part in (_time(pairs), _calls(pairs, called), _memory(pairs)) if part)]
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


def _calls(pairs: Sequence[Pair], called: Mapping[str, tuple[float, float]]) -> list[str]:
    rows = [
        (what, *(f"{count:,.0f}" for count in called[what]), f"{_NS_PER_US * cost.library / sum(called[what]):,.0f}")
        for what, cost in costs(pairs, MICROSECONDS).items()
    ]
    return [*table(("calls that a batch makes", "Python", "C", "ns for each"), rows)] if rows else []


def _memory(pairs: Sequence[Pair]) -> list[str]:
    rows = [
        (what, f"{cost.kafka:,.1f}", f"{cost.library:,.1f}", verdict(cost.library, MOST_BYTES.get(what)))
        for what, cost in costs(pairs, BYTES).items()
    ]
    return [*table(("memory for one", "Kafka: bytes", "library: bytes", "goal"), rows)] if rows else []
