"""What a fetch brought from the log, and what was acquired of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from attrs import field, frozen

from sharestate.errors import MalformedInputError

MAX_OFFSET: Final = 2**63 - 1
"""The largest offset that the wire can carry."""

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
    """The producer's id, -1 for none."""

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
    return tuple(batches)


def _aborted_transactions(transactions: Iterable[AbortedTransaction]) -> tuple[AbortedTransaction, ...]:
    return tuple(transactions)


def _ascending(_instance: object, _attribute: object, batches: tuple[RecordBatch, ...]) -> None:
    previous = -1
    for index, batch in enumerate(batches):
        if not previous < batch[0] <= batch[1] <= MAX_OFFSET:
            message = f"log batches ascend without overlap within 0..2^63-1: {batch[0]}-{batch[1]} after {previous}"
            raise MalformedInputError(message, f"batches[{index}]")
        previous = batch[1]


@frozen(kw_only=True)
class FetchedRecords:
    """
    What a fetch of the log answered.

    Raises:
        MalformedInputError: The batches do not ascend, or overlap.

    Source:
        FetchPartitionData (Kafka 4.3.1).
    """

    fetch_offset: int
    """The offset at which the log was asked; it may lie inside the first batch, or before it after a compaction."""

    batches: tuple[RecordBatch, ...] = field(converter=_record_batches, validator=_ascending)
    """The record batches, in the order of the log."""

    aborted_transactions: tuple[AbortedTransaction, ...] = field(default=(), converter=_aborted_transactions)
    """The aborted transactions that the response lists, in any order."""

    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    """The group's isolation level."""
