"""
Spec 7.8, 7.9 and 20.1: records that nobody has acquired before.

The limit is rounded up to a batch of the log. In batch_optimized mode the member gets all of that; in record_limit mode
it gets as many as it wants, and the rest is cached as available, never delivered.

Source:
    SharePartition.acquireNewBatchRecords, createBatches (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.errors import SplitLimitError
from sharestate.partition.batch import Batch
from sharestate.partition.cells import unowned
from sharestate.partition.gaps import active_window
from sharestate.values.records import AcquiredRecords, AcquireMode, RecordState
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.acquisition import Acquisition
    from sharestate.partition.ledger import Ledger

_NEVER_DELIVERED = unowned(RecordState.AVAILABLE, 0)


class NewBatches:
    """The step that acquires a range of the log in which nothing is cached."""

    __slots__ = ("count", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, count: int) -> None:
        """Plan to cache the range first_offset..last_offset and to acquire its first *count* records."""
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.count = count

    def take(self, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
        """Cache the range, and move the SPSO and the SPEO to it where they belong."""
        if self.count < self.last_offset - self.first_offset + 1:
            acquired = [self._add_partly(ledger, acquisition.member_id)]
        else:
            ranges = self._ranges(acquisition)
            acquired = [_add(ledger, acquisition.member_id, first, last) for first, last in ranges]
        if ledger.in_flight.first.first_offset == self.first_offset:
            ledger.start_offset = self.first_offset
        ledger.end_offset = max(ledger.end_offset, self.last_offset)
        return acquired

    def _ranges(self, acquisition: Acquisition) -> Iterator[tuple[int, int]]:
        """Cut the range before batches of the log, so that each piece has batch_size offsets at least."""
        first = self.first_offset
        size, log = acquisition.batch_size, acquisition.log
        if acquisition.mode is AcquireMode.BATCH_OPTIMIZED and self.count > size:
            for index in range(acquisition.log_index(first) + 1, len(log)):
                base = log[index].first_offset
                if base > self.last_offset:
                    break
                if base - first >= size:
                    yield first, base - 1
                    first = base
        yield first, self.last_offset

    def _add_partly(self, ledger: Ledger, member_id: str) -> AcquiredRecords:
        first, last = self.first_offset, self.first_offset + self.count - 1
        batch = Batch(first, self.last_offset, [], is_split=True)
        lock = ledger.locks.create(ledger.lock_deadline_ms, batch, first, last, self.count)
        held = _NEVER_DELIVERED.acquired(member_id, lock)
        batch.cells += [held] * self.count + [_NEVER_DELIVERED] * (self.last_offset - last)
        ledger.in_flight.add(batch)
        ledger.find_next = True
        if ledger.chronicle is not None:
            ledger.chronicle.tell(first, last, held, Cause.ACQUIRED)
            ledger.chronicle.tell(last + 1, self.last_offset, _NEVER_DELIVERED, Cause.CACHED)
        return AcquiredRecords(first, last, held.delivery_count)


def plan_new(ledger: Ledger, acquisition: Acquisition, first_offset: int, last_offset: int, limit: int) -> NewBatches:
    """
    Plan to acquire *limit* records of a range in which nothing is cached.

    Raises:
        SplitLimitError: A batch of the log is too large to be kept record by record.
    """
    if limit < last_offset - first_offset + 1:
        rounded = _log_batch_end(acquisition, first_offset + limit - 1)
        last_offset = rounded if active_window(ledger) is None else min(rounded, last_offset)
    size = last_offset - first_offset + 1
    if acquisition.mode is AcquireMode.BATCH_OPTIMIZED or size <= limit:
        return NewBatches(first_offset, last_offset, size)
    if size > ledger.split_limit:
        message = f"the batch {first_offset}-{last_offset} is too large to be split"
        raise SplitLimitError(message, first_offset, last_offset, ledger.split_limit)
    return NewBatches(first_offset, last_offset, limit)


def _log_batch_end(acquisition: Acquisition, offset: int) -> int:
    index = acquisition.log_index(offset)
    return max(offset, acquisition.log[index].last_offset) if index >= 0 else offset


def _add(ledger: Ledger, member_id: str, first_offset: int, last_offset: int) -> AcquiredRecords:
    batch = Batch(first_offset, last_offset, [])
    lock = ledger.locks.create(ledger.lock_deadline_ms, batch, first_offset, last_offset, 1)
    held = _NEVER_DELIVERED.acquired(member_id, lock)
    batch.cells.append(held)
    ledger.in_flight.add(batch)
    if ledger.chronicle is not None:
        ledger.chronicle.tell(first_offset, last_offset, held, Cause.ACQUIRED)
    return AcquiredRecords(first_offset, last_offset, held.delivery_count)
