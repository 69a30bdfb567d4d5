"""
Records that keep failing are delivered in ever smaller pieces, the last time each one alone.

A batch that keeps failing may hold one record that its consumers cannot process.

Source:
    SharePartition.shouldThrottleRecordsDelivery, acquireSubsetBatchRecords (Kafka 4.3.1; KAFKA-17541).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell

_LEAST_THRESHOLD: Final = 2
"""Records are never throttled before their third delivery. [deliveries]"""

_LEAST_LIMIT: Final = 3
"""A limit below this leaves no delivery to set apart. [deliveries]"""


def threshold(delivery_count_limit: int) -> int:
    """
    Return the delivery count from which on records are throttled (rule 20.3).

    >>> [threshold(limit) for limit in (2, 5, 10)]
    [2, 3, 5]
    """
    return max(_LEAST_THRESHOLD, (delivery_count_limit + 1) // 2)


def is_throttled(cell: Cell, least: int) -> bool:
    """Return whether a record could be acquired and has reached the threshold *least* (rule 20.3)."""
    return cell.is_acquirable and cell.delivery_count >= least


def piece(batch_size: int, delivery_count: int, delivery_count_limit: int) -> int:
    """
    Return how many records of a throttled batch are delivered at once (rule 20.3).

    Half of the batch at the threshold, and half of that for each delivery more. As in Kafka its size is that of the
    whole batch, terminal records included.

    >>> [piece(16, count, 10) for count in (5, 6, 7, 8, 9)]
    [8, 4, 2, 1, 1]
    """
    return max(1, batch_size >> (delivery_count - threshold(delivery_count_limit) + 1))


def comes_alone(delivery_count: int, delivery_count_limit: int) -> bool:
    """Return whether the next delivery is the last one, which is of one record (rule 20.3)."""
    return delivery_count_limit >= _LEAST_LIMIT and delivery_count == delivery_count_limit - 1


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
    # rule 20.3
    least = threshold(delivery_count_limit)
    taken, cap = 0, None
    for first, last, cell in batch.parts(first_offset, last_offset):
        if not cell.is_acquirable:
            continue
        count = cell.delivery_count
        is_last = comes_alone(count, delivery_count_limit)
        if is_last and taken:  # a record on its last delivery takes no healthy ones with it
            return
        if cap is None and count >= least:  # the first run at the threshold decides
            cap = piece(batch.size, count, delivery_count_limit)
        stops = [stop - taken for stop in (cap, budget) if stop is not None and stop > taken]
        size = min([1 if is_last else last - first + 1, *stops])
        yield first, first + size - 1, cell
        taken += size
        if is_last or size in stops:
            return
