"""The records that a fetch of the log returned, as a broker reads them for a share group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, Self

from attrs import field, frozen

from sharestate.values.checks import a_tuple, brief_repr, expect, integer, refuse, rows
from sharestate.values.list_slices import CheckedBatches
from sharestate.values.records import MAX_OFFSET, AbortedTransaction, RecordBatch, is_batch_after, refuse_batch
from sharestate.values.transaction_index import TransactionIndex


class IsolationLevel(Enum):
    """The visibility of records of aborted transactions (``share.isolation.level``)."""

    READ_UNCOMMITTED = "read_uncommitted"
    """They are delivered."""

    READ_COMMITTED = "read_committed"
    """They are archived as they are acquired."""


_FIELDS: Final = len(RecordBatch._fields)


def _record_batches(batches: Iterable[RecordBatch]) -> Sequence[RecordBatch]:
    if type(batches) is CheckedBatches:  # fetches of one record after the other share them; an isinstance takes long
        return batches
    batches = a_tuple(batches, RecordBatch, "batches")
    previous = -1
    for batch in batches:  # one by one: there is usually one
        if type(batch) is not RecordBatch or len(batch) != _FIELDS or not is_batch_after(batch, previous):
            return _looked_at(batches)
        previous = batch.last_offset
    return batches


def _looked_at(batches: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
    """Return *batches*, or name the first that is wrong: usually there is one."""
    rows(batches, RecordBatch, "batches")
    previous = -1
    for index, batch in enumerate(batches):
        if not is_batch_after(batch, previous):
            refuse_batch(batch, previous, f"batches[{index}]")
        previous = batch.last_offset
    return batches


def _last_offset(batch: RecordBatch) -> int:
    return expect(batch, RecordBatch, "log").last_offset


def _aborted_transactions(transactions: Iterable[AbortedTransaction]) -> tuple[AbortedTransaction, ...]:
    if transactions == ():  # nearly always
        return ()
    transactions = rows(transactions, AbortedTransaction, "aborted_transactions")
    for index, transaction in enumerate(transactions):
        integer(transaction.producer_id, f"aborted_transactions[{index}].producer_id")
        integer(transaction.first_offset, f"aborted_transactions[{index}].first_offset")
    return transactions


def _fetch_offset(offset: int) -> int:
    return offset if type(offset) is int and 0 <= offset <= MAX_OFFSET else integer(offset, "fetch_offset", 0)


def _isolation(level: IsolationLevel) -> IsolationLevel:
    return level if type(level) is IsolationLevel else expect(level, IsolationLevel, "isolation")


@frozen(kw_only=True, slots=False)  # with slots each field of a frozen instance takes twice as long to set
class FetchedRecords:
    """
    The answer of the log to a fetch.

    Attributes:
        fetch_offset: The offset that was fetched; it may lie inside the first batch, or before it after a
            compaction.
        batches: The record batches, in the order of the log.
        aborted_transactions: The aborted transactions that the response lists, in any order.
        isolation: The group's isolation level.

    Raises:
        MalformedInputError: A part is of the wrong type, or the batches do not ascend, or overlap, or reach beyond
            2^63 - 2, after which there is no offset that the wire can carry.

    Source:
        FetchPartitionData (Kafka 4.3.1).
    """

    fetch_offset: int = field(converter=_fetch_offset)
    batches: Sequence[RecordBatch] = field(converter=_record_batches)
    aborted_transactions: tuple[AbortedTransaction, ...] = field(default=(), converter=_aborted_transactions)
    isolation: IsolationLevel = field(default=IsolationLevel.READ_UNCOMMITTED, converter=_isolation)

    @classmethod
    def from_log(
        cls,
        log: Sequence[RecordBatch],
        transactions: TransactionIndex,
        *,
        fetch_offset: int,
        max_batches: int | None = None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> Self:
        """
        Read *log* as a broker reads it for a share fetch.

        With ``read_committed`` the fetch ends before the last stable offset and lists the aborted transactions that it
        overlaps; otherwise it ends before the high watermark, which is the index's ``next_offset``. A fetch from that
        end on returns nothing. Takes logarithmic time, and linear time in what is returned.

        Args:
            log: The record batches of the log, ascending.
            transactions: The index to which the replicated batches of *log* were appended.
            fetch_offset: Where to begin: with the batch that holds this offset, or the first one after it.
            max_batches: The most batches to return, at least 1. None for all. [batches]
            isolation: The group's isolation level (``share.isolation.level``).

        Raises:
            MalformedInputError: An argument is of the wrong type or out of range, or the batches do not ascend.

        Source:
            KafkaApis.handleFetchFromShareFetchRequest, FetchIsolation.of, UnifiedLog.read, LocalLog.read (Kafka 4.3).

        >>> from sharestate import ControlType
        >>> log = [
        ...     RecordBatch(0, 4, 7, True),
        ...     RecordBatch(5, 5, 7, True, ControlType.ABORT),
        ...     RecordBatch(6, 9, 7, True),
        ... ]
        >>> fetched = FetchedRecords.from_log(
        ...     log, TransactionIndex(log), fetch_offset=2, isolation=IsolationLevel.READ_COMMITTED
        ... )
        >>> [(batch.first_offset, batch.last_offset) for batch in fetched.batches], fetched.aborted_transactions
        ([(0, 4), (5, 5)], (AbortedTransaction(producer_id=7, first_offset=0),))
        """
        committed = expect(isolation, IsolationLevel, "isolation") is IsolationLevel.READ_COMMITTED
        if not isinstance(log, Sequence):
            refuse(f"expected a sequence of RecordBatch, got {brief_repr(log)}", "log")
        first = bisect_left(log, integer(fetch_offset, "fetch_offset", 0), key=_last_offset)
        expect(transactions, TransactionIndex, "transactions")
        end_offset = transactions.last_stable_offset if committed else transactions.next_offset
        end = bisect_left(log, end_offset, key=_last_offset)
        if max_batches is not None:
            end = min(end, first + integer(max_batches, "max_batches", 1))
        batches = log[first:end]
        aborted = transactions.aborted_in(fetch_offset, batches[-1].last_offset) if committed and batches else ()
        return cls(fetch_offset=fetch_offset, batches=batches, aborted_transactions=aborted, isolation=isolation)
