"""
The transactions of a log: which of them were aborted, and up to where all of them are decided.

A fetch response of a broker lists the aborted transactions that overlap what it returns, and a consumer with
``read_committed`` filters their records by that list. A broker keeps the list for each segment in a file; here it is
made from the record batches and their transaction markers.

Source:
    ProducerStateManager, ProducerAppendInfo, TransactionIndex (Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable

from sharestate.values.batch_checks import is_batch_after, refuse_batch
from sharestate.values.checks import expect, integer, refuse, rows
from sharestate.values.least_of_blocks import LeastOfBlocks
from sharestate.values.records import NO_PRODUCER_ID, AbortedTransaction, ControlType, RecordBatch


class TransactionIndex:
    """
    The aborted and the open transactions of one log.

    Append every batch of the log, in order, as soon as it is replicated, i.e. when the high watermark has passed it.
    Appending takes constant time (amortized), and only aborted and open transactions take memory.

    A move of the log start needs no call: what ended below the log start overlaps no fetch any more.

    Args:
        batches: The batches of the log so far.

    Raises:
        MalformedInputError: A batch was refused: see ``append``.

    >>> from sharestate import ControlType, RecordBatch
    >>> log = [
    ...     RecordBatch(0, 4, producer_id=7, is_transactional=True),
    ...     RecordBatch(5, 9, producer_id=8, is_transactional=True),
    ...     RecordBatch(10, 10, producer_id=7, is_transactional=True, control=ControlType.ABORT),
    ... ]
    >>> index = TransactionIndex(log)
    >>> index.aborted_in(3, 9)
    (AbortedTransaction(producer_id=7, first_offset=0),)
    >>> index.last_stable_offset, index.next_offset
    (5, 11)
    """

    def __init__(self, batches: Iterable[RecordBatch] = ()) -> None:
        """Append *batches*."""
        self._next_offset = 0
        # By producer, in the order of their first offsets. Not a dict: to find the first item of a dict from which the
        # first ones were removed takes time linear in their number.
        self._open: OrderedDict[int, int] = OrderedDict()
        # The aborted transactions and the offsets of their markers, in the order of the markers.
        self._aborted: list[AbortedTransaction] = []
        self._markers: list[int] = []
        # Their first offsets do not ascend: a long transaction begins before shorter ones and ends after them.
        self._first_offsets = LeastOfBlocks()
        for number, batch in enumerate(rows(batches, RecordBatch, "batches")):
            self._append(batch, f"batches[{number}]")

    @property
    def next_offset(self) -> int:
        """The offset after the last batch; the high watermark, if every replicated batch has been appended."""
        return self._next_offset

    @property
    def last_stable_offset(self) -> int:
        """
        The offset up to which all transactions are decided; a ``read_committed`` fetch does not go beyond it.

        The first offset of the earliest open transaction, or ``next_offset`` if none is open. Takes constant time.

        Source:
            UnifiedLog.fetchLastStableOffsetMetadata, ProducerStateManager.firstUnstableOffset (Kafka 4.3). A broker
            counts a transaction as open until the high watermark has passed its marker.
        """
        return next(iter(self._open.values()), self._next_offset)

    @property
    def open_transactions(self) -> dict[int, int]:
        """The first offset of each transaction without a marker, by producer id; in ascending order of the offsets."""
        return dict(self._open)

    def append(self, batch: RecordBatch) -> None:
        """
        Append the next batch of the log.

        A transactional batch begins a transaction unless its producer has one open. A marker ends it, and does nothing
        if the producer has none: that transaction had no records in this partition, or they were compacted away.
        Batches without a producer id belong to no transaction.

        Raises:
            MalformedInputError: *batch* does not ascend, a part of it is malformed, or it is not transactional though
                its producer has a transaction open; nothing was changed.

        Source:
            ProducerAppendInfo.append, appendDataBatch, appendEndTxnMarker (Kafka 4.3). Producer epochs and sequence
            numbers are not looked at: the log has already accepted the batch.
        """
        self._append(expect(batch, RecordBatch, "batch"), "batch")

    def aborted_in(self, first_offset: int, last_offset: int) -> tuple[AbortedTransaction, ...]:
        """
        Return the aborted transactions that overlap *first_offset* .. *last_offset*, markers included.

        They come in the order of their markers, as in a fetch response. A broker may list more that begin after what
        it returns, because the index by which it finds the end of a fetch is sparse; they filter nothing.

        Complexity: ``O(log n)``, and ``O(1)`` for each transaction that ended in the range, ``O(log² n)`` for each that
        ended after it; *n* is the number of aborted transactions.

        Raises:
            MalformedInputError: An offset is not a 64-bit integer.

        Source:
            LocalLog.addAbortedTransactions, TransactionIndex.collectAbortedTxns (Kafka 4.3).
        """
        if integer(last_offset, "last_offset") < integer(first_offset, "first_offset"):
            return ()
        begin = bisect_left(self._markers, first_offset)
        end = bisect_right(self._markers, last_offset, begin)
        return tuple(self._aborted[begin:end] + self._aborted_later(end, last_offset))

    def forget(self, markers: Collection[int]) -> None:
        """
        Forget the aborted transactions whose markers are at the offsets *markers*.

        A compaction does that which finds no records of them any more: it may delete their markers.

        Complexity: ``O(n)`` in the aborted transactions.

        Source:
            CleanedTransactionMetadata.onControlBatchRead (Kafka 4.4).
        """
        kept = [each for each in zip(self._markers, self._aborted, strict=True) if each[0] not in markers]
        self._markers, self._aborted, self._first_offsets = [], [], LeastOfBlocks()
        for marker, transaction in kept:
            self._note_aborted(marker, transaction)

    def _append(self, batch: RecordBatch, field: str) -> None:
        if not is_batch_after(batch, self._next_offset - 1):
            refuse_batch(batch, self._next_offset - 1, field)
        if batch.producer_id > NO_PRODUCER_ID:
            if batch.control is not None:
                self._end(batch.producer_id, batch.first_offset, batch.control)
            elif batch.is_transactional:
                self._open.setdefault(batch.producer_id, batch.first_offset)
            elif batch.producer_id in self._open:
                refuse(f"expected a transactional batch: producer {batch.producer_id} has a transaction open", field)
        self._next_offset = batch.last_offset + 1

    def _end(self, producer_id: int, marker: int, control: ControlType) -> None:
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None or control is ControlType.COMMIT:
            return
        self._note_aborted(marker, AbortedTransaction(producer_id, first_offset))

    def _note_aborted(self, marker: int, transaction: AbortedTransaction) -> None:
        self._aborted.append(transaction)
        self._markers.append(marker)
        self._first_offsets.append(transaction.first_offset)

    def _aborted_later(self, index: int, offset: int) -> list[AbortedTransaction]:
        """Return the transactions from *index* on that began at *offset* or before."""
        found = []
        while (index := self._first_offsets.next_at_most(index, offset)) < len(self._aborted):
            found.append(self._aborted[index])
            index += 1
        return found
