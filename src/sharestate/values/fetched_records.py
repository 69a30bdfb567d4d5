"""The records that a fetch of the log returned, as a broker reads them for a share group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, Self

from attrs import frozen

from sharestate.values.batch_checks import record_batches
from sharestate.values.checks import brief_repr, expect, integer, refuse, rows
from sharestate.values.records import MAX_OFFSET, AbortedTransaction, RecordBatch
from sharestate.values.transaction_index import TransactionIndex


class IsolationLevel(Enum):
    """The visibility of records of aborted transactions (``share.isolation.level``)."""

    READ_UNCOMMITTED = "read_uncommitted"
    """They are delivered."""

    READ_COMMITTED = "read_committed"
    """They are archived as they are acquired."""


_NONE: Final = ()  # the only empty tuple of CPython, so to look whether it is this one is enough


def _last_offset(batch: RecordBatch) -> int:
    return expect(batch, RecordBatch, "log").last_offset


def _aborted_transactions(transactions: Iterable[AbortedTransaction]) -> tuple[AbortedTransaction, ...]:
    transactions = rows(transactions, AbortedTransaction, "aborted_transactions")
    for index, transaction in enumerate(transactions):
        integer(transaction.producer_id, f"aborted_transactions[{index}].producer_id")
        integer(transaction.first_offset, f"aborted_transactions[{index}].first_offset")
    return transactions


@frozen(kw_only=True, slots=False, init=False)  # with slots each field of a frozen instance takes twice as long to set
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

    fetch_offset: int
    batches: Sequence[RecordBatch]
    aborted_transactions: tuple[AbortedTransaction, ...]
    isolation: IsolationLevel

    def __init__(
        self,
        *,
        fetch_offset: int,
        batches: Iterable[RecordBatch],
        aborted_transactions: Iterable[AbortedTransaction] = (),
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> None:
        """Check every part; a converter for each would be three more calls."""
        fields = self.__dict__
        is_offset = type(fetch_offset) is int and 0 <= fetch_offset <= MAX_OFFSET
        fields["fetch_offset"] = fetch_offset if is_offset else integer(fetch_offset, "fetch_offset", 0)
        fields["batches"] = record_batches(batches)
        is_none = aborted_transactions is _NONE  # nearly always
        fields["aborted_transactions"] = _NONE if is_none else _aborted_transactions(aborted_transactions)
        is_level = type(isolation) is IsolationLevel
        fields["isolation"] = isolation if is_level else expect(isolation, IsolationLevel, "isolation")

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
