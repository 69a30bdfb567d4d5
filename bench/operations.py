"""
Single operations, each on share partitions of several sizes.

Every function prepares share partitions outside the clock and returns what is timed: operations that leave them nearly
as large as they were.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bench.partitions import ACCEPT, LAPSED_MS, RELEASE, acknowledge, acquire, filled, split
from sharestate import AcknowledgementBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sharestate import SharePartition

    Operation = Callable[[], object]
    Operations = Iterator[Operation]

_RECORDS: Final = 10
"""How many records each batch has. [records]"""


def _settings(batches: int) -> Iterator[tuple[SharePartition, range]]:
    """Yield share partitions, and the batches in the middle of each on which to operate: one in a hundred, or one."""
    for _ in range(max(1, 1_000 // batches)):
        count = max(1, batches // 100)
        yield filled(batches, size=_RECORDS), range(batches // 2, batches // 2 + count)


def _request(index: int, types: tuple[int, ...] = ACCEPT) -> AcknowledgementBatch:
    return AcknowledgementBatch(index * _RECORDS, index * _RECORDS + _RECORDS - 1, types)


def _acquire(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in range(len(chosen)):
            yield partial(acquire, partition, (batches + index) * _RECORDS, _RECORDS, "m0")


def _acknowledge(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in chosen:
            yield partial(partition.acknowledge, f"m{index}", [_request(index)], now_ms=0)


def _write_succeeded(batches: int) -> Operations:
    """Every second one lets the SPSO advance."""
    for partition, chosen in _settings(batches):
        for pair in zip(range(len(chosen)), chosen, strict=True):
            for index in pair:
                (write,) = partition.acknowledge(f"m{index}", [_request(index)], now_ms=0).writes
                yield partial(partition.write_succeeded, write.number)


def _release(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in chosen[:10]:
            yield partial(partition.release, f"m{index}", now_ms=0)


def _expire_next(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for _ in chosen:
            yield partial(partition.expire_next, now_ms=LAPSED_MS)


def _next_fetch_offset(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for _ in chosen:
            yield partition.next_fetch_offset


def _searched_fetch_offset(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        last = batches - 1
        acknowledge(partition, last * _RECORDS, batches * _RECORDS - 1, RELEASE, f"m{last}")
        for _ in chosen[:10]:
            yield partition.next_fetch_offset


def _advance_log_start(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in range(len(chosen)):
            yield partial(partition.advance_log_start, (index + 1) * _RECORDS)


def _acknowledge_one(records: int) -> Operations:
    """Of a split batch whose first half is done."""
    partition = split(records)
    half = records // 2
    acknowledge(partition, 0, half - 1)
    for offset in range(half, half + 100):
        yield partial(acknowledge, partition, offset, offset)


def _redeliver_one(records: int) -> Operations:
    for _ in range(5):
        partition = split(records)
        offset = records // 2
        acknowledge(partition, offset, offset, RELEASE)
        yield partial(acquire, partition, 0, records)


def _redeliver_all(records: int) -> Operations:
    for _ in range(5):
        partition = split(records)
        acknowledge(partition, 0, records - 1, RELEASE)
        yield partial(acquire, partition, 0, records)


OPERATIONS: Final[Mapping[str, Mapping[str, Callable[[int], Operations]]]] = MappingProxyType(
    {
        "with so many batches in flight": MappingProxyType(
            {
                "acquire a new batch": _acquire,
                "acknowledge a batch": _acknowledge,
                "a write succeeds": _write_succeeded,
                "expire_next": _expire_next,
                "advance_log_start by a batch": _advance_log_start,
                "next_fetch_offset, nothing to look for": _next_fetch_offset,
                "next_fetch_offset, found in the last batch": _searched_fetch_offset,
                "release of a member with one batch": _release,
            }
        ),
        "with so many records in a split batch": MappingProxyType(
            {
                "acknowledge a record, and its write succeeds": _acknowledge_one,
                "deliver one record again": _redeliver_one,
                "deliver all records again": _redeliver_all,
            }
        ),
    }
)
"""What is timed, by what grows."""

SIZES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    dict(zip(OPERATIONS, ((10, 2_000, 10_000), (500, 2_000, 10_000)), strict=True))
)
"""How large it is, from small to large."""
