"""
Spec 20.3: records that keep failing are delivered in ever smaller pieces, the last time each one alone.

A batch that was delivered half as often as the limit allows may hold one record that its consumers cannot process.
From then on it is halved at each delivery, and a record on its last delivery is delivered alone, so that it takes no
healthy ones with it.

Source:
    KAFKA-17541; SharePartition.shouldThrottleRecordsDelivery, acquireSubsetBatchRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell

_LEAST_THRESHOLD: Final = 2
"""Records are never throttled before their third delivery. [deliveries]"""

_LEAST_LIMIT: Final = 3
"""A limit below this leaves no delivery to set apart. [deliveries]"""


def threshold(delivery_count_limit: int) -> int:
    """
    Return the delivery count from which on records are throttled.

    >>> [threshold(limit) for limit in (2, 5, 10)]
    [2, 3, 5]
    """
    return max(_LEAST_THRESHOLD, (delivery_count_limit + 1) // 2)


def is_throttled(batch: Batch, first_offset: int, last_offset: int, delivery_count_limit: int) -> bool:
    """Return whether something acquirable of *batch* within a range has been delivered too often."""
    low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
    counts = (cell.delivery_count for cell in dict.fromkeys(batch.part(low, high)) if cell.is_acquirable)
    return max(counts, default=0) >= threshold(delivery_count_limit)


def offered_runs(
    batch: Batch, first_offset: int, last_offset: int, delivery_count_limit: int, budget: int | None
) -> Iterator[tuple[int, int, Cell]]:
    """
    Go through the runs of equal records of a range that one acquisition may take of *batch*, stopping where it must.

    Args:
        batch: The batch, whole or split.
        first_offset: The first offset of the range, clipped to the batch.
        last_offset: The last offset of the range, clipped to the batch.
        delivery_count_limit: ``share.delivery.count.limit``.
        budget: How many records may be taken at most; None for any number. [records]

    Yields:
        (first offset, last offset, cell) of each run.
    """
    last_delivery = delivery_count_limit - 1 if delivery_count_limit >= _LEAST_LIMIT else None
    taken, cap = 0, None
    for first, last, cell in batch.runs(first_offset, last_offset):
        if not cell.is_acquirable:
            continue
        count = cell.delivery_count
        is_last = count == last_delivery
        if is_last and taken:
            return
        if cap is None and count >= threshold(delivery_count_limit):
            cap = max(1, batch.size >> (count - threshold(delivery_count_limit) + 1))
        stops = [stop - taken for stop in (cap, budget) if stop is not None and stop > taken]
        size = min([1 if is_last else last - first + 1, *stops])
        yield first, first + size - 1, cell
        taken += size
        if is_last or size in stops:
            return
