"""What a fetch reads of a log of which more and more is visible."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from sharestate.history import AppendedBatch, Event
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import RecordBatch
from sharestate.values.transactions import TransactionIndex


class VisibleLog:
    """
    All batches of a log that are ever visible. How many are, at a time, is up to the caller.

    Args:
        events: The events of kind ``log``, in order.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        """Append the batches of *events*."""
        self._batches: list[AppendedBatch] = []
        self._records: list[RecordBatch] = []
        self._stable: list[int] = [0]
        self._transactions = TransactionIndex()
        self._until: dict[int, int] = {}
        self.earliest_us: list[int] = []
        for event in events:
            for batch in (event.request or {})["batches"]:
                self._batches.append(batch)
                self._records.append(batch.record_batch)
                self._transactions.append(batch.record_batch)
                self._stable.append(self._transactions.last_stable_offset)
                self.earliest_us.append(event.at_us or 0)
            self._until[event.seq] = len(self._batches)
        self._ends = [batch.last_offset for batch in self._batches]

    def count_after(self, event: Event) -> int:
        """Return how many batches are visible after an event."""
        return self._until[event.seq]

    def count_with(self, offset: int) -> int:
        """Return how many batches are visible at the least if *offset* was read."""
        return min(bisect_left(self._ends, offset) + 1, len(self._ends))

    def end_offset(self, count: int) -> int:
        """Return the offset after the first *count* batches."""
        return self._ends[count - 1] + 1 if count else 0

    def readable(self, offset: int, count: int, *, is_committed: bool) -> list[AppendedBatch]:
        """Return what a fetch at *offset* can read of the first *count* batches: no more than one segment file."""
        first = bisect_left(self._ends, offset)
        if is_committed:
            count = min(count, bisect_left(self._ends, self._stable[count]))
        found = self._batches[first:count]
        return [batch for batch in found if batch.segment == found[0].segment]

    def fetched(self, offset: int, batches: list[AppendedBatch], isolation: IsolationLevel) -> FetchedRecords:
        """Return *batches* as they were fetched."""
        aborted: tuple[Any, ...] = ()
        if batches and isolation is IsolationLevel.READ_COMMITTED:
            aborted = self._transactions.aborted_in(batches[0].first_offset, batches[-1].last_offset)
        records = [batch.record_batch for batch in batches]
        return FetchedRecords(fetch_offset=offset, batches=records, aborted_transactions=aborted, isolation=isolation)

    def aborted_before(self, batches: list[AppendedBatch], offset: int) -> bool:
        """Return whether a batch of an aborted transaction begins before *offset* and ends at it or later."""
        return any(
            batch.first_offset < offset <= batch.last_offset
            and any(
                each.producer_id == batch.producer_id and each.first_offset <= batch.first_offset
                for each in self._transactions.aborted_in(batch.first_offset, batch.last_offset)
            )
            for batch in batches
        )


def prefixes(batches: list[AppendedBatch], max_bytes: int, partitions: int) -> Iterator[int]:
    """
    Yield how many of *batches* a fetch may have read, what is likely first.

    Of one partition it reads what fits, and always the first batch. Several partitions share the bytes: of how
    many, and how much those before have left, is not known.
    """
    sums = list(accumulate(batch.bytes or 0 for batch in batches))
    likely = dict.fromkeys(
        max(1, sum(each <= max_bytes // sharing for each in sums)) for sharing in range(1, partitions + 1)
    )
    if not batches:
        yield 0
        return
    yield from likely
    if partitions > 1:
        yield from (count for count in range(len(batches), -1, -1) if count not in likely)
