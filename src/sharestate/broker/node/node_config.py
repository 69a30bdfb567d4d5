"""The settings of a node, and of the groups that it serves."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from sharestate.broker.sessions import DEFAULT_MAX_SESSIONS
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

    Raises:
        MalformedInputError: A field is of the wrong type.

    Source:
        GroupConfig (Kafka 4.4).
    """

    share: ShareConfig = field(default=ShareConfig(), validator=instance(ShareConfig))
    isolation_level: IsolationLevel = field(
        default=IsolationLevel.READ_UNCOMMITTED, validator=instance(IsolationLevel, such_as="READ_COMMITTED")
    )


@frozen(kw_only=True)
class NodeConfig:
    """
    The settings of a node.

    Attributes:
        node_id: Its id (``node.id``).
        fetch_max_bytes: The most bytes of a fetch, whatever it asks for (``fetch.max.bytes``). [bytes]
        max_share_sessions: How many share sessions there may be (``group.share.max.share.sessions``). [sessions]
        group: The settings of groups that have none of their own.
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
    profile: Profile = field(default=LATEST, validator=instance(Profile, such_as="KAFKA_4_4"))
