"""The settings of a node, and of the groups that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import evolve, field, frozen

from sharestate.broker.groups import AssignmentOrder, GroupCoordinatorSettings
from sharestate.broker.node.topics import MAX_PARTITIONS_PER_REQUEST
from sharestate.broker.sessions import DEFAULT_MAX_SESSIONS
from sharestate.dead_letters.settings import DeadLetterSettings
from sharestate.values.checks import instance, number
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.profiles import LATEST, Profile

MAX_INT32: Final = 2**31 - 1
"""The largest value of a setting that is an int in Kafka."""

DEFAULT_FETCH_MAX_BYTES: Final = 55 * 2**20
"""``fetch.max.bytes`` of a broker that sets none (ServerConfigs, Kafka 4.4). [bytes]"""


@frozen(kw_only=True)
class GroupConfig:
    """
    The settings of a share group.

    Attributes:
        share: Those for its share partitions.
        isolation_level: Whether it reads what is not committed (``share.isolation.level``).
        coordinator: Those for its members and assignments.
        dead_letter_topic_name: Where its dead letters go (``errors.deadletterqueue.topic.name``), which decides whether
            it has a dead-letter queue, whatever *share* says; empty for nowhere.
        dead_letter_copy_record_enable: Whether dead letters have the key and value of the record
            (``errors.deadletterqueue.copy.record.enable``).
        configs: The texts of what was given for it by itself, by Kafka's names, for who asks for them; nothing else
            looks at them.

    Raises:
        MalformedInputError: A field is of the wrong type.

    Source:
        GroupConfig (Kafka 4.4).
    """

    share: ShareConfig = field(default=ShareConfig(), validator=instance(ShareConfig))
    isolation_level: IsolationLevel = field(
        default=IsolationLevel.READ_UNCOMMITTED, validator=instance(IsolationLevel, such_as="READ_COMMITTED")
    )
    coordinator: GroupCoordinatorSettings = field(
        default=GroupCoordinatorSettings(), validator=instance(GroupCoordinatorSettings)
    )
    dead_letter_topic_name: str = field(default="", validator=instance(str))
    dead_letter_copy_record_enable: bool = field(default=False, validator=instance(bool))
    configs: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class NodeConfig:
    """
    The settings of a node.

    Attributes:
        node_id: Its id (``node.id``).
        fetch_max_bytes: The most bytes of a fetch, whatever it asks for (``fetch.max.bytes``). [bytes]
        max_share_sessions: How many share sessions there may be (``group.share.max.share.sessions``). [sessions]
        group: The settings of groups that have none of their own.
        default_partition_count: The partitions of topics that are made without a number (``num.partitions``).
            [partitions]
        auto_create_topics_enable: Whether Metadata may make topics (``auto.create.topics.enable``).
        dead_letter_auto_create_topics_enable: Whether topics for dead letters are made
            (``errors.deadletterqueue.auto.create.topics.enable``).
        dead_letter_topic_name_prefix: What their names begin with (``errors.deadletterqueue.topic.name.prefix``); empty
            if any name will do.
        assignment_order: The order in which the assignor goes through members and partitions: SORTED, or JAVA for
            that of a broker.
        profile: Whose rules its share partitions follow, and whatever has rules of the same release.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        KafkaConfig, ShareGroupConfig (Kafka 4.4).
    """

    node_id: int = field(default=1, validator=number(0, MAX_INT32))
    fetch_max_bytes: int = field(default=DEFAULT_FETCH_MAX_BYTES, validator=number(1024, MAX_INT32))
    max_share_sessions: int = field(default=DEFAULT_MAX_SESSIONS, validator=number(1, MAX_INT32))
    group: GroupConfig = field(default=GroupConfig(), validator=instance(GroupConfig))
    default_partition_count: int = field(default=1, validator=number(1, MAX_PARTITIONS_PER_REQUEST))
    auto_create_topics_enable: bool = field(default=True, validator=instance(bool))
    dead_letter_auto_create_topics_enable: bool = field(default=False, validator=instance(bool))
    dead_letter_topic_name_prefix: str = field(default="dlq.", validator=instance(str))
    assignment_order: AssignmentOrder = field(default=AssignmentOrder.SORTED, validator=instance(AssignmentOrder))
    profile: Profile = field(default=LATEST, validator=instance(Profile, such_as="KAFKA_4_4"))


class GroupConfigs:
    """
    The settings of the groups of a node.

    Args:
        node: The node's settings, with those of groups that have none of their own.
    """

    def __init__(self, node: NodeConfig) -> None:
        """Begin with the same settings for all."""
        self._node = node
        self._of_group: dict[str, GroupConfig] = {}

    def configure(self, group_id: str, config: GroupConfig) -> None:
        """Give a group settings of its own."""
        self._of_group[group_id] = config

    @property
    def own(self) -> Mapping[str, GroupConfig]:
        """The settings of the groups that have some of their own, by group."""
        return MappingProxyType(self._of_group)

    def config_of(self, group_id: str) -> GroupConfig:
        """Return the settings of a group."""
        return self._of_group.get(group_id, self._node.group)

    def share_config_of(self, group_id: str) -> ShareConfig:
        """Return the settings of a group for its share partitions."""
        has_queue = self._node.profile.has_dead_letter_queue and self.dead_letters_of(group_id).has_queue
        return evolve(self.config_of(group_id).share, dead_letter_queue=has_queue)

    def dead_letters_of(self, group_id: str) -> DeadLetterSettings:
        """Return the settings of a group for its dead letters."""
        config = self.config_of(group_id)
        return DeadLetterSettings(
            topic_name=config.dead_letter_topic_name,
            copy_record_enable=config.dead_letter_copy_record_enable,
            auto_create_topics_enable=self._node.dead_letter_auto_create_topics_enable,
            topic_name_prefix=self._node.dead_letter_topic_name_prefix,
        )
