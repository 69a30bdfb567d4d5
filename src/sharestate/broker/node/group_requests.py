"""
What members and administrators ask of the group coordinator of a node, as values.

A heartbeat is ``ShareGroupHeartbeat`` of ``sharestate.broker.groups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from attrs import field, frozen

from sharestate.broker.groups import (
    AlteredOffsets,
    DescribedGroup,
    DescribedOffset,
    GroupDeletion,
    HeartbeatResponse,
    OffsetDeletion,
    ShareGroupHeartbeat,
    TopicOffsets,
)
from sharestate.broker.node.node_config import GroupConfig
from sharestate.error_codes import ErrorCode
from sharestate.values.checks import instance, rows


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return rows(values, str, "names")


def _topic_offsets(values: Iterable[TopicOffsets]) -> tuple[TopicOffsets, ...]:
    return rows(values, TopicOffsets, "topics")


@frozen(kw_only=True)
class ShareGroupDescribeRequest:
    """
    A ShareGroupDescribe (key 77).

    Attributes:
        group_ids: The groups.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_ids: tuple[str, ...] = field(converter=_texts)


@frozen(kw_only=True)
class DescribeShareGroupOffsetsRequest:
    """
    A DescribeShareGroupOffsets (key 90) for one group.

    Attributes:
        group_id: The group.
        topics: The partitions by the names of their topics; None for all that have state.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_id: str = field(validator=instance(str))
    topics: Mapping[str, Iterable[int]] | None = None  # the coordinator looks at it


@frozen(kw_only=True)
class AlterShareGroupOffsetsRequest:
    """
    An AlterShareGroupOffsets (key 91).

    Attributes:
        group_id: The group.
        topics: Where share partitions are to begin.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_id: str = field(validator=instance(str))
    topics: tuple[TopicOffsets, ...] = field(converter=_topic_offsets)


@frozen(kw_only=True)
class DeleteShareGroupOffsetsRequest:
    """
    A DeleteShareGroupOffsets (key 92).

    Attributes:
        group_id: The group.
        topic_names: The names of the topics.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_id: str = field(validator=instance(str))
    topic_names: tuple[str, ...] = field(converter=_texts)


@frozen(kw_only=True)
class DeleteGroupsRequest:
    """
    A DeleteGroups (key 42).

    Attributes:
        group_ids: The groups.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_ids: tuple[str, ...] = field(converter=_texts)


@frozen(kw_only=True)
class ConfigureGroupRequest:
    """
    The settings that a group is to have of its own: what comes of an IncrementalAlterConfigs.

    Attributes:
        group_id: The group, which need not exist.
        config: Its settings.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    group_id: str = field(validator=instance(str))
    config: GroupConfig = field(validator=instance(GroupConfig))


GroupRequest: TypeAlias = (
    ShareGroupHeartbeat
    | ShareGroupDescribeRequest
    | DescribeShareGroupOffsetsRequest
    | AlterShareGroupOffsetsRequest
    | DeleteShareGroupOffsetsRequest
    | DeleteGroupsRequest
)
"""What is asked of the group coordinator."""


class GroupResponse(NamedTuple):
    """
    The answer of the group coordinator.

    Attributes:
        error_code: The error of the request as a whole; NONE for none.
        message: Its text; None without one.
        result: What is answered; None with an error.
    """

    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    result: (
        HeartbeatResponse
        | AlteredOffsets
        | OffsetDeletion
        | GroupDeletion
        | tuple[DescribedGroup, ...]
        | tuple[DescribedOffset, ...]
        | None
    ) = None
