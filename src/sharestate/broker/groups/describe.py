"""What a group coordinator says of its share groups: as of what is committed, not of what it has last answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from sharestate.broker.groups.coordinator import GroupCoordinator
from sharestate.broker.groups.heartbeats import checked_names
from sharestate.broker.groups.share_group import Partitions, ShareGroup, ShareGroupMember
from sharestate.error_codes import ErrorCode

ASSIGNOR: Final = "simple"
"""The name of the assignor (SimpleAssignor.name)."""

GROUP_TYPE: Final = "share"
"""The type of share groups, and the protocol type of their members (Group.GroupType)."""


@frozen(kw_only=True)
class DescribedMember:
    """
    A member of a share group.

    Attributes:
        member_id: Its id.
        epoch: Its epoch.
        rack_id: The rack that it is in, or None.
        client_id: The id of its client.
        client_host: The address that it comes from.
        topic_names: The names of topics that it subscribes to.
        assigned: The partitions that it has, of topics that are still there, by topic id.
        topic_names_by_id: The names of those topics.
    """

    member_id: str
    epoch: int
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    assigned: Partitions
    topic_names_by_id: Mapping[str, str]


@frozen(kw_only=True)
class DescribedGroup:
    """
    A share group.

    Attributes:
        group_id: Its id.
        error_code: Why it is not described; NONE if it is.
        error_message: The text for that.
        state: ``Empty`` or ``Stable``.
        epoch: The group epoch.
        assignment_epoch: The epoch of its target assignment.
        assignor: The name of its assignor.
        members: Its members.
    """

    group_id: str
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedMember, ...] = ()


@frozen(kw_only=True)
class ListedGroup:
    """
    A share group, as a list of groups has it.

    Attributes:
        group_id: Its id.
        state: ``Empty`` or ``Stable``.
        group_type: ``share``.
        protocol_type: ``share``.
    """

    group_id: str
    state: str
    group_type: str = GROUP_TYPE
    protocol_type: str = GROUP_TYPE


def describe_groups(coordinator: GroupCoordinator, group_ids: Iterable[str]) -> tuple[DescribedGroup, ...]:
    """
    Describe groups, each by itself (groups 10.1).

    Raises:
        MalformedInputError: An id is no text, or they are too many.

    Complexity:
        O(n) in the members and partitions of the groups.

    Source:
        GroupCoordinatorService.shareGroupDescribe, ShareGroup.asDescribedGroup (Kafka 4.3.1).
    """
    return tuple(_described(coordinator, group_id) for group_id in checked_names(group_ids, "group_ids"))


def _described(coordinator: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    group = coordinator.committed_tables.groups.values.get(group_id)
    if group is None:
        message = f"Group {group_id} not found."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    order = coordinator.committed_tables.order
    return DescribedGroup(
        group_id=group_id,
        state=group.state.value,
        epoch=group.epoch,
        assignment_epoch=group.target_metadata.epoch,
        assignor=ASSIGNOR,
        members=tuple(
            _member(coordinator, group.members.values[member_id]) for member_id in order.of_keys(group.members)
        ),
    )


def _member(coordinator: GroupCoordinator, member: ShareGroupMember) -> DescribedMember:
    topics = coordinator.state.topics.by_id
    return DescribedMember(
        member_id=member.member_id,
        epoch=member.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=tuple(coordinator.committed_tables.order.of_names(member.topic_names)),
        assigned={topic_id: numbers for topic_id, numbers in member.assigned.items() if topic_id in topics},
        topic_names_by_id={topic_id: topics[topic_id].name for topic_id in member.assigned if topic_id in topics},
    )


def list_groups(coordinator: GroupCoordinator) -> tuple[ListedGroup, ...]:
    """
    List all share groups (groups 10.2).

    Complexity:
        O(n log n) in the groups.

    Source:
        ModernGroup.asListedGroup (Kafka 4.3.1).
    """
    tables = coordinator.committed_tables
    return tuple(_listed(tables.groups.values[group_id]) for group_id in tables.order.of_keys(tables.groups))


def _listed(group: ShareGroup) -> ListedGroup:
    return ListedGroup(group_id=group.group_id, state=group.state.value)
