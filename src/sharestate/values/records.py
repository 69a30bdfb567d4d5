"""Share partitions, the record batches of a log, and the records acquired from them."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import field, frozen

from sharestate.values.checks import MAX_INT64, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_OFFSET: Final = MAX_INT64 - 1
"""The largest offset of a record: the one after it, where the SPSO goes once the record is done, is an offset too."""

NO_PRODUCER_ID: Final = -1
"""The producer id of batches that were written without one."""


def _group_id(value: str) -> str:
    return text(value, "group_id")


def _topic_id(value: str) -> str:
    return text(value, "topic_id")


@frozen(kw_only=True)
class SharePartitionKey:
    """
    A share group's view of one partition of a topic.

    Attributes:
        group_id: The share group.
        topic_id: The topic's UUID, as Kafka prints it: 22 characters of URL-safe base64; ``topic_id_of`` makes it.
        partition: The partition's index.

    Raises:
        MalformedInputError: A field is of the wrong type, or the partition is negative or has more than 32 bits.

    Source:
        SharePartitionKey (Kafka 4.3.1).
    """

    group_id: str = field(converter=_group_id)
    topic_id: str = field(converter=_topic_id)
    partition: int = field(validator=number(0, 2**31 - 1))

    def __str__(self) -> str:
        """Return the key as it stands in messages."""
        return f"{self.group_id}-{self.topic_id}-{self.partition}"


class RecordState(IntEnum):
    """
    The state of an in-flight record; the numbers are those of the wire.

    Source:
        RecordState (Kafka 4.4.0).
    """

    AVAILABLE = 0
    """It may be acquired."""

    ACQUIRED = 1
    """A member owns it until it acknowledges or its acquisition lock expires."""

    ACKNOWLEDGED = 2
    """It was accepted. Terminal."""

    ARCHIVING = 3
    """It goes to the dead-letter queue, and is archived once that has answered; only under Kafka 4.4 (KIP-1191)."""

    ARCHIVED = 4
    """It was rejected, delivered too often, or is gone from the log. Terminal."""


def is_near_limit(state: int, delivery_count: int, delivery_count_limit: int) -> bool:
    """
    Return whether a record has been delivered, and has one delivery left or none.

    One that is ARCHIVING or terminal has had its last one.

    >>> is_near_limit(RecordState.AVAILABLE, 4, 5), is_near_limit(RecordState.AVAILABLE, 3, 5)
    (True, False)
    >>> is_near_limit(RecordState.ARCHIVING, 5, 5), is_near_limit(RecordState.AVAILABLE, 0, 1)
    (False, False)
    """
    return state in _DELIVERABLE and delivery_count >= max(delivery_count_limit - 1, 1)


_DELIVERABLE: Final = frozenset({RecordState.AVAILABLE, RecordState.ACQUIRED})


def unknown_state(states: Iterable[tuple[int, int, int, int]]) -> str | None:
    """
    Return which of *states* is the first that ``RecordState`` has not, and where; None if it has all of them.

    >>> unknown_state([(0, 4, 2, 1), (10, 14, 5, 1)])
    'unknown delivery state 5 at 10-14'

    Args:
        states: First and last offset, number of the delivery state, and delivery count of each range.
    """
    named = ((first, last, state) for first, last, state, _ in states if state not in _NUMBERS)
    return next((f"unknown delivery state {state} at {first}-{last}" for first, last, state in named), None)


_NUMBERS: Final = frozenset(map(int, RecordState))


class AcquireMode(Enum):
    """
    The strictness of ``max_records``.

    Source:
        KIP-1206; ShareAcquireMode (Kafka 4.3.1).
    """

    BATCH_OPTIMIZED = "batch_optimized"
    """``max_records`` is rounded up to whole batches of the log."""

    RECORD_LIMIT = "record_limit"
    """Never more than ``max_records``."""


class ControlType(Enum):
    """The kind of a transaction marker."""

    ABORT = "ABORT"
    """The transaction was aborted."""

    COMMIT = "COMMIT"
    """The transaction was committed."""


class RecordBatch(NamedTuple):
    """
    One record batch of the log; its records may be fewer than its offsets.

    Any values make one: they are checked when it is used, in a ``FetchedRecords`` or a ``TransactionIndex``.

    Attributes:
        first_offset: The batch's base offset.
        last_offset: Its last offset, included.
        producer_id: The producer's id; NO_PRODUCER_ID for none.
        is_transactional: Whether it belongs to a transaction. A control batch always does.
        control: The kind of a control batch; None for a batch of data.
    """

    first_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER_ID
    is_transactional: bool = False
    control: ControlType | None = None


class AbortedTransaction(NamedTuple):
    """
    A transaction that the fetch response lists as aborted.

    Any values make one: they are checked when it is used, in a ``FetchedRecords``.

    Attributes:
        producer_id: The producer's id.
        first_offset: The offset of its first record.
    """

    producer_id: int
    first_offset: int


class AcquiredRecords(NamedTuple):
    """
    A range of records that a member has just acquired.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        delivery_count: The deliveries of each of them so far, this one included. [deliveries]
    """

    first_offset: int
    last_offset: int
    delivery_count: int
