"""
What a history says of a partition's log, and what a fetch reads of it.

Source:
    ReplicaManager.readFromLog, UnifiedLog.read, LocalLog.read (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sharestate.errors import MalformedInputError
from sharestate.history.columns import LOG_BATCHES, AppendedBatch, ReadBatches
from sharestate.history.events import check_of, json_of
from sharestate.json_checks import Field, integer, list_of, record, row
from sharestate.json_lines import Json
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.offset_reset import AutoOffsetReset, OffsetReset
from sharestate.values.records import AbortedTransaction, RecordBatch
from sharestate.values.transaction_index import TransactionIndex


class KnownLog:
    """
    The record batches that a history says were appended.

    Batches that the share partition has passed are forgotten: a fetch below ``begin`` cannot be read any more.

    Attributes:
        begin: The first offset that can still be read.
        start_offset: The log start offset, as far as it is known.
    """

    def __init__(self) -> None:
        """Start with an empty log."""
        self.begin = 0
        self.start_offset = 0
        self._batches: list[AppendedBatch] = []
        self._ends: list[int] = []
        self._transactions = TransactionIndex()
        self._open_at_begin: dict[int, int] = {}
        """The transactions that are open where the kept batches begin: first offsets by producer id."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._transactions.next_offset

    def reset_offset(self, reset: AutoOffsetReset) -> int:
        """
        Return where a share partition starts if nothing is persisted.

        Raises:
            MalformedInputError: That depends on the times of records, which a history does not have.
        """
        match reset.strategy:
            case OffsetReset.EARLIEST:
                return self.start_offset
            case OffsetReset.LATEST:
                return self.end_offset
            case OffsetReset.BY_DURATION:
                message = "missing: nothing is persisted, and the log does not say where by_duration begins"
                raise MalformedInputError(message, "request.reset_offset")

    def append(self, batches: Iterable[AppendedBatch]) -> None:
        """
        Append *batches*.

        Raises:
            MalformedInputError: They do not ascend; those before are appended.
        """
        for index, batch in enumerate(batches):
            try:
                self._transactions.append(batch.record_batch)
            except MalformedInputError as error:
                raise MalformedInputError(error.message, f"request.batches[{index}]") from error
            self._batches.append(batch)
            self._ends.append(batch.last_offset)

    def forget_below(self, offset: int) -> None:
        """Forget what lies below *offset*, as soon as that is the larger part: amortized constant time for a batch."""
        self.begin = max(self.begin, offset)
        count = bisect_left(self._ends, self.begin)
        if 2 * count > len(self._ends) + 16:
            self._forget(count)

    def _forget(self, count: int) -> None:
        for batch in self._batches[:count]:
            record_batch = batch.record_batch
            if record_batch.control is not None:
                self._open_at_begin.pop(record_batch.producer_id, None)
            elif record_batch.is_transactional:
                self._open_at_begin.setdefault(record_batch.producer_id, record_batch.first_offset)
        del self._batches[:count]
        del self._ends[:count]

    def aborted_in(self, batches: Iterable[RecordBatch]) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions that overlap *batches*, as far as they are known."""
        batches = tuple(batches)
        if not batches:
            return ()
        return self._transactions.aborted_in(batches[0].first_offset, batches[-1].last_offset)

    def read(self, fetch_offset: int, isolation: IsolationLevel, request: Mapping[str, Any]) -> FetchedRecords:
        """
        Read the log as a broker does for the *request* of a fetch.

        Whole batches of one segment, from the one that holds *fetch_offset* on, below the high watermark or, with
        ``read_committed``, below the last stable offset; as many as fit into ``max_bytes``, but at least one. A batch
        of unknown size takes no bytes. Of several partitions each has an equal share of the bytes.
        """
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        end = self._transactions.last_stable_offset if is_committed else self.end_offset
        first = bisect_left(self._ends, fetch_offset)
        chosen: list[RecordBatch] = []
        most: int | None = request.get("max_bytes")
        left = None if most is None else most // max(1, request.get("partitions", 1))
        for at in range(first, len(self._batches)):
            batch = self._batches[at]
            size = batch.bytes or 0
            is_too_much = left is not None and chosen and size > left
            if batch.last_offset >= end or is_too_much or batch.segment != self._batches[first].segment:
                break
            chosen.append(batch.record_batch)
            left = None if left is None else left - size
        return FetchedRecords(
            fetch_offset=fetch_offset,
            batches=chosen,
            aborted_transactions=self.aborted_in(chosen) if is_committed else (),
            isolation=isolation,
        )

    def read_to(self, fetch_offset: int, last_offset: int, isolation: IsolationLevel) -> FetchedRecords:
        """Return the batches from the one that holds *fetch_offset* on, up to the one that ends at *last_offset*."""
        batches = self._batches[bisect_left(self._ends, fetch_offset) : bisect_right(self._ends, last_offset)]
        chosen = [batch.record_batch for batch in batches]
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        return FetchedRecords(
            fetch_offset=fetch_offset,
            batches=chosen,
            aborted_transactions=self.aborted_in(chosen) if is_committed else (),
            isolation=isolation,
        )

    def given(self, fetch_offset: int, isolation: IsolationLevel, request: Mapping[str, Any]) -> FetchedRecords:
        """Return what a fetch has read by its own account; which transactions were aborted may follow from the log."""
        read = request["batches"]
        batches = read.record_batches if isinstance(read, ReadBatches) else [batch.record_batch for batch in read]
        aborted = request.get("aborted")
        if aborted is None:
            aborted = self.aborted_in(batches) if isolation is IsolationLevel.READ_COMMITTED else ()
        return FetchedRecords(
            fetch_offset=fetch_offset, batches=batches, aborted_transactions=aborted, isolation=isolation
        )

    # ---- as JSON

    def to_json(self) -> Json:
        """Return what has to be known to go on later."""
        self._forget(bisect_left(self._ends, self.begin))
        return {
            "begin": self.begin,
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "open": [list(each) for each in self._open_at_begin.items()],
            "batches": json_of(LOG_BATCHES, self._batches),
        }

    @classmethod
    def _of(cls, *, begin: int, start_offset: int, end_offset: int, open: Any, batches: Any) -> KnownLog:  # noqa: A002, ANN401 - the fields of the table
        log = cls()
        log.begin, log.start_offset = begin, start_offset
        log._open_at_begin = dict(open)
        for producer_id, first_offset in open:
            log._transactions.append(RecordBatch(first_offset, first_offset, producer_id, is_transactional=True))
        log.append(batches)
        if log.end_offset < end_offset:  # nothing is kept: the end is all that is known
            log._transactions.append(RecordBatch(end_offset - 1, end_offset - 1))
        return log


_OFFSET: Final = Field(integer(0))

read_known_log = record(
    {
        "begin": _OFFSET,
        "start_offset": _OFFSET,
        "end_offset": _OFFSET,
        "open": Field(list_of(row(integer(), integer(0), make=lambda *pair: pair))),
        "batches": Field(check_of(LOG_BATCHES)),
    },
    KnownLog._of,  # noqa: SLF001 - the check of the same class
)
"""The check for the JSON form of a known log."""
