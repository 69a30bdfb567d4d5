"""The log that leaders who fail over fetch from: it has gaps and transactions, its start moves, and it is compacted."""

from __future__ import annotations

from typing import Final

from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import NO_PRODUCER_ID, ControlType, RecordBatch
from sharestate.values.transaction_index import TransactionIndex

BEGIN: Final = 100
"""The log end offset when the group starts: the first record that must be delivered. [offset]"""

_PRODUCER: Final = 7


class FailoverLog:
    """
    The log of a share partition, which outlives each of its leaders.

    Attributes:
        start: The log start offset.
        end: The log end offset.
    """

    def __init__(self) -> None:
        """Begin with nothing, at ``BEGIN``."""
        self.start = self.end = BEGIN
        self._batches: list[RecordBatch] = []
        self._transactions = TransactionIndex()

    def leave_gap(self, number: int) -> None:
        """Let the log go on after one or two offsets that it does not have, for some numbers only."""
        self.end += number % 3 if number % 5 == 0 else 0

    def append(self, size: int, control: ControlType | None = None, *, is_transactional: bool = False) -> None:
        """Append a batch of so many records, or the marker that ends the transaction."""
        producer = _PRODUCER if is_transactional else NO_PRODUCER_ID
        batch = RecordBatch(self.end, self.end + size - 1, producer, is_transactional, control)
        self._batches.append(batch)
        self._transactions.append(batch)
        self.end = batch.last_offset + 1

    def move_start(self, offset: int) -> None:
        """Advance the log start offset, to the log end offset at most."""
        self.start = min(offset, self.end)
        self._batches = [batch for batch in self._batches if batch.last_offset >= self.start]

    def compact(self, offset: int, which: int, count: int) -> None:
        """Take up to three batches out that end at *offset* or above it; the last one of a log always stays."""
        left = [batch for batch in self._batches[:-1] if batch.last_offset >= offset]
        if left:
            gone = left[which % len(left) :][: count % 3 + 1]
            self._batches = [batch for batch in self._batches if batch not in gone]

    def fetched(self, offset: int, max_batches: int) -> FetchedRecords:
        """Return what a fetch of *offset* brings."""
        return FetchedRecords.from_log(
            self._batches,
            self._transactions,
            fetch_offset=offset,
            max_batches=max_batches,
            isolation=IsolationLevel.READ_COMMITTED,
        )

    def offsets(self) -> list[int]:
        """Return the offsets of its batches, from its start on, ascending."""
        return [
            offset
            for batch in self._batches
            for offset in range(max(batch.first_offset, self.start), batch.last_offset + 1)
        ]
