"""The memory that in-flight records and pending writes take, as tracemalloc counts it."""

from __future__ import annotations

import gc
import tracemalloc
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.partitions import RELEASE, acknowledge, acquire, opened
from bench.workloads import RECORDS
from sharestate import AcknowledgementBatch, AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sharestate import SharePartition

_BATCHES: Final = 200
_SINGLES: Final = 10_000
_FIRSTS: Final = range(0, _BATCHES * RECORDS, RECORDS)


class Growth(NamedTuple):
    """Something that takes memory."""

    before: Callable[[SharePartition], None] | None
    """What happens to the share partition before memory is counted."""

    grow: Callable[[SharePartition], None]
    """What takes the memory that is counted."""

    things: int
    """How many records or writes it is for."""


def _hold_whole(partition: SharePartition) -> None:
    for first in _FIRSTS:
        acquire(partition, first, RECORDS)


def _hold_single(partition: SharePartition) -> None:
    """Let every record be a batch of its own, as in a log whose producer waits for each."""
    for offset in range(_SINGLES):
        acquire(partition, offset, 1)


def _hold_split(partition: SharePartition) -> None:
    _hold_whole(partition)
    for first in _FIRSTS:
        acknowledge(partition, first, first, RELEASE)


def _hold_mixed(partition: SharePartition) -> None:
    """Let no two neighbors look alike."""
    _hold_whole(partition)
    types = (AcknowledgeType.RELEASE, AcknowledgeType.REJECT) * (RECORDS // 2)
    for first in _FIRSTS:
        acknowledge(partition, first, first + RECORDS - 1, types)


def _write_batches(partition: SharePartition) -> None:
    for first in _FIRSTS:
        partition.acknowledge("m0", [AcknowledgementBatch(first, first + RECORDS - 1, RELEASE)], now_ms=0)


def _write_records(partition: SharePartition) -> None:
    for offset in range(1, RECORDS):
        partition.acknowledge("m0", [AcknowledgementBatch(offset, offset, RELEASE)], now_ms=0)


MEMORY: Final[Mapping[str, Growth]] = MappingProxyType(
    {
        "record of whole batches": Growth(None, _hold_whole, _BATCHES * RECORDS),
        "record of batches of one record": Growth(None, _hold_single, _SINGLES),
        "record of split batches": Growth(None, _hold_split, _BATCHES * RECORDS),
        "record of split batches, no two neighbors alike": Growth(None, _hold_mixed, _BATCHES * RECORDS),
        "pending write of a whole batch": Growth(_hold_whole, _write_batches, _BATCHES),
        "pending write of one record of a split batch": Growth(_hold_split, _write_records, RECORDS - 1),
    }
)
"""What is counted."""


def measured(growth: Growth) -> float:
    """Return how much memory one record or one write of *growth* takes. [bytes]"""
    partition = opened()
    if growth.before is not None:
        growth.before(partition)
    gc.collect()
    tracemalloc.start()
    growth.grow(partition)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / growth.things
