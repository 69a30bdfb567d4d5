"""What a history says of the log, as far as one record of it is concerned."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from sharestate.history.columns import AppendedBatch
from sharestate.history.events import Event
from sharestate.values.transaction_index import TransactionIndex


class LogFacts:
    """
    The log as the events so far have shown it, in constant memory but for transactions.

    Attributes:
        offset: The record.
        batch: The record batch that has the record; None if none is known.
        is_absent: Whether the log has been seen to go on after the record without it.
        start_offset: The log start offset, as far as it is known.
        first_offset: The first offset of the first batch that was appended; None if the history does not say.
    """

    def __init__(self, offset: int) -> None:
        """Know nothing about the record at *offset*."""
        self.offset = offset
        self._transactions = TransactionIndex()
        self.batch: AppendedBatch | None = None
        self.is_absent = False
        self.start_offset = 0
        self.first_offset: int | None = None

    @property
    def end_offset(self) -> int | None:
        """The offset after the last batch that was appended; None if the history does not say."""
        return self._transactions.next_offset or None

    @property
    def last_stable_offset(self) -> int | None:
        """The offset up to which all transactions are decided; None if the history does not say."""
        return None if self.end_offset is None else self._transactions.last_stable_offset

    def apply(self, event: Event) -> None:
        """Take over what *event* says of the log."""
        request = event.request or {}
        if event.kind == "log":
            for batch in request["batches"]:
                if self.first_offset is None:
                    self.first_offset = batch.first_offset
                self._transactions.append(batch.record_batch)
            self._look(request["batches"], begin=0)
        elif event.kind == "log_start":
            self.start_offset = max(self.start_offset, request["offset"])
        elif event.kind == "fetch" and "batches" in request:
            self._look(request["batches"], begin=request.get("fetch_offset"))

    def _look(self, batches: Sequence[AppendedBatch], begin: int | None) -> None:
        """Look for the record in *batches*, between which and from *begin* on the log has nothing."""
        index = bisect_left(batches, self.offset, key=attrgetter("last_offset"))
        if index == len(batches):
            return
        is_covered = index > 0 or (begin is not None and begin <= self.offset)
        if batches[index].first_offset <= self.offset:
            self.batch, self.is_absent = batches[index], False
        elif is_covered and self.batch is None:
            self.is_absent = True
