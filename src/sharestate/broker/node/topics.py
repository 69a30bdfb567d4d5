"""The topics of a node: names, ids, partitions and configs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from attrs import evolve, field, frozen

from sharestate.broker.node.topic_configs import MAX_INT32, TopicConfig, read_topic_configs
from sharestate.coordinator.wire import topic_id_bytes, topic_id_of
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.checks import integer, refuse, text

USE_DEFAULT: Final = -1
"""What requests say for a number of partitions or replicas that the node is to choose."""

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""The most partitions that are made at once (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH, Kafka 4.4)."""

_TOO_MANY: Final = "Excessively large number of partitions per request."

MAX_TOPIC_NAME: Final = 249
"""The longest name of a topic (Topic.MAX_NAME_LENGTH, Kafka 4.4). [characters]"""

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})
"""The topics that brokers write for themselves (Topic.INTERNAL_TOPICS, Kafka 4.4)."""

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]*")

_LEAST_ID: Final = 2
"""The least UUID of a topic: Kafka keeps 0 for none and 1 for its metadata (Uuid.RESERVED, Kafka 4.4)."""

_FIRST_ID: Final = int.from_bytes(b"sharestate" + bytes(6)) + 1
"""The first UUID of the count: who asks for an id that no topic has, such as 7, shall not meet one."""


@frozen(kw_only=True)
class Topic:
    """
    A topic of a node.

    Attributes:
        name: Its name.
        topic_id: Its id, which no other topic of the node has or had.
        partition_count: How many partitions it has. [partitions]
        configs: The texts of the configs that were given for it, by their names.
        config: What they, and the defaults for the others, come to.
    """

    name: str
    topic_id: str
    partition_count: int
    configs: Mapping[str, str] = field(factory=dict)
    config: TopicConfig = field(factory=TopicConfig)

    @property
    def is_internal(self) -> bool:
        """True if brokers write it for themselves."""
        return self.name in INTERNAL_TOPICS


class Topics:
    """
    The topics of a node, as its controller keeps them.

    It is the ``TopicMetadata`` of ``sharestate.broker.sessions``: everyone may read every topic.

    Args:
        default_partition_count: The partitions of a topic that is made without a number (``num.partitions``).

    Attributes:
        default_partition_count: The same.

    Raises:
        MalformedInputError: The number is not within 1 and 10,000.

    >>> topics = Topics()
    >>> orders = topics.create("orders", 3)
    >>> orders.topic_id, topics.name_of(orders.topic_id), topics.has_partition("orders", 3)
    ('c2hhcmVzdGF0ZQAAAAAAAQ', 'orders', False)
    >>> topics.delete("orders").partition_count, topics.create("orders").topic_id
    (3, 'c2hhcmVzdGF0ZQAAAAAAAg')

    Not thread-safe.
    """

    def __init__(self, *, default_partition_count: int = 1) -> None:
        """Begin without topics."""
        self.default_partition_count = integer(
            default_partition_count, "default_partition_count", 1, MAX_PARTITIONS_PER_REQUEST
        )
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[str, Topic] = {}
        # Names that differ in dots and underscores only would be one in the names of metrics.
        self._unified: dict[str, str] = {}
        self._used_ids: set[str] = set()
        self._next_number = _FIRST_ID

    def __len__(self) -> int:
        """Return how many topics there are."""
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        """Iterate over the topics, in the order in which they were made."""
        return iter(tuple(self._by_name.values()))

    def by_name(self, name: str) -> Topic | None:
        """Return the topic with *name*; None if there is none."""
        return self._by_name.get(name)

    def by_id(self, topic_id: str) -> Topic | None:
        """Return the topic with *topic_id*; None if there is none."""
        return self._by_id.get(topic_id)

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of the topic with *topic_id*; None if there is none."""
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    def may_read(self, topic: str) -> bool:  # noqa: ARG002 - TopicMetadata has it
        """Return True: there is nobody who may not."""
        return True

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether *topic*, a name, has a partition with this index."""
        found = self._by_name.get(topic)
        return found is not None and 0 <= partition < found.partition_count

    def create(  # noqa: PLR0913 - as many as the request has fields for a topic
        self,
        name: str,
        partition_count: int = USE_DEFAULT,
        *,
        replication_factor: int = USE_DEFAULT,
        configs: Mapping[str, str] = MappingProxyType({}),
        topic_id: str | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """
        Make a topic and return it.

        Args:
            name: Its name.
            partition_count: How many partitions it has; -1 for as many as the node makes by default. [partitions]
            replication_factor: How many replicas they have: 1, or -1, which is the same on a node that is alone.
            configs: The texts of its configs, by their names.
            topic_id: Its id. None for the next number of a count, as a UUID.
            validate_only: Whether it is only seen if the topic could be made.

        Raises:
            MalformedInputError: An argument is of the wrong type, or *topic_id* is the id of another topic, or was
                once; nothing was changed.
            InvalidConfigurationError: Kafka does not take *configs*; nothing was changed.
            NodeError: Kafka does not take another argument, for the first reason of its own order; nothing was changed.

        Source:
            ReplicationControlManager.createTopics, createTopic (Kafka 4.4).
        """
        wanted = integer(partition_count, "partition_count", -(2**31), MAX_INT32)
        replicas = integer(replication_factor, "replication_factor", -(2**15), 2**15 - 1)
        chosen_id = None if topic_id is None else self._unused_id(topic_id)
        partition_count = self.default_partition_count if wanted == USE_DEFAULT else wanted
        if partition_count > MAX_PARTITIONS_PER_REQUEST:
            raise NodeError(_TOO_MANY, ErrorCode.POLICY_VIOLATION)
        self._check_name(text(name, "name"))
        config = read_topic_configs(configs)
        _check_counts(partition_count, replicas)
        topic = Topic(
            name=name,
            topic_id=chosen_id or self._next_id(),
            partition_count=partition_count,
            configs=MappingProxyType(dict(configs)),
            config=config,
        )
        if not validate_only:
            self._used_ids.add(topic.topic_id)
            self._put(topic)
            if unified := _unified(name):
                self._unified[unified] = name
        return topic

    def delete(self, name: str) -> Topic:
        """
        Delete the topic with *name* and return what it was.

        Raises:
            NodeError: There is none.

        Source:
            ReplicationControlManager.findTopicIds, deleteTopic (Kafka 4.4).
        """
        topic = self._known(name)
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        self._unified.pop(_unified(name), None)
        return topic

    def grow(self, name: str, partition_count: int, *, validate_only: bool = False) -> Topic:
        """
        Give the topic with *name* more partitions, so that it has *partition_count*; return what it becomes.

        Raises:
            MalformedInputError: An argument is of the wrong type.
            NodeError: There is no such topic, or the number would be no increase, or be too large an increase.

        Source:
            ReplicationControlManager.createPartitions (Kafka 4.4).
        """
        topic = self._known(name)
        before, wanted = topic.partition_count, integer(partition_count, "partition_count", -(2**31), MAX_INT32)
        if wanted == before:
            message = f"Topic already has {before} partition(s)."
            raise NodeError(message, ErrorCode.INVALID_PARTITIONS)
        if wanted < before:
            message = f"The topic {name} currently has {before} partition(s); {wanted} would not be an increase."
            raise NodeError(message, ErrorCode.INVALID_PARTITIONS)
        if wanted - before > MAX_PARTITIONS_PER_REQUEST:
            raise NodeError(_TOO_MANY, ErrorCode.POLICY_VIOLATION)
        grown = evolve(topic, partition_count=wanted)
        if not validate_only:
            self._put(grown)
        return grown

    def configure(self, name: str, configs: Mapping[str, str]) -> Topic:
        """
        Give the topic with *name* these configs, in the place of those that it had; return what it becomes.

        Raises:
            MalformedInputError: An argument is of the wrong type.
            InvalidConfigurationError: Kafka does not take *configs*; nothing was changed.
            NodeError: There is no such topic.
        """
        topic = evolve(self._known(name), configs=MappingProxyType(dict(configs)), config=read_topic_configs(configs))
        self._put(topic)
        return topic

    def _put(self, topic: Topic) -> None:
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic

    def _known(self, name: str) -> Topic:
        topic = self._by_name.get(text(name, "name"))
        if topic is None:
            raise NodeError(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def _check_name(self, name: str) -> None:
        """Refuse *name* if no topic can have it; of several reasons it is that which Kafka writes last."""
        if name in self._by_name:
            message = f"Topic '{name}' already exists."
            raise NodeError(message, ErrorCode.TOPIC_ALREADY_EXISTS)
        if (other := self._unified.get(_unified(name))) is not None:
            message = f"Topic '{name}' collides with existing topic: {other}"
            raise NodeError(message, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if (reason := invalid_name(name)) is not None:
            message = f"Topic name is invalid: {reason}"
            raise NodeError(message, ErrorCode.INVALID_TOPIC_EXCEPTION)

    def _unused_id(self, topic_id: str) -> str:
        number = int.from_bytes(topic_id_bytes(text(topic_id, "topic_id")))
        if number < _LEAST_ID or topic_id in self._used_ids:
            refuse(f"expected an id that no topic has or had, got {topic_id}", "topic_id")
        return topic_id

    def _next_id(self) -> str:
        while (topic_id := topic_id_of(UUID(int=self._next_number))) in self._used_ids:
            self._next_number += 1
        return topic_id


def invalid_name(name: str) -> str | None:
    """
    Return why no topic can have *name*; None if one can.

    Source:
        Topic.detectInvalidTopic (Kafka 4.4).
    """
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_TOPIC_NAME:
        return f"the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME}"
    if not _NAME.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def _unified(name: str) -> str:
    """Return *name* with underscores for dots if it has any of them, else nothing (Topic.unifyCollisionChars)."""
    return name.replace(".", "_") if "." in name or "_" in name else ""


def _check_counts(partition_count: int, replication_factor: int) -> None:
    if replication_factor < USE_DEFAULT or replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise NodeError(message, ErrorCode.INVALID_REPLICATION_FACTOR)
    if partition_count <= 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise NodeError(message, ErrorCode.INVALID_PARTITIONS)
    if replication_factor > 1:
        message = (
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only 1 broker(s) are registered or some brokers have all "
            "their log directories cordoned."
        )
        raise NodeError(message, ErrorCode.INVALID_REPLICATION_FACTOR)
