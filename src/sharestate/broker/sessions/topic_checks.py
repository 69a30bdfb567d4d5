"""Partitions as requests name them, and what a broker has to know of their topics to answer for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from sharestate.error_codes import ErrorCode
from sharestate.values.checks import brief_repr, integer, refuse, rows, text

T = TypeVar("T")

_MIN_INT32: Final = -(2**31)
_MAX_INT32: Final = 2**31 - 1
"""What the wire can carry."""


class TopicIdPartition(NamedTuple):
    """
    A partition of a topic, as a request names it.

    Attributes:
        topic_id: The topic's UUID, as Kafka prints it: 22 characters of URL-safe base64.
        partition: The partition's index.
        topic: The topic's name; None if the broker knows no topic with this id.
    """

    topic_id: str
    partition: int
    topic: str | None = None


PartitionId: TypeAlias = tuple[str, int]
"""Topic id and index: what a partition is known by, whatever its name."""


def partition_id(partition: TopicIdPartition) -> PartitionId:
    """Return what *partition* is known by."""
    return partition[:2]


def checked_partitions(partitions: Iterable[TopicIdPartition], name: str) -> tuple[TopicIdPartition, ...]:
    """
    Return *partitions*, the argument *name*, as a tuple.

    Raises:
        MalformedInputError: One is of another type, or a field of it is.
    """
    checked = rows(partitions, TopicIdPartition, name)
    for index, (topic_id, partition, topic) in enumerate(checked):
        if type(topic_id) is type(topic) is str and type(partition) is int and _MIN_INT32 <= partition <= _MAX_INT32:
            continue  # nearly always
        where = f"{name}[{index}]"
        text(topic_id, f"{where}.topic_id")
        integer(partition, f"{where}.partition", _MIN_INT32, _MAX_INT32)
        if topic is not None:
            text(topic, f"{where}.topic")
    return checked


def checked_by_partition(values: Mapping[TopicIdPartition, T], name: str) -> Mapping[TopicIdPartition, T]:
    """
    Return *values*, the argument *name*, which are values by partition; nobody has looked at the values themselves.

    Raises:
        MalformedInputError: It is no mapping, or a key is no partition.
    """
    anything: object = values
    if not isinstance(anything, Mapping):
        refuse(f"expected a mapping of partitions, got {brief_repr(anything)}", name)
    checked_partitions(values, name)
    return values


class TopicMetadata(Protocol):
    """The topics of a broker's metadata, as the one who asks may see them."""

    def may_read(self, topic: str) -> bool:
        """Return whether READ on *topic*, a name, is authorized."""

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether *topic*, a name, has a partition with this index."""


TOPIC_CHECKS: Final[tuple[tuple[ErrorCode, Callable[[TopicIdPartition, TopicMetadata], bool]], ...]] = (
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


def topic_error(partition: TopicIdPartition, topics: TopicMetadata) -> ErrorCode:
    """Return the first error of *partition*; NONE if it can be fetched and acknowledged (sessions 5)."""
    for code, holds in TOPIC_CHECKS:
        if not holds(partition, topics):
            return code
    return ErrorCode.NONE
