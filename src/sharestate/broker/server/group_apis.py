"""
What administrators ask about groups: ListGroups, DescribeGroups, ShareGroupDescribe, DeleteGroups, and offsets.

There are share groups only, so DescribeGroups, which is about classic groups, finds none.

Source:
    KafkaApis.handleListGroupsRequest, handleDescribeGroupsRequest, handleShareGroupDescribe, handleDeleteGroupsRequest,
    handleDescribeShareGroupOffsetsRequest, handleAlterShareGroupOffsetsRequest, handleDeleteShareGroupOffsetsRequest
    (Kafka 4.4.0).
"""

from __future__ import annotations

from typing import Any, Final

from sharestate.broker.groups import (
    AlteredOffsets,
    DescribedGroup,
    DescribedMember,
    DescribedOffset,
    GroupDeletion,
    OffsetDeletion,
    PartitionOffset,
    TopicOffsets,
    list_groups,
)
from sharestate.broker.node import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    GroupResponse,
    ShareGroupDescribeRequest,
)
from sharestate.broker.server.calls import Asked, Call, Response, by_topic
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode
from sharestate.persister.kafka.frames import Fields
from sharestate.values.checks import expect

_GROUP_OPERATIONS: Final = sum(1 << code for code in (3, 6, 8, 10, 11))
"""All that can be done with a group: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS (AclEntry, Kafka 4.4)."""

_NO_OPERATIONS: Final = -(2**31)
"""What stands for operations that nobody has asked for."""

_NOT_FOUND_DESCRIBE: Final = 6
"""The version of DescribeGroups from which on a group that is not found is an error."""

_NOTHING_TO_DELETE: Final = "There is no offset information to delete."
"""Why nothing is deleted of a topic of which the group has no state
(GroupMetadataManager.sharePartitionsEligibleForOffsetDeletion, Kafka 4.3.1 and 4.4.0)."""

_TEXTS: Final = {int(code): text for code, text in ERROR_MESSAGES.items()}


def _operations(call: Call, version: int = 0) -> int:
    is_asked = call.version >= version and call.fields.get("include_authorized_operations", False)
    return _GROUP_OPERATIONS if is_asked else _NO_OPERATIONS


def _message(error_code: int, message: str | None = None) -> str | None:
    """Return the text of an error: *message*, or what Kafka has for the code; None without an error."""
    return (message or _TEXTS.get(error_code)) if error_code else None


# ---- groups


def list_all_groups(call: Call) -> Response:
    """List the groups whose states and types are asked for, in letters of either case."""
    states = {state.lower().strip() for state in call.fields.get("states_filter", ())}
    types = {each.lower() for each in call.fields.get("types_filter", ())}
    return {
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": group.group_type,
            }
            for group in list_groups(call.node.groups)
            if (not states or group.state.lower() in states) and (not types or group.group_type in types)
        ]
    }


def describe_classic_groups(call: Call) -> Response:
    """
    Say of each group that it is dead: there are no classic groups.

    Source:
        GroupMetadataManager.describeGroups (Kafka 4.4.0).
    """
    return {"groups": [_dead(call, group_id) for group_id in call.fields["groups"]]}


def _dead(call: Call, group_id: str) -> Response:
    dead = {"group_id": group_id, "group_state": "Dead"}
    if call.version < _NOT_FOUND_DESCRIBE:
        return {**dead, "authorized_operations": _operations(call)}
    is_share_group = any(group.group_id == group_id for group in list_groups(call.node.groups))
    reason = f"Group {group_id} is not a classic group." if is_share_group else f"Group {group_id} not found."
    return {**dead, "error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": reason}


def describe_share_groups(call: Call) -> Asked:
    """Describe share groups, with their members and assignments."""
    request = ShareGroupDescribeRequest(group_ids=tuple(call.fields["group_ids"]))

    def write(response: GroupResponse) -> Response:
        groups = expect(response.result, tuple, "result")
        return {"groups": [_share_group(each, _operations(call)) for each in groups]}

    return Asked((request,), write)


def _share_group(group: DescribedGroup, operations: int) -> Response:
    return {
        "error_code": group.error_code,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor,
        "members": [_member(member) for member in group.members],
        "authorized_operations": _NO_OPERATIONS if group.error_code else operations,
    }


def _member(member: DescribedMember) -> Response:
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.topic_names,
        "assignment": {
            "topic_partitions": [
                {
                    "topic_id": topic_id,
                    "topic_name": member.topic_names_by_id[topic_id],
                    "partitions": tuple(partitions),
                }
                for topic_id, partitions in member.assigned.items()
            ]
        },
    }


def delete_groups(call: Call) -> Asked:
    """Delete groups without members, with their state."""

    def write(response: GroupResponse) -> Response:
        deletion = expect(response.result, GroupDeletion, "result")
        return {"results": [{"group_id": group, "error_code": error} for group, error in deletion.errors.items()]}

    return Asked((DeleteGroupsRequest(group_ids=tuple(dict.fromkeys(call.fields["groups_names"]))),), write)


# ---- offsets


def describe_share_group_offsets(call: Call) -> Asked | Response:
    """Describe where the share partitions of groups begin."""
    groups = call.fields["groups"]
    requests = tuple(
        DescribeShareGroupOffsetsRequest(group_id=group["group_id"], topics=_readable(group)) for group in groups
    )

    def write(*responses: GroupResponse) -> Response:
        described = [_described(group, response) for group, response in zip(groups, responses, strict=True)]
        return {"groups": described}

    return Asked(requests, write) if requests else write()


def _topics(group: Fields) -> dict[str, list[int]] | None:
    """Return the partitions that are asked for, by the names of their topics; None for all."""
    topics = group["topics"]
    return None if topics is None else {topic["topic_name"]: topic["partitions"] for topic in topics}


def _readable(group: Fields) -> dict[str, tuple[int, ...]] | None:
    """Return those of the partitions that may have state: a share coordinator is not asked for others."""
    topics = _topics(group)
    if topics is None:
        return None
    return {
        name: tuple(number for number in numbers if number >= 0 and group["group_id"])
        for name, numbers in topics.items()
    }


def _described(group: Fields, response: GroupResponse) -> Response:
    if response.error_code:
        error = response.error_code
        return {"group_id": group["group_id"], "error_code": error, "error_message": _message(error, response.message)}
    rows: list[DescribedOffset] = list(expect(response.result, tuple, "result"))
    ids = {row.topic_name: row.topic_id for row in rows}
    rows += [
        DescribedOffset(topic_name=name, topic_id=ids.get(name), partition=number)
        for name, numbers in (_topics(group) or {}).items()
        for number in numbers
        if number < 0 or not group["group_id"]
    ]
    topics = by_topic([(row.topic_name, _offset(row)) for row in rows], "topic_name", "partitions")
    return {
        "group_id": group["group_id"],
        "topics": [{**topic, "topic_id": ids.get(topic["topic_name"])} for topic in topics],
    }


def _offset(row: DescribedOffset) -> Response:
    return {
        "partition_index": row.partition,
        "start_offset": row.start_offset,
        "leader_epoch": row.leader_epoch,
        "lag": row.lag,
    }


def alter_share_group_offsets(call: Call) -> Asked:
    """Let the share partitions of a group without members begin elsewhere."""
    topics: dict[str, TopicOffsets] = {}
    for topic in call.fields["topics"]:  # of a topic that comes twice, a broker knows the first
        offsets = tuple(PartitionOffset(each["partition_index"], each["start_offset"]) for each in topic["partitions"])
        topics.setdefault(topic["topic_name"], TopicOffsets(topic_name=topic["topic_name"], offsets=offsets))
    request = AlterShareGroupOffsetsRequest(group_id=call.fields["group_id"], topics=tuple(topics.values()))
    return Asked((request,), _altered)


def _altered(response: GroupResponse) -> Response:
    if response.error_code:
        return _refused(response)
    altered = expect(response.result, AlteredOffsets, "result")
    if altered.error_code:
        return {"error_code": altered.error_code, "error_message": _message(altered.error_code)}
    return {
        "responses": [
            {
                "topic_name": topic.topic_name,
                "topic_id": topic.topic_id,
                "partitions": [
                    {"partition_index": number, "error_code": error, "error_message": _message(error)}
                    for number, error in topic.errors
                ],
            }
            for topic in altered.topics
        ]
    }


def delete_share_group_offsets(call: Call) -> Asked:
    """Delete the state of topics of a group without members."""
    names = tuple(topic["topic_name"] for topic in call.fields["topics"])
    request = DeleteShareGroupOffsetsRequest(group_id=call.fields["group_id"], topic_names=names)

    def write(response: GroupResponse) -> Response:
        if response.error_code:
            return _refused(response)
        deletion = expect(response.result, OffsetDeletion, "result")
        if deletion.error_code:
            return {"error_code": deletion.error_code, "error_message": _message(deletion.error_code)}
        return {"responses": [_deleted(call, *each) for each in deletion.errors]}

    return Asked((request,), write)


def _deleted(call: Call, name: str, error: int) -> Response:
    topic = call.node.topics.by_name(name)
    has_nothing = topic is not None and error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {
        "topic_name": name,
        "topic_id": None if topic is None or has_nothing else topic.topic_id,
        "error_code": error,
        "error_message": _NOTHING_TO_DELETE if has_nothing else _message(error),
    }


def _refused(response: GroupResponse) -> dict[str, Any]:
    return {"error_code": response.error_code, "error_message": _message(response.error_code, response.message)}
