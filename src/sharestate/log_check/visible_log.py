"""What a fetch reads of a log of which more and more is visible."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby
from typing import Any, Final

from sharestate.history import AppendedBatch, Event
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import RecordBatch
from sharestate.values.transaction_index import TransactionIndex

MAX_BYTES: Final = 2**31 - 1
"""What a fetch reads at the most if it does not say. [bytes]"""


MOST_SUM: Final = 2**12
"""The most records that other partitions of a fetch are said to have taken: clients want 500, by default. [records]"""


class VisibleLog:
    """
    All batches of a log that are ever visible. How many are, at a time, is up to the caller.

    Args:
        events: The events of kind ``log``, in order.

    Attributes:
        earliest_us: When each batch became visible at the earliest. [µs since 1970]
        latest_us: When its producer was answered: it may well be visible by then. [µs since 1970]
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
        self.latest_us: list[int] = []
        for event in events:
            for batch in (event.request or {})["batches"]:
                self._batches.append(batch)
                self._records.append(batch.record_batch)
                self._transactions.append(batch.record_batch)
                self._stable.append(self._transactions.last_stable_offset)
                self.earliest_us.append(event.at_us or 0)
                self.latest_us.append(event.done_us or event.at_us or 0)
            self._until[event.seq] = len(self._batches)
            self._events.append(event)
            self._counts.append(len(self._batches))
        self._ends = [batch.last_offset for batch in self._batches]
        self._bytes = list(accumulate((batch.bytes or 0 for batch in self._batches), initial=0))
        self._segment_ends = _segment_ends(self._batches)

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

    def batch_end(self, offset: int) -> int:
        """Return the offset after the batch that *offset* is in; after *offset* itself if there is none."""
        place = bisect_left(self._ends, offset)
        return self._ends[place] + 1 if place < len(self._ends) else offset + 1

    def is_readable(self, offset: int, count: int, isolation: IsolationLevel) -> bool:
        """Return whether a fetch at *offset* reads anything of the first *count* batches."""
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        end = self._stable[count] if is_committed else self.end_offset(count)
        return offset < end

    def readable(self, offset: int, count: int, isolation: IsolationLevel) -> range:
        """
        Return which batches a fetch at *offset* can read of the first *count*: no more than one segment file.

        Complexity:
            O(log n) in the batches.
        """
        first = bisect_left(self._ends, offset)
        if isolation is IsolationLevel.READ_COMMITTED:
            count = min(count, bisect_left(self._ends, self._stable[count]))
        return range(first, min(count, self._segment_ends[first])) if first < count else range(0)

    def up_to(self, batches: range, offset: int) -> range:
        """Return those of *batches* that come no later than the one with *offset*; at least one of them, if any."""
        return batches[: max(bisect_left(self._ends, offset) + 1 - batches.start, 1)]

    def fitting(self, batches: range, max_bytes: int, partitions: int) -> Iterator[range]:
        """
        Yield which of *batches* a fetch has read if it shared its bytes with so many partitions as were acquirable.

        Of one partition it reads what fits, and always the first batch.

        Args:
            batches: What it could read.
            max_bytes: How much it reads of all partitions. [bytes]
            partitions: How many partitions it fetches from; the fewer share, the more is read, and comes first.
        """
        least = batches[:1]
        sharing, partitions = 1, max(partitions, 1)
        while len(batches) > 1 and sharing <= partitions:
            before = self._bytes[batches.start]
            end = bisect_right(self._bytes, before + max_bytes // sharing, batches.start + 1, batches.stop + 1) - 1
            batches = range(batches.start, end)
            if len(batches) <= 1:
                break
            yield batches
            if self._bytes[end] == before:  # their sizes are not known: however many share, no less is read
                return
            sharing = max_bytes // (self._bytes[end] - before) + 1  # the fewest with which less is read
        if sharing <= partitions or not least:
            yield least

    def fetched(self, offset: int, batches: range, isolation: IsolationLevel) -> FetchedRecords:
        """Return *batches* as they were fetched."""
        aborted: tuple[Any, ...] = ()
        records = self._records[batches.start : batches.stop]
        if records and isolation is IsolationLevel.READ_COMMITTED:
            aborted = self._transactions.aborted_in(records[0].first_offset, records[-1].last_offset)
        return FetchedRecords(fetch_offset=offset, batches=records, aborted_transactions=aborted, isolation=isolation)


def sums_of_others(request: Mapping[str, Any], wanted: int) -> list[int]:
    """
    Return what other partitions of a fetch may have taken of the records that it wants: sums of what each has acquired.

    Args:
        request: The fetch.
        wanted: How many records it wants of all of them. [records]

    Returns:
        The likely sum, none, and then the others; but one that is *wanted* or more stands for all of these.

    Complexity:
        O(n * m) bits for n partitions and sums up to m, which is no more than 4,096.
    """
    most = min(wanted, MOST_SUM)
    kept = (1 << most) - 1
    sums, total = 1, 0
    """A bit for each sum."""
    for count in request.get("others", ()):
        total += count
        sums |= (sums << min(count, most)) & kept
    found = [each for each in range(1, sums.bit_length()) if sums >> each & 1]
    likely = request.get("acquired_by_others", 0)
    return list(dict.fromkeys((likely, 0, *found, *([wanted] if total >= wanted else []))))


def _segment_ends(batches: list[AppendedBatch]) -> list[int]:
    """Return of each batch the index after the last one of its segment file."""
    found: list[int] = []
    for _, same in groupby(batches, key=lambda batch: batch.segment):
        count = sum(1 for _ in same)
        found += [len(found) + count] * count
    return found
