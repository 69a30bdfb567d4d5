"""What a log's cleaner leaves of it: the last record of each key, and what is needed to know who has written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from attrs import field, frozen

from sharestate.broker.node.log_batches import BATCH_OVERHEAD, LogBatch, LogRecords, latest_of, size_of
from sharestate.broker.node.producers import LastRecord
from sharestate.values.records import AbortedTransaction, ControlType

DELETE_RETENTION_MS: Final = 86_400_000
"""How long tombstones and markers stay by default (``delete.retention.ms``, Kafka 4.4). [ms]"""

RecordsOf: TypeAlias = Callable[[LogBatch], LogRecords]
"""Returns the records of a batch, which may be bytes."""


class TransactionWalk:
    """
    Which transactions are met in a walk from batch to batch, and whether records of them are.

    Source:
        CleanedTransactionMetadata (Kafka 4.4).
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin a walk through a log with these aborted transactions."""
        self._ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        # The producers whose transaction will turn out aborted, and whether a batch of it was met.
        self._aborted: dict[int, bool] = {}
        self._committed: set[int] = set()

    def meet(self, batch: LogBatch) -> bool:
        """
        Go on to *batch*, and return whether nothing needs it as far as transactions go.

        Records of an aborted transaction are needed by nobody; a marker is by the records before it.
        """
        producer_id, control = batch.batch.producer_id, batch.batch.control
        while self._ahead and self._ahead[-1].first_offset <= batch.batch.last_offset:
            self._aborted.setdefault(self._ahead.pop().producer_id, False)
        if control is None:
            return batch.batch.is_transactional and self._meet_records(producer_id)
        if not batch.records:  # its record was deleted before
            return True
        if control is ControlType.ABORT:
            return not self._aborted.pop(producer_id, False)
        was_met = producer_id in self._committed
        self._committed.discard(producer_id)
        return not was_met

    def _meet_records(self, producer_id: int) -> bool:
        if producer_id in self._aborted:
            self._aborted[producer_id] = True
            return True
        self._committed.add(producer_id)
        return False


@frozen(kw_only=True)
class Compaction:
    """
    One compaction of a log.

    Attributes:
        batches: The batches of the log.
        records: Returns the records of one.
        end_offset: Where it stops.
        high_watermark: The high watermark.
        aborted: The aborted transactions of the log.
        last_records: What has to stay of the producers, by their ids.
        now_ms: The time. [ms since 1970]
        delete_retention_ms: How long tombstones and markers stay. [ms]
        emptied: The offsets of the abort markers, without a record before them, that it has met.

    Source:
        Cleaner.buildOffsetMap, cleanInto, shouldRetainRecord, MemoryRecords.filterTo (Kafka 4.4).
    """

    batches: Sequence[LogBatch]
    records: RecordsOf
    end_offset: int
    high_watermark: int
    aborted: Sequence[AbortedTransaction]
    last_records: Mapping[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    emptied: set[int] = field(factory=set, init=False)

    def run(self) -> list[LogBatch]:
        """Return the batches that stay."""
        last_offsets = self._last_offsets()
        walk = TransactionWalk(self.aborted)
        kept = (
            self._cleaned(batch, last_offsets, is_needless=walk.meet(batch))
            if batch.batch.last_offset < self.end_offset
            else batch
            for batch in self.batches
        )
        return [batch for batch in kept if batch is not None]

    def _last_offsets(self) -> dict[bytes, int]:
        """Return the offset of the last record of each key, those of aborted transactions aside."""
        walk = TransactionWalk(self.aborted)
        found: dict[bytes, int] = {}
        for batch in self.batches:
            if batch.batch.last_offset >= self.end_offset:
                break
            if not walk.meet(batch) and batch.batch.control is None:
                for offset, record in enumerate(self.records(batch), batch.batch.first_offset):
                    if record is not None and record.key is not None:
                        found[record.key] = offset
        return found

    def _cleaned(self, batch: LogBatch, last_offsets: Mapping[bytes, int], *, is_needless: bool) -> LogBatch | None:
        """Return what stays of *batch*; None if it goes."""
        if is_needless and batch.batch.control is ControlType.ABORT:
            self.emptied.add(batch.batch.first_offset)
        records = self._kept(batch, last_offsets, is_needless=is_needless)
        if not any(records):
            empty = batch._replace(records=(), size_in_bytes=BATCH_OVERHEAD, delete_horizon_ms=None)
            return empty if self._must_stay(batch) else None
        is_awaited = batch.delete_horizon_ms is None and (
            (is_needless and batch.batch.control is not None)
            or any(record is not None and record.value is None for record in records)
        )
        horizon = self.now_ms + self.delete_retention_ms if is_awaited else batch.delete_horizon_ms
        if not is_awaited and records == self.records(batch):
            return batch
        return batch._replace(
            records=records,
            max_timestamp_ms=latest_of(records),
            size_in_bytes=size_of(records, horizon),
            delete_horizon_ms=horizon,
        )

    def _kept(self, batch: LogBatch, last_offsets: Mapping[bytes, int], *, is_needless: bool) -> LogRecords:
        """Return the records of *batch* that stay."""
        is_marker = batch.batch.control is not None
        is_due = batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= self.now_ms
        if is_needless and (is_due or not is_marker):
            return ()
        records = self.records(batch)
        return records if is_marker else _last_of_keys(batch, records, last_offsets, is_due=is_due)

    def _must_stay(self, batch: LogBatch) -> bool:
        """Return whether *batch* stays without records, for what its header says."""
        if batch.batch.last_offset + 1 == self.high_watermark:
            return True
        last = self.last_records.get(batch.batch.producer_id)
        if last is None:
            return False
        if last.offset is not None:
            return batch.batch.last_offset == last.offset
        return batch.batch.control is not None and batch.producer_epoch == last.producer_epoch


def _last_of_keys(
    batch: LogBatch, records: LogRecords, last_offsets: Mapping[bytes, int], *, is_due: bool
) -> LogRecords:
    """Return those of *records* that are the last of their keys, without tombstones if these are due."""
    return tuple(
        record
        if record is not None
        and record.key is not None
        and offset >= last_offsets.get(record.key, -1)
        and (record.value is not None or not is_due)
        else None
        for offset, record in enumerate(records, batch.batch.first_offset)
    )
