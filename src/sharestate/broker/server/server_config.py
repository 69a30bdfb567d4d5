"""The settings of a server, and how they are read from Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from attrs import field, frozen, validators

from sharestate.broker.groups import AssignmentOrder, GroupCoordinatorSettings
from sharestate.broker.node import GroupConfig, NodeConfig
from sharestate.broker.node.node_config import MAX_INT32
from sharestate.broker.server.other_group_configs import read_brokers_values
from sharestate.values.checks import instance, number
from sharestate.values.config import GroupCoordinatorConfig, ShareConfig
from sharestate.values.config_keys import RELEASES, ConfigKey, ConfigType, InRange, config_keys
from sharestate.values.effective_configs import effective_configs
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.profiles import LATEST, Profile

DEFAULT_MAX_REQUEST_BYTES: Final = 100 * 2**20
"""``socket.request.max.bytes`` of a broker that sets none (SocketServerConfigs, Kafka 4.4). [bytes]"""

QUICK_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.share.assignment.interval.ms": "0",
        "group.share.heartbeat.interval.ms": "20",
        "group.share.max.session.timeout.ms": "3600000",
        "group.share.min.heartbeat.interval.ms": "20",
        "group.share.session.timeout.ms": "3600000",
    }
)
"""
Settings for tests: members have their partitions after some heartbeats, 20 ms apart, instead of seconds; and they stay
in the group though a test moves the clock by minutes, as the clocks by which clients send heartbeats do not follow.
"""

MAX_PORT: Final = 2**16 - 1


def release_of(profile: Profile) -> str:
    """
    Return the release whose rules *profile* has, such as ``"4.4"``; the latest for rules that no release has.

    >>> from sharestate import KAFKA_4_3
    >>> release_of(KAFKA_4_3.healed)
    '4.3'
    """
    release = profile.name.removesuffix("-healed").removeprefix("kafka-")
    return release if release in RELEASES else RELEASES[-1]


def read_group_config(texts: Mapping[str, str], release: str, *, is_loaded: bool = False) -> GroupConfig:
    """
    Return the settings of a group.

    Args:
        texts: The broker's settings and the group's, by Kafka's names.
        release: The release of Kafka, such as ``"4.4"``.
        is_loaded: Whether a broker finds them in the metadata; see ``ShareConfig.from_kafka``.

    Raises:
        InvalidConfigurationError: As ``effective_configs`` raises it.
        MalformedInputError: Likewise.
    """
    values: Mapping[str, Any] = effective_configs(texts, release=release, is_loaded=is_loaded)
    coordinator = GroupCoordinatorConfig.from_kafka(texts, release=release, is_loaded=is_loaded)
    return GroupConfig(
        share=ShareConfig.from_kafka(texts, release=release, is_loaded=is_loaded),
        isolation_level=IsolationLevel(values["share.isolation.level"]),
        coordinator=GroupCoordinatorSettings(
            max_size=coordinator.max_size,
            session_timeout_ms=coordinator.session_timeout_ms,
            heartbeat_interval_ms=coordinator.heartbeat_interval_ms,
            assignment_interval_ms=coordinator.assignment_interval_ms,
            initialize_retry_interval_ms=coordinator.initialize_retry_interval_ms,
            offsets_commit_timeout_ms=values["offsets.commit.timeout.ms"],
        ),
        dead_letter_topic_name=values.get("errors.deadletterqueue.topic.name", ""),
        dead_letter_copy_record_enable=values.get("errors.deadletterqueue.copy.record.enable", False),
    )


_BOOLEAN, _INT, _STRING = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.STRING

NODE_SETTINGS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {
        "auto_create_topics_enable": ConfigKey("ServerLogConfigs", "auto.create.topics.enable", _BOOLEAN, default=True),
        "fetch_max_bytes": ConfigKey("ServerConfigs", "fetch.max.bytes", _INT, 57_671_680, InRange(1024)),
        "node_id": ConfigKey("KRaftConfigs", "node.id", _INT, 0, InRange(0)),
        "default_partition_count": ConfigKey("ServerLogConfigs", "num.partitions", _INT, 1, InRange(1)),
    }
)
"""The settings of a node that are not of share groups, by what they are called there."""

SERVER_SETTINGS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {
        "rack": ConfigKey("ServerConfigs", "broker.rack", _STRING, ""),
        "max_request_bytes": ConfigKey(
            "SocketServerConfigs", "socket.request.max.bytes", _INT, DEFAULT_MAX_REQUEST_BYTES, InRange(1)
        ),
    }
)
"""Those of a server."""

JUDGED_SETTINGS: Final = (ConfigKey("GroupCoordinatorConfig", "group.initial.rebalance.delay.ms", _INT, 3000),)
"""Those that are read, as a broker that cannot read them does not start, and do nothing: share groups do not wait."""


def _read(settings: Mapping[str, ConfigKey], texts: Mapping[str, str]) -> dict[str, Any]:
    return {name: key.read(texts[key.name]) for name, key in settings.items() if key.name in texts}


@frozen(kw_only=True)
class ServerConfig:
    """
    The settings of a server.

    Attributes:
        node: Those of its node.
        host: The address where it listens, which clients learn from it.
        port: Its port; 0 for one that is free.
        cluster_id: The id of the cluster.
        rack: The rack of the broker (``broker.rack``); None for none.
        max_request_bytes: The size of the largest request (``socket.request.max.bytes``). [bytes]
        texts: What was given, by Kafka's names.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    node: NodeConfig = field(default=NodeConfig(), validator=instance(NodeConfig))
    host: str = field(default="127.0.0.1", validator=instance(str))
    port: int = field(default=0, validator=number(0, MAX_PORT))
    cluster_id: str = field(default="sharestate-test-broker", validator=instance(str))
    rack: str | None = field(default=None, validator=validators.optional(instance(str)))
    max_request_bytes: int = field(default=DEFAULT_MAX_REQUEST_BYTES, validator=number(1, MAX_INT32))
    texts: Mapping[str, str] = field(factory=dict)

    @property
    def release(self) -> str:
        """The release whose rules the node follows, such as ``"4.4"``."""
        return release_of(self.node.profile)

    @property
    def group_texts(self) -> Mapping[str, str]:
        """Those of the texts that are settings of groups, which all groups have that have none of their own."""
        keys = config_keys(self.release)
        return {name: text for name, text in self.texts.items() if name in keys and keys[name].scope == "group"}

    @classmethod
    def from_kafka(cls, texts: Mapping[str, str], *, profile: Profile = LATEST, port: int = 0) -> Self:
        """
        Return the settings of a server whose ``server.properties`` has *texts*.

        Settings of groups may be among them: groups have them that have none of their own. What neither is of share
        groups nor known to a node or a server is left out, as a broker leaves out what it does not know.

        Raises:
            InvalidConfigurationError: A value is not of its type or not within its bounds, two do not go together, or
                the name of a setting of share groups is misspelt.
            MalformedInputError: A name or a value is no text, or a number is out of bounds.

        >>> ServerConfig.from_kafka({"num.partitions": "3"}).node.default_partition_count
        3
        """
        release = release_of(profile)
        values: Mapping[str, Any] = effective_configs(texts, release=release)
        read_brokers_values(texts, release)  # so that a wrong one is refused now
        node = NodeConfig(
            profile=profile,
            assignment_order=AssignmentOrder.JAVA,
            group=read_group_config(texts, release),
            max_share_sessions=values["group.share.max.share.sessions"],
            dead_letter_auto_create_topics_enable=values.get("errors.deadletterqueue.auto.create.topics.enable", False),
            dead_letter_topic_name_prefix=values.get("errors.deadletterqueue.topic.name.prefix", ""),
            **_read(NODE_SETTINGS, texts),
        )
        _read({key.name: key for key in JUDGED_SETTINGS}, texts)  # so that a wrong one is refused now
        return cls(node=node, port=port, texts=MappingProxyType(dict(texts)), **_read(SERVER_SETTINGS, texts))
