"""
Six ways to acknowledge 500 records, from one range to one call for each record.

Each is acquired, acknowledged and answered through the public commands; making the public values is a part of it, and
so is reading the writes, for a caller has to store them. All of it is done at the end, so a share partition goes on
with the next 500 as if it were new.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bench.partitions import ACCEPT, acknowledge_all, acquire, opened
from sharestate import AcknowledgementBatch, AcknowledgeType, WriteShareGroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Calls = Iterable[list[AcknowledgementBatch]]

RECORDS: Final = 500
"""``max.poll.records`` of Kafka's consumer. [records]"""

_RANGES: Final = 10


def _whole(first: int) -> Calls:
    return ([AcknowledgementBatch(first, first + RECORDS - 1, ACCEPT)],)


def _ranges(first: int) -> Calls:
    size = RECORDS // _RANGES
    return ([AcknowledgementBatch(low, low + size - 1, ACCEPT) for low in range(first, first + RECORDS, size)],)


def _types(first: int) -> Calls:
    types = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT) * (RECORDS // 2)
    return ([AcknowledgementBatch(first, first + RECORDS - 1, types)],)


def _entries(first: int) -> Calls:
    return (_singles(range(first, first + RECORDS)),)


def _odd_then_even(first: int) -> Calls:
    return _singles(range(first + 1, first + RECORDS, 2)), _singles(range(first, first + RECORDS, 2))


def _calls(first: int) -> Iterator[list[AcknowledgementBatch]]:
    return (_singles((offset,)) for offset in range(first, first + RECORDS))


def _singles(offsets: Iterable[int]) -> list[AcknowledgementBatch]:
    return [AcknowledgementBatch(offset, offset, ACCEPT) for offset in offsets]


WHOLE: Final = "whole"

WORKLOADS: Final[Mapping[str, tuple[Callable[[int], Calls], int]]] = MappingProxyType(
    {
        WHOLE: (_whole, 600),
        "10 ranges in one call": (_ranges, 80),
        "one entry, 500 types": (_types, 60),
        "500 entries in one call": (_entries, 12),
        "odd, then even offsets": (_odd_then_even, 12),
        "500 calls of one offset": (_calls, 3),
    }
)
"""What is acknowledged call by call from a first offset on, and how often it is repeated for one figure."""


RUNS: Final = "runs"
EVERY_BATCH: Final = "every state batch read"


def _every_batch(write: WriteShareGroupState) -> None:
    for _ in write.state_batches:
        pass


READINGS: Final[Mapping[str, Callable[[WriteShareGroupState], object]]] = MappingProxyType(
    {
        # A tree without runs has made its tuple before anybody asks for it.
        RUNS: attrgetter("runs" if hasattr(WriteShareGroupState, "runs") else "state_batches"),
        EVERY_BATCH: _every_batch,
    }
)
"""What the caller reads of every write. State batches are made when one is first looked at: that is no saving."""


def as_read(name: str, reading: str) -> str:
    """Return the name of a workload whose caller reads writes in one way."""
    return f"{name}; {reading}"


def repeated(
    name: str, *, reading: str = RUNS, recording: bool = False, times: int | None = None
) -> Iterator[Callable[[], None]]:
    """Yield the one operation to time: a workload, as many *times* as WORKLOADS says unless given."""
    calls, usual = WORKLOADS[name]
    repetitions = usual if times is None else times
    read = READINGS[reading]
    partition = opened(recording=recording)

    def run() -> None:
        for first in range(0, RECORDS * repetitions, RECORDS):
            acquire(partition, first, RECORDS)
            for batches in calls(first):
                acknowledge_all(partition, batches, read=read)
        if partition.start_offset != RECORDS * repetitions:
            message = f"{name}: not everything is done, the SPSO stands at {partition.start_offset}"
            raise RuntimeError(message)

    yield run
