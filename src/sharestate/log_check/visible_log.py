"""What a fetch reads of a log of which more and more is visible."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple

from sharestate.history import AppendedBatch, Event
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AcquiredRecords, RecordBatch
from sharestate.values.transactions import TransactionIndex

MAX_BYTES: Final = 2**31 - 1
"""What a fetch reads at the most if it does not say. [bytes]"""


class Way(NamedTuple):
    """
    A way in which a fetch may have read.

    Attributes:
        others: How many records partitions before this one had acquired. [records]
        batches: How many batches were read; None for as many as is likely.
        visible: How many batches of the log were visible.
        offset: The offset that was read; None for the next fetch offset.
    """

    others: int
    batches: int | None
    visible: int
    offset: int | None = None


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
        self._events: list[Event] = []
        self._counts: list[int] = [0]
        self.earliest_us: list[int] = []
        for event in events:
            for batch in (event.request or {})["batches"]:
                self._batches.append(batch)
                self._records.append(batch.record_batch)
                self._transactions.append(batch.record_batch)
                self._stable.append(self._transactions.last_stable_offset)
                self.earliest_us.append(event.at_us or 0)
            self._until[event.seq] = len(self._batches)
            self._events.append(event)
            self._counts.append(len(self._batches))
        self._ends = [batch.last_offset for batch in self._batches]

    def count_after(self, event: Event) -> int:
        """Return how many batches are visible after an event."""
        return self._until[event.seq]

    def events_until(self, count: int) -> list[Event]:
        """Return the events that make the first *count* batches visible, in order."""
        return self._events[: bisect_left(self._counts, count)]

    def count_with(self, offset: int) -> int:
        """Return how many batches are visible at the least if *offset* was read."""
        return min(bisect_left(self._ends, offset) + 1, len(self._ends))

    def fetched_us(self, fetched: FetchedRecords, earliest_us: int, latest_us: int) -> int:
        """Return when a fetch was done at the earliest, so that no lock seems to expire too early. [µs since 1970]"""
        if not fetched.batches:
            return earliest_us
        there_us = self.earliest_us[self.count_with(fetched.batches[-1].last_offset) - 1]
        return max(earliest_us, min(there_us, latest_us))

    def end_offset(self, count: int) -> int:
        """Return the offset after the first *count* batches."""
        return self._ends[count - 1] + 1 if count else 0

    def is_readable(self, offset: int, count: int, isolation: IsolationLevel) -> bool:
        """Return whether a fetch at *offset* reads anything of the first *count* batches."""
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        end = self._stable[count] if is_committed else self.end_offset(count)
        return offset < end

    def readable(self, offset: int, count: int, isolation: IsolationLevel) -> list[AppendedBatch]:
        """Return what a fetch at *offset* can read of the first *count* batches: no more than one segment file."""
        first = bisect_left(self._ends, offset)
        if isolation is IsolationLevel.READ_COMMITTED:
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


def counts_read(
    request: Mapping[str, Any], acquired: tuple[AcquiredRecords, ...], batches: list[AppendedBatch]
) -> list[int]:
    """Return how many of *batches* may have been read, so that *acquired* was among them; what is likely first."""
    counts = list(prefixes(batches, request.get("max_bytes", MAX_BYTES), request.get("partitions", 1)))
    if acquired:
        last = acquired[-1].last_offset
        return [count for count in counts if count and batches[count - 1].last_offset >= last]
    return sorted(counts, key=bool)  # nothing was read, as far as can be seen


def sums_of_others(request: Mapping[str, Any]) -> list[int]:
    """Return what other partitions of a fetch may have taken of the records that it wants, the likely sum first."""
    sums: dict[int, None] = {request.get("acquired_by_others", 0): None, 0: None}
    subsets: dict[int, None] = {0: None}
    for count in request.get("others", ()):
        subsets |= dict.fromkeys([each + count for each in subsets])
    return list(sums | subsets)
