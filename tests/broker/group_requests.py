"""What is asked of a group coordinator over the wire, request by request, with whatever epochs and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kio.schema.alter_share_group_offsets.v0 import request as alter_schema
from kio.schema.alter_share_group_offsets.v0.response import AlterShareGroupOffsetsResponse
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.delete_share_group_offsets.v0 import request as delete_schema
from kio.schema.delete_share_group_offsets.v0.response import DeleteShareGroupOffsetsResponse
from kio.schema.describe_share_group_offsets.v1 import request as describe_schema
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse

from sharestate.testing.servers.raw_members import Asks, Assigned, by_topic_id

_Describe: Any = ShareGroupDescribeRequest
_DescribeOffsets: Any = describe_schema.DescribeShareGroupOffsetsRequest
_DescribedGroup: Any = describe_schema.DescribeShareGroupOffsetsRequestGroup
_DescribedTopic: Any = describe_schema.DescribeShareGroupOffsetsRequestTopic
_AlterOffsets: Any = alter_schema.AlterShareGroupOffsetsRequest
_AlteredTopic: Any = alter_schema.AlterShareGroupOffsetsRequestTopic
_AlteredPartition: Any = alter_schema.AlterShareGroupOffsetsRequestPartition
_DeleteOffsets: Any = delete_schema.DeleteShareGroupOffsetsRequest
_DeletedTopic: Any = delete_schema.DeleteShareGroupOffsetsRequestTopic
_DeleteGroups: Any = DeleteGroupsRequest


class DescribedMember(NamedTuple):
    """A member of a group, as ShareGroupDescribe shows it."""

    epoch: int
    rack_id: str | None
    subscribed: tuple[str, ...]
    assigned: Assigned


class Description(NamedTuple):
    """A group, as ShareGroupDescribe shows it; its members are by their ids."""

    error: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Mapping[str, DescribedMember]


def describe(to: Asks, group_id: str) -> Description:
    """Return the answer to a ShareGroupDescribe."""
    request = _Describe(group_ids=(group_id,), include_authorized_operations=False)
    (group,) = to.ask(request, ShareGroupDescribeResponse).groups
    members = {
        member.member_id: DescribedMember(
            int(member.member_epoch),
            member.rack_id,
            tuple(member.subscribed_topic_names),
            by_topic_id(member.assignment.topic_partitions),
        )
        for member in group.members
    }
    return Description(
        group.error_code.name,
        group.group_state,
        int(group.group_epoch),
        int(group.assignment_epoch),
        group.assignor_name,
        members,
    )


def start_offsets(to: Asks, group_id: str, topics: Mapping[str, Iterable[int]] | None) -> dict[str, dict[int, int]]:
    """
    Return the start offsets of a group that DescribeShareGroupOffsets answers, by topic and partition.

    Args:
        to: Who is asked.
        group_id: The group.
        topics: The partitions of each topic; None for all that the group has.
    """
    wanted = topics and tuple(_DescribedTopic(topic_name=name, partitions=tuple(at)) for name, at in topics.items())
    request = _DescribeOffsets(groups=(_DescribedGroup(group_id=group_id, topics=wanted),))
    (group,) = to.ask(request, DescribeShareGroupOffsetsResponse).groups
    assert group.error_code.name == "none", group
    return {
        topic.topic_name: {int(part.partition_index): int(part.start_offset) for part in topic.partitions}
        for topic in group.topics
    }


def alter_offsets(to: Asks, group_id: str, topics: Mapping[str, Mapping[int, int]]) -> tuple[str, dict[str, list[str]]]:
    """Return the errors that AlterShareGroupOffsets answers: of the whole, and of each topic's partitions."""
    altered = tuple(
        _AlteredTopic(
            topic_name=name,
            partitions=tuple(_AlteredPartition(partition_index=at, start_offset=offset) for at, offset in at.items()),
        )
        for name, at in topics.items()
    )
    answer = to.ask(_AlterOffsets(group_id=group_id, topics=altered), AlterShareGroupOffsetsResponse)
    return answer.error_code.name, {
        topic.topic_name: [part.error_code.name for part in topic.partitions] for topic in answer.responses
    }


def delete_offsets(to: Asks, group_id: str, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the errors that DeleteShareGroupOffsets answers: of the whole, and of each topic."""
    request = _DeleteOffsets(group_id=group_id, topics=tuple(_DeletedTopic(topic_name=name) for name in topics))
    answer = to.ask(request, DeleteShareGroupOffsetsResponse)
    return answer.error_code.name, {topic.topic_name: topic.error_code.name for topic in answer.responses}


def delete_group(to: Asks, group_id: str) -> str:
    """Return the error that DeleteGroups answers."""
    (result,) = to.ask(_DeleteGroups(groups_names=(group_id,)), DeleteGroupsResponse).results
    name: str = result.error_code.name
    return name
