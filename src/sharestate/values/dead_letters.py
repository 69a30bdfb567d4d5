"""Records on their way to a dead-letter queue."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sharestate.values.records import SharePartitionKey


class DeadLetterCause(StrEnum):
    """
    The cause for which records go to the dead-letter queue.

    Source:
        KIP-1191; ShareGroupDLQRecordParameter (Kafka 4.4.0).
    """

    CLIENT_REJECT = "client_reject"
    """Their member has rejected them."""

    DELIVERY_COUNT_EXCEEDED = "delivery_count_exceeded"
    """They would have become available again, but have been delivered as often as the group allows."""


class DeadLetter(NamedTuple):
    """
    A range of records that goes to the dead-letter queue as one.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        delivery_count: The deliveries of each of them so far. [deliveries]
        cause: The cause.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause


class DeadLetterRequest(NamedTuple):
    """
    Records to hand to the dead-letter queue. It must be answered once, in any order, by ``dead_letter_answered``.

    Attributes:
        key: The share partition.
        number: The request's number: 0, 1, 2 ... in the order in which this share partition issued them.
        first_offset: The first offset of the records.
        last_offset: The last offset of the records, included. The log may lack some of them.
        delivery_count: The deliveries of each of them so far. [deliveries]
        cause: The cause.

    Source:
        ShareGroupDLQRecordParameter (Kafka 4.4.0).
    """

    key: SharePartitionKey
    number: int
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause
