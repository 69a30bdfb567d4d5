"""What a fetch brought from the log, and what was acquired of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from sharestate.values.checks import MAX_INT64, MIN_INT64, expect, integer, refuse, rows

MAX_OFFSET: Final = MAX_INT64 - 1
"""The largest offset of a record: the one after it, where the SPSO goes once the record is done, is an offset too."""

NO_PRODUCER_ID: Final = -1
"""The producer id of batches that were written without one."""


class RecordState(IntEnum):
    """
    What has become of an in-flight record; the numbers are those of the wire.

    Source:
        RecordState (Kafka 4.3.1); 3, ARCHIVING, belongs to the dead-letter queue and is no state of ours.
    """

    AVAILABLE = 0
    """It may be acquired."""

    ACQUIRED = 1
    """A member holds it, until it acknowledges or its acquisition lock lapses."""

    ACKNOWLEDGED = 2
    """Done: accepted. Terminal."""

    ARCHIVED = 4
    """Done: rejected, given up, or gone from the log. Terminal."""


class AcquireMode(Enum):
    """
    How strictly ``max_records`` is taken.

    Source:
        KIP-1206; ShareAcquireMode (Kafka 4.3.1).
    """

    BATCH_OPTIMIZED = "batch_optimized"
    """``max_records`` is rounded up to whole batches of the log."""

    RECORD_LIMIT = "record_limit"
    """Never more than ``max_records``."""


class IsolationLevel(Enum):
    """Whether records of aborted transactions are delivered (``share.isolation.level``)."""

    READ_UNCOMMITTED = "read_uncommitted"
    """They are."""

    READ_COMMITTED = "read_committed"
    """They are archived as they are acquired."""


class ControlType(Enum):
    """What a transaction marker says."""

    ABORT = "ABORT"
    """The transaction was aborted."""

    COMMIT = "COMMIT"
    """The transaction was committed."""


class RecordBatch(NamedTuple):
    """One record batch of the log; its records may be fewer than its offsets."""

    first_offset: int
    """The batch's base offset."""

    last_offset: int
    """Its last offset, included."""

    producer_id: int = NO_PRODUCER_ID
    """The producer's id; NO_PRODUCER_ID for none."""

    is_transactional: bool = False
    """Whether it belongs to a transaction. A control batch always does."""

    control: ControlType | None = None
    """What the batch says, if it is a control batch."""


class AbortedTransaction(NamedTuple):
    """A transaction that the fetch response lists as aborted."""

    producer_id: int
    """Whose transaction."""

    first_offset: int
    """Where its first record stands."""


class AcquiredRecords(NamedTuple):
    """A range of records that a member has just acquired."""

    first_offset: int
    """The first offset of the range."""

    last_offset: int
    """The last offset of the range, included."""

    delivery_count: int
    """How often each of them has been delivered now, this time included. [deliveries]"""


def _record_batches(batches: Iterable[RecordBatch]) -> tuple[RecordBatch, ...]:
    batches = rows(batches, RecordBatch, "batches")
    previous = -1
    for index, batch in enumerate(batches):
        if not _is_batch_after(batch, previous):
            _refuse_batch(batch, previous, f"batches[{index}]")
        previous = batch.last_offset
    return batches


def _is_batch_after(batch: Any, previous: int) -> bool:  # noqa: ANN401 - whatever the caller has put into it
    first, last, producer_id, is_transactional, control = batch
    return (
        type(first) is type(last) is type(producer_id) is int
        and previous < first <= last <= MAX_OFFSET
        and MIN_INT64 <= producer_id <= MAX_INT64
        and type(is_transactional) is bool
        and (control is None or type(control) is ControlType)
    )


def _refuse_batch(batch: RecordBatch, previous: int, field: str) -> None:
    """Say what is wrong with *batch*; a number of a subclass of int is not."""
    integer(batch.first_offset, f"{field}.first_offset", 0, MAX_OFFSET)
    integer(batch.last_offset, f"{field}.last_offset", 0, MAX_OFFSET)
    integer(batch.producer_id, f"{field}.producer_id")
    expect(batch.is_transactional, bool, f"{field}.is_transactional")
    if batch.control is not None:
        expect(batch.control, ControlType, f"{field}.control")
    if not previous < batch.first_offset <= batch.last_offset:
        refuse(f"log batches ascend without overlap: {batch.first_offset}-{batch.last_offset} after {previous}", field)


def _aborted_transactions(transactions: Iterable[AbortedTransaction]) -> tuple[AbortedTransaction, ...]:
    transactions = rows(transactions, AbortedTransaction, "aborted_transactions")
    for index, transaction in enumerate(transactions):
        integer(transaction.producer_id, f"aborted_transactions[{index}].producer_id")
        integer(transaction.first_offset, f"aborted_transactions[{index}].first_offset")
    return transactions


def _fetch_offset(offset: int) -> int:
    return integer(offset, "fetch_offset", 0)


def _isolation(level: IsolationLevel) -> IsolationLevel:
    return expect(level, IsolationLevel, "isolation")


@frozen(kw_only=True)
class FetchedRecords:
    """
    What a fetch of the log answered.

    Raises:
        MalformedInputError: A part is of the wrong type, or the batches do not ascend, or overlap, or reach beyond
            2^63 - 2, after which there is no offset that the wire can carry.

    Source:
        FetchPartitionData (Kafka 4.3.1).
    """

    fetch_offset: int = field(converter=_fetch_offset)
    """The offset at which the log was asked; it may lie inside the first batch, or before it after a compaction."""

    batches: tuple[RecordBatch, ...] = field(converter=_record_batches)
    """The record batches, in the order of the log."""

    aborted_transactions: tuple[AbortedTransaction, ...] = field(default=(), converter=_aborted_transactions)
    """The aborted transactions that the response lists, in any order."""

    isolation: IsolationLevel = field(default=IsolationLevel.READ_UNCOMMITTED, converter=_isolation)
    """The group's isolation level."""
