"""
The rows of the table of record: what is counted, and how often it is done for one count.

Beside the workloads there are those that record transitions, one whose caller goes through them, the replay of a
history and the commands of share partitions that it gives, and batches that the KIP's write policy writes while others
are pending: both rows of the last two pairs should stay close to each other.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.partitions import ACCEPT, acquire, opened
from bench.workloads import READINGS, RECORDS, RUNS, WORKLOADS, as_read, repeated
from sharestate import KIP_932, AcknowledgementBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

RECORDING: Final = "recording transitions"
"""A workload whose writes are read as runs, and whose transitions are recorded."""

_TYPES: Final = "one entry, 500 types"

COMMANDS: Final = "an event of a history: the share partition's own commands"
REPLAYED: Final = "an event of a history: replayed"

_EVENTS: Final = 500
"""The length of the history that is replayed. [events]"""

_RECORDS: Final = 10
"""How many records each batch has beside which writes are pending. [records]"""

_PENDING: Final = (10, 1_000)


class Row(NamedTuple):
    """
    What is counted.

    Attributes:
        repeated: Prepares it for a number of times, and yields one operation that does it so often.
        times: How often it is done for one count of instructions.
        size: How many pieces that is each time; what is said of the row is what one of them takes.
    """

    repeated: Callable[[int], Iterator[Callable[[], object]]]
    times: int
    size: int = 1


def _workload(name: str, times: int, *, reading: str = RUNS, recording: bool = False) -> Iterator[Callable[[], object]]:
    return repeated(name, reading=reading, recording=recording, times=times)


def _transitions_looked_at(name: str, times: int) -> Iterator[Callable[[], object]]:
    """Yield what does a workload that makes one call, and goes through all transitions: they are made only then."""
    calls, _ = WORKLOADS[name]
    partition = opened(recording=True)

    def run() -> None:
        for first in range(0, RECORDS * times, RECORDS):
            (batches,) = calls(first)
            acquired = acquire(partition, first, RECORDS)
            acknowledged = partition.acknowledge("m0", batches, now_ms=0)
            (write,) = acknowledged.writes
            for effects in (acquired, acknowledged, partition.write_succeeded(write.number)):
                deque(effects.transitions, 0)

    yield run


def _commands(times: int) -> Iterator[Callable[[], object]]:
    from bench.history import noted, run  # noqa: PLC0415 - loads pyarrow
    from sharestate.history.synthetic import life  # noqa: PLC0415

    partitions = noted(life(1, _EVENTS))
    prepared = [command for _ in range(times) for each in partitions for command in each.repeated()]
    yield partial(run, prepared)


def _replay(times: int) -> Iterator[Callable[[], object]]:
    from bench.history import fold  # noqa: PLC0415
    from sharestate.history.synthetic import life  # noqa: PLC0415

    events = life(1, _EVENTS)

    def run() -> None:
        for _ in range(times):
            fold(events)

    yield run


def _beside_pending(pending: int, times: int) -> Iterator[Callable[[], object]]:
    """Yield what acknowledges a batch, and has the oldest write succeed, while as many others are *pending*."""
    partition = opened(profile=KIP_932)
    firsts = range(0, (pending + times) * _RECORDS, _RECORDS)
    for first in firsts:
        acquire(partition, first, _RECORDS)
    ranges = [[AcknowledgementBatch(first, first + _RECORDS - 1, ACCEPT)] for first in firsts]
    numbers = [
        write.number for each in ranges[:pending] for write in partition.acknowledge("m0", each, now_ms=0).writes
    ]

    def run() -> None:
        for each in ranges[pending:]:
            (write,) = partition.acknowledge("m0", each, now_ms=0).writes
            numbers.append(write.number)
            partition.write_succeeded(numbers.pop(0))

    yield run


OF_RECORD: Final[Mapping[str, Row]] = MappingProxyType(
    {
        **{name: Row(partial(_workload, name), times) for name, (_, times) in WORKLOADS.items()},
        **{
            as_read(name, RECORDING): Row(partial(_workload, name, recording=True), times)
            for name, (_, times) in WORKLOADS.items()
        },
        as_read(_TYPES, f"{RECORDING}, each looked at"): Row(partial(_transitions_looked_at, _TYPES), 20),
        COMMANDS: Row(_commands, 6, _EVENTS),
        REPLAYED: Row(_replay, 6, _EVENTS),
        **{
            f"KIP_932: a batch beside {pending:,} pending writes": Row(partial(_beside_pending, pending), 60)
            for pending in _PENDING
        },
    }
)
"""What the table of record has, by name: batches of 500 records unless the name says what."""

ROWS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        **OF_RECORD,
        **{
            as_read(name, reading): Row(partial(_workload, name, reading=reading), times)
            for name, (_, times) in WORKLOADS.items()
            for reading in READINGS
        },
    }
)
"""All that can be counted."""
