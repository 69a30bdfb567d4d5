"""Measuring both sides by turns, so that a machine that slows down for a while slows down both."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from attrs import frozen

from bench.jvm import library
from bench.jvm.kafka import HELD_AFTER, started
from bench.memory import MEMORY, measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.oracle.build import Oracle

MICROSECONDS: Final = "µs for a batch"
BYTES: Final = "bytes"


@frozen
class Pair:
    """What one thing costs on both sides, measured one right after the other."""

    what: str
    """A workload, or what takes memory."""

    unit: str
    """MICROSECONDS or BYTES."""

    kafka: float
    """What it costs in the JVM."""

    library: float
    """What it costs here."""

    later: float | None = None
    """What it costs in a JVM that has had time to compile all of it; None for memory."""

    @property
    def ratio(self) -> float:
        """The library's cost by Kafka's."""
        return self.library / self.kafka


@frozen
class Costs:
    """What one thing costs, over all rounds."""

    pairs: Sequence[Pair]
    """One for each round; at least one."""

    @property
    def kafka(self) -> float:
        """The median of Kafka's side."""
        return median(pair.kafka for pair in self.pairs)

    @property
    def library(self) -> float:
        """The median of the library's side."""
        return median(pair.library for pair in self.pairs)

    @property
    def later(self) -> float | None:
        """The median of the JVM that has compiled all; None where that was not measured."""
        later = [pair.later for pair in self.pairs if pair.later is not None]
        return median(later) if later else None

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The least, the median and the greatest ratio of a round."""
        ratios = [pair.ratio for pair in self.pairs]
        return min(ratios), median(ratios), max(ratios)


def rounds(oracle: Oracle, count: int, workloads: Iterable[str]) -> Iterator[Pair]:
    """Yield each of *workloads* as often as *count* says, with a new JVM for every round."""
    for _ in range(count):
        with started(oracle) as kafka:
            for workload in workloads:
                microseconds = kafka.microseconds(workload)
                mine = library.microseconds(workload)
                later = kafka.later(workload, microseconds)
                yield Pair(workload, MICROSECONDS, microseconds, mine, later)


def memory(oracle: Oracle) -> Iterator[Pair]:
    """Yield what a record in flight takes; once is enough, for memory does not vary."""
    for what in HELD_AFTER:
        with started(oracle) as kafka:
            yield Pair(what, BYTES, kafka.bytes_per_record(what), measured(MEMORY[what]))


def costs(pairs: Iterable[Pair], unit: str) -> dict[str, Costs]:
    """Return what everything that is counted in *unit* costs, in the order in which it was first measured."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.unit == unit:
            found.setdefault(pair.what, []).append(pair)
    return {what: Costs(measured) for what, measured in found.items()}
