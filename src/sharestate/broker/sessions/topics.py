"""What a broker has to know of topics to answer for their partitions, and the errors if it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from sharestate.error_codes import ErrorCode

if TYPE_CHECKING:
    from sharestate.broker.sessions.share_session import TopicIdPartition


class Topics(Protocol):
    """The topics of a broker's metadata, as the one who asks may see them."""

    def may_read(self, topic: str) -> bool:
        """Return whether READ on *topic*, a name, is authorized."""

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether *topic*, a name, has a partition with this index."""


TOPIC_CHECKS: Final[tuple[tuple[ErrorCode, Callable[[TopicIdPartition, Topics], bool]], ...]] = (
    (ErrorCode.UNKNOWN_TOPIC_ID, lambda asked, _: asked.topic is not None),
    (ErrorCode.TOPIC_AUTHORIZATION_FAILED, lambda asked, topics: topics.may_read(str(asked.topic))),
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        lambda asked, topics: topics.has_partition(str(asked.topic), asked.partition),
    ),
)
"""
What has to be true of a partition, each with the error if it is not, in their order.

Source:
    KafkaApis.handleFetchFromShareFetchRequest, handleAcknowledgements (Kafka 4.3.1).
"""


def topic_error(partition: TopicIdPartition, topics: Topics) -> ErrorCode:
    """Return the first error of *partition*; NONE if it can be fetched and acknowledged (sessions 5)."""
    return next((code for code, holds in TOPIC_CHECKS if not holds(partition, topics)), ErrorCode.NONE)
