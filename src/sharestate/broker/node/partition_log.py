"""The log of one partition of a node, in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import attrgetter
from typing import Final

from sharestate.broker.node.compaction import DELETE_RETENTION_MS, Compaction
from sharestate.broker.node.log_batches import (
    NO_TIMESTAMP,
    Decoder,
    LogBatch,
    LogRead,
    LogRecord,
    LogRecords,
    OffsetOutOfRange,
    ProducedBatch,
    RecordPlace,
    TimestampedOffset,
)
from sharestate.broker.node.producers import ProducerStates
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.checks import a_callable, expect, integer, refuse
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.least_of_blocks import LeastOfBlocks
from sharestate.values.list_slices import CheckedBatches, ListSlice
from sharestate.values.records import MAX_OFFSET, ControlType, RecordBatch
from sharestate.values.transaction_index import TransactionIndex

MAX_BYTES: Final = 2**31 - 1
"""The most that a fetch can ask for. [bytes]"""

FEWEST_DELETED: Final = 64
"""Batches below the log start that are not worth a list of the others. [batches]"""


def last_offset(batch: LogBatch) -> int:
    """Return the last offset of *batch*."""
    return batch.batch.last_offset


def _first_offset(batch: RecordBatch) -> int:
    return batch.first_offset


class PartitionLog:
    """
    The log of one partition, as its leader keeps it.

    There is one replica: what is appended is replicated, so the high watermark is the end of the log. And there are no
    segments: what Kafka deletes by the segment, this log deletes by the batch.

    Args:
        decode: Returns the records of a batch that was appended as bytes. Without it such batches are read, but not
            looked into: ``record_at``, ``find_timestamp`` and ``compact`` refuse them.
        log_start_offset: The first offset of the log.

    Attributes:
        producers: What is known of those who have written it; ``append`` does not ask them.

    >>> from sharestate import IsolationLevel
    >>> log = PartitionLog()
    >>> records = [LogRecord(b"k", b"v"), LogRecord(b"k", b"w")]
    >>> log.append(ProducedBatch(records=records)).batch
    RecordBatch(first_offset=0, last_offset=1, producer_id=-1, is_transactional=False, control=None)
    >>> log.append(ProducedBatch(records=records, producer_id=7, producer_epoch=0, is_transactional=True)).batch[:2]
    (2, 3)
    >>> log.high_watermark, log.last_stable_offset
    (4, 2)
    >>> len(log.read(1, isolation=IsolationLevel.READ_COMMITTED).batches), log.read(5)
    (1, OffsetOutOfRange(fetch_offset=5, log_start_offset=0, high_watermark=4))

    Not thread-safe.

    Source:
        UnifiedLog, LocalLog (Kafka 4.4).
    """

    def __init__(self, *, decode: Decoder | None = None, log_start_offset: int = 0) -> None:
        """Begin with an empty log."""
        self._decode = None if decode is None else a_callable(decode, "decode")
        # The batch that was decoded last, for whoever asks for its records one by one.
        self._decoded: tuple[bytes, LogRecords] = b"", ()
        self._log_start_offset = integer(log_start_offset, "log_start_offset", 0, MAX_OFFSET)
        self._end_offset = log_start_offset
        # Reads share these lists: something is appended to them, or another list takes their place.
        self._batches: list[LogBatch] = []
        self._places: list[RecordBatch] = []
        self._bytes: list[int] = []  # what the batches take up to the end of each
        # Batches below the log start stay in the list until they are the larger part of it: so each is moved once, at
        # most, for each that is deleted. And the indexes of those behind them stay what they are.
        self._first = 0
        self._size = 0
        self.producers = ProducerStates()
        self._transactions = TransactionIndex()
        # The highest timestamps with their signs changed, for the highest is looked for.
        self._timestamps = LeastOfBlocks()
        # Of the batches below the log start the first with the highest timestamp: their segment is still there.
        self._latest_deleted: LogBatch | None = None

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log_start_offset

    @property
    def high_watermark(self) -> int:
        """The offset of the next record."""
        return self._end_offset

    @property
    def last_stable_offset(self) -> int:
        """
        The offset before which all transactions are decided.

        Source:
            UnifiedLog.maybeIncrementFirstUnstableOffset, LogSegment.read (Kafka 4.4): of a transaction that began below
            the log start, what is left begins with the batch that has it.
        """
        stable = self._transactions.last_stable_offset
        if stable >= self._log_start_offset:  # nearly always
            return stable
        index = self._index(self._log_start_offset)
        if index == len(self._batches):
            return self._log_start_offset
        return max(stable, min(self._batches[index].batch.first_offset, self._log_start_offset))

    @property
    def size_in_bytes(self) -> int:
        """What its batches take on the wire. [bytes]"""
        return self._size

    @property
    def batches(self) -> tuple[LogBatch, ...]:
        """Its batches, from that which has the log start on; takes time linear in their number."""
        return tuple(self._batches[self._first :])

    def append(self, batch: ProducedBatch, *, append_time_ms: int | None = None) -> LogBatch:
        """
        Append *batch* and return it with its offsets.

        Whether its producer may append it is not looked at, beyond what a log cannot be without: ``producers`` is asked
        before.

        Args:
            batch: The batch.
            append_time_ms: The timestamp for all records, for topics with ``LogAppendTime``. None to leave them theirs.

        Raises:
            MalformedInputError: An argument is of the wrong type, or the batch is not transactional though its producer
                has a transaction open, or there are no offsets left; nothing was changed.

        Complexity:
            O(1) (amortized); O(n) in its records if they get another timestamp.

        Source:
            UnifiedLog.append, LogValidator.assignOffsetsNonCompressed (Kafka 4.4).
        """
        expect(batch, ProducedBatch, "batch")
        records = batch.records
        timestamp = batch.max_timestamp_ms
        if append_time_ms is not None:
            timestamp = integer(append_time_ms, "append_time_ms", 0)
            if not isinstance(records, bytes):
                records = tuple(record._replace(timestamp_ms=timestamp) for record in records)
        return self._append(
            LogBatch(
                RecordBatch(
                    self._end_offset,
                    self._end_offset + batch.record_count - 1,
                    batch.producer_id,
                    batch.is_transactional,
                ),
                timestamp,
                batch.size_in_bytes,
                records,
                batch.producer_epoch,
                batch.base_sequence,
                has_append_time=append_time_ms is not None,
            )
        )

    def append_marker(
        self, control: ControlType, *, producer_id: int, producer_epoch: int, now_ms: int, coordinator_epoch: int = 0
    ) -> LogBatch:
        """
        Append a marker that ends the transaction of a producer, and return it.

        Args:
            control: Whether it is committed or aborted.
            producer_id: The producer's id.
            producer_epoch: The producer's epoch.
            now_ms: The marker's timestamp. [ms since 1970]
            coordinator_epoch: The epoch of the transaction coordinator.

        Raises:
            MalformedInputError: An argument is of the wrong type or out of bounds; nothing was changed.

        Source:
            MemoryRecords.withEndTransactionMarker, EndTransactionMarker (Kafka 4.4).
        """
        key = _MARKER_KEYS[expect(control, ControlType, "control")]
        value = b"\0\0" + integer(coordinator_epoch, "coordinator_epoch", 0, 2**31 - 1).to_bytes(4)
        marker = ProducedBatch(
            records=[LogRecord(key, value, timestamp_ms=integer(now_ms, "now_ms", 0))],
            producer_id=integer(producer_id, "producer_id", 0),
            producer_epoch=producer_epoch,
            is_transactional=True,
        )
        batch = RecordBatch(self._end_offset, self._end_offset, producer_id, is_transactional=True, control=control)
        return self._append(LogBatch(batch, now_ms, marker.size_in_bytes, marker.records, producer_epoch))

    def read(
        self,
        fetch_offset: int,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        max_bytes: int = MAX_BYTES,
        at_least_one: bool = True,
    ) -> LogRead | OffsetOutOfRange:
        """
        Return the batches from the one on that has *fetch_offset*, or the first one after it.

        With ``read_committed`` it ends before the last stable offset, and has the aborted transactions that it
        overlaps; otherwise it ends before the high watermark.

        Args:
            fetch_offset: Where to begin.
            isolation: Whether what is not committed is read too.
            max_bytes: The most to return, in whole batches. [bytes]
            at_least_one: Whether the first batch is returned even if it is larger; fetches have that for the first
                partition with records.

        Raises:
            MalformedInputError: An argument is of the wrong type or out of bounds.

        Complexity:
            O(log n) in the batches of the log, and as ``TransactionIndex.aborted_in``.

        Source:
            UnifiedLog.read, LocalLog.read, LogSegment.read, ReplicaManager.readFromLog (Kafka 4.4).
        """
        integer(fetch_offset, "fetch_offset", 0)
        is_committed = expect(isolation, IsolationLevel, "isolation") is IsolationLevel.READ_COMMITTED
        most = integer(max_bytes, "max_bytes", 0, MAX_BYTES)
        if not self._log_start_offset <= fetch_offset <= self._end_offset:
            return OffsetOutOfRange(fetch_offset, self._log_start_offset, self._end_offset)
        end_offset = self.last_stable_offset if is_committed else self._end_offset
        first = self._index(fetch_offset)
        # The log start may be the last stable offset, and inside of a batch.
        end = first if fetch_offset >= end_offset else bisect_left(self._places, end_offset, first, key=_first_offset)
        full = bisect_right(self._bytes, self._bytes_before(first) + most, first, end)
        if at_least_one and first == full < end:
            full += 1
        return self._read(fetch_offset, isolation, first, full, max_bytes if first < full < end else 0)

    def record_at(self, offset: int) -> LogRecord | None:
        """
        Return the record at *offset*; None where compaction has deleted it, below the log start, and at the end.

        Raises:
            MalformedInputError: *offset* is no offset, or its batch is bytes, and there is nothing to decode them.

        Complexity:
            O(log n) in the batches of the log; O(n) in the records of a batch that is decoded.
        """
        place = self.place_of(offset)
        return None if place is None else place.record

    def place_of(self, offset: int) -> RecordPlace | None:
        """
        Return where the record at *offset* is, or was before compaction; None where there is no batch.

        Raises:
            MalformedInputError: As for ``record_at``.

        Complexity:
            As ``record_at``.
        """
        if not self._log_start_offset <= integer(offset, "offset", 0) < self._end_offset:
            return None
        batch = self._batches[self._index(offset)]  # there is one: compaction keeps the last batch of the log
        records, delta = self._records(batch), offset - batch.batch.first_offset
        return RecordPlace(batch, records, delta) if 0 <= delta < len(records) else None

    def find_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """
        Return the first record whose timestamp is *timestamp_ms* or later; None if there is none.

        Raises:
            MalformedInputError: *timestamp_ms* is no timestamp, or a batch in question is bytes that nothing decodes.

        Complexity:
            O(log² n) in the batches of the log, and O(n) in the records of the batch that has it.

        Source:
            UnifiedLog.searchOffsetInLocalLog, FileRecords.searchForTimestamp (Kafka 4.4).
        """
        wanted = integer(timestamp_ms, "timestamp_ms", 0)
        index = self._timestamps.next_at_most(self._first, -wanted)
        while index < len(self._batches):
            batch = self._batches[index]
            for offset, record in enumerate(self._records(batch), batch.batch.first_offset):
                if record is not None and record.timestamp_ms >= wanted and offset >= self._log_start_offset:
                    return TimestampedOffset(offset, record.timestamp_ms)
            index = self._timestamps.next_at_most(index + 1, -wanted)
        return None

    def latest_timestamp(self) -> TimestampedOffset | None:
        """
        Return the first record of those with the highest timestamp; None if no record has one.

        It may be below the log start: what is deleted up to there is in its segment until retention takes that.

        Raises:
            MalformedInputError: Its batch is bytes that nothing decodes.

        Complexity:
            O(log² n) in the batches of the log, and O(n) in the records of the batch that has it.

        Source:
            UnifiedLog.fetchOffsetByTimestamp for MAX_TIMESTAMP, LogSegment.maxTimestampSoFar,
            RecordBatch.offsetOfMaxTimestamp (Kafka 4.4).
        """
        batch = self._latest_deleted
        if self._first < len(self._batches):
            least = self._timestamps.least_from(self._first)
            if batch is None or -least > batch.max_timestamp_ms:
                batch = self._batches[self._timestamps.next_at_most(self._first, least)]
        if batch is None or batch.max_timestamp_ms == NO_TIMESTAMP:
            return None
        latest = batch.max_timestamp_ms
        offsets = (
            offset
            for offset, record in enumerate(self._records(batch), batch.batch.first_offset)
            if record is not None and record.timestamp_ms == latest
        )
        return next((TimestampedOffset(offset, latest) for offset in offsets), None)

    def advance_log_start(self, offset: int) -> bool:
        """
        Let the log begin at *offset*, and return whether it did not yet.

        Raises:
            MalformedInputError: *offset* is of the wrong type.
            NodeError: It is beyond the high watermark, or negative: OFFSET_OUT_OF_RANGE; nothing was changed.

        Complexity:
            O(log n + k), *k* of *n* batches being deleted (amortized).

        Source:
            UnifiedLog.maybeIncrementLogStartOffset, Partition.deleteRecordsOnLeader (Kafka 4.4).
        """
        if integer(offset, "offset") < 0:
            message = f"The offset {offset} is not valid"
            raise NodeError(message, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset > self._end_offset:
            message = (
                f"Cannot increment the log start offset to {offset} since it is larger than the high watermark "
                f"{self._end_offset}"
            )
            raise NodeError(message, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset <= self._log_start_offset:
            return False
        first = self._index(offset)
        deleted = self._batches[self._first : first]
        self._size -= sum(batch.size_in_bytes for batch in deleted)
        known = [] if self._latest_deleted is None else [self._latest_deleted]
        self._latest_deleted = max([*known, *deleted], key=attrgetter("max_timestamp_ms"), default=None)
        self._log_start_offset, self._first = offset, first
        if first > FEWEST_DELETED and 2 * first > len(self._batches):
            self._replace(self._batches[first:])
        return True

    def delete_old(self, now_ms: int, *, retention_ms: int = -1, retention_bytes: int = -1) -> int:
        """
        Delete the oldest batches, as long as the log is too large or they are too old; return how many these were.

        A batch without timestamps is never too old.

        Args:
            now_ms: The time. [ms since 1970]
            retention_ms: How old a batch may be; negative for no limit. [ms]
            retention_bytes: How large the log may be; negative for no limit. [bytes]

        Raises:
            MalformedInputError: An argument is of the wrong type or out of bounds.

        Complexity:
            O(k), *k* batches being deleted (amortized).

        Source:
            UnifiedLog.deleteOldSegments, deleteRetentionSizeBreachedSegments, deleteRetentionMsBreachedSegments (Kafka
            4.4), with a batch in the place of a segment.
        """
        oldest = integer(now_ms, "now_ms", 0) - integer(retention_ms, "retention_ms")
        excess = self._size - retention_bytes if integer(retention_bytes, "retention_bytes") >= 0 else -1
        end = self._first
        while end < len(self._batches) and excess >= self._batches[end].size_in_bytes:
            excess -= self._batches[end].size_in_bytes
            end += 1
        while retention_ms >= 0 and end < len(self._batches) and 0 <= self._batches[end].max_timestamp_ms < oldest:
            end += 1
        deleted = end - self._first
        if deleted:
            behind = self._batches[end].batch.first_offset if end < len(self._batches) else self._end_offset
            self.advance_log_start(behind)
            self._latest_deleted = None  # with its segment
        return deleted

    def compact(
        self, now_ms: int, *, delete_retention_ms: int = DELETE_RETENTION_MS, end_offset: int | None = None
    ) -> None:
        """
        Delete the records that later ones with the same key replace.

        Batches keep their offsets. Records of aborted transactions go, and records without keys; tombstones and markers
        go when they have not been needed for some time. An empty batch goes too, unless it is the last one of the log,
        or has the last sequence number or epoch of a producer.

        Args:
            now_ms: The time. [ms since 1970]
            delete_retention_ms: How long tombstones and markers stay (``delete.retention.ms``). [ms]
            end_offset: Where to stop: a broker leaves its last segment alone. None for the last stable offset, which
                it never goes beyond.

        Raises:
            MalformedInputError: An argument is of the wrong type or out of bounds, or a batch is bytes, and there is
                nothing to decode it; nothing was changed.

        Complexity:
            O(n) in the records of the log.

        Source:
            Cleaner, CleanedTransactionMetadata, MemoryRecords.filterTo (Kafka 4.4).
        """
        stable = self.last_stable_offset
        compaction = Compaction(
            batches=self._batches[self._first :],
            records=self._records,
            end_offset=stable if end_offset is None else integer(end_offset, "end_offset", 0, stable),
            high_watermark=self._end_offset,
            aborted=self._transactions.aborted_in(self._log_start_offset, self._end_offset),
            last_records=self.producers.last_records(),
            now_ms=integer(now_ms, "now_ms", 0),
            delete_retention_ms=integer(delete_retention_ms, "delete_retention_ms", 0),
        )
        kept = compaction.run()
        self._transactions.forget(compaction.emptied)
        self._replace(kept)
        self._size = sum(batch.size_in_bytes for batch in kept)

    def _append(self, batch: LogBatch) -> LogBatch:
        if batch.batch.last_offset > MAX_OFFSET:
            refuse("the log has no offsets left", "batch")
        self._transactions.append(batch.batch)
        self.producers.write(batch)
        self._bytes.append(self._bytes_before(len(self._batches)) + batch.size_in_bytes)
        self._batches.append(batch)
        self._places.append(batch.batch)
        self._timestamps.append(-batch.max_timestamp_ms)
        self._size += batch.size_in_bytes
        self._end_offset = batch.batch.last_offset + 1
        return batch

    def _replace(self, batches: list[LogBatch]) -> None:
        """Put *batches* in the place of all."""
        self._batches, self._first = batches, 0
        self._places = [batch.batch for batch in batches]
        self._bytes = [*accumulate(batch.size_in_bytes for batch in batches)]
        self._timestamps = LeastOfBlocks()
        for batch in batches:
            self._timestamps.append(-batch.max_timestamp_ms)

    def _index(self, offset: int) -> int:
        """Return the index of the first batch that does not end before *offset*."""
        return bisect_left(self._batches, offset, self._first, key=last_offset)

    def _bytes_before(self, index: int) -> int:
        return self._bytes[index - 1] if index else 0

    def _read(self, fetch_offset: int, isolation: IsolationLevel, first: int, end: int, filled_bytes: int) -> LogRead:
        is_committed = isolation is IsolationLevel.READ_COMMITTED
        has_aborted = is_committed and first < end
        fetched = FetchedRecords(
            fetch_offset=fetch_offset,
            batches=CheckedBatches(self._places, first, end),
            aborted_transactions=(
                self._transactions.aborted_in(fetch_offset, self._places[end - 1].last_offset) if has_aborted else ()
            ),
            isolation=isolation,
        )
        size = self._bytes_before(end) - self._bytes_before(first)
        return LogRead(
            fetched,
            ListSlice(self._batches, first, end),
            size,
            max(size, filled_bytes),
            self._log_start_offset,
            self.last_stable_offset,
            self._end_offset,
        )

    def _records(self, batch: LogBatch) -> LogRecords:
        if not isinstance(batch.records, bytes):
            return batch.records
        if self._decode is None:
            refuse("the records of a batch that is bytes take a decoder", "decode")
        if self._decoded[0] is not batch.records:
            self._decoded = batch.records, tuple(self._decode(batch.records))
        records = self._decoded[1]
        if not batch.has_append_time:
            return records
        timestamp = batch.max_timestamp_ms
        return tuple(record and record._replace(timestamp_ms=timestamp) for record in records)


_MARKER_KEYS: Final = {ControlType.ABORT: b"\0\0\0\0", ControlType.COMMIT: b"\0\0\0\1"}
"""The keys of transaction markers: version 0 and the kind (ControlRecordType, Kafka 4.4)."""
