"""Groups, their records and the answers to their requests as the protocol's JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import asdict

from sharestate.broker.groups import (
    DescribedGroup,
    DescribedMember,
    GroupTables,
    InitializedTopic,
    ShareGroup,
    ShareGroupMember,
)
from sharestate.broker.groups.records import GroupRecord, encode_record
from sharestate.error_codes import ErrorCode
from sharestate.json_lines import Json
from sharestate.persister import InitializeStateParameters

NO_OPERATIONS: Final = -2147483648
"""The authorized operations of a described group that nobody has asked about (ShareGroupDescribeResponse.json)."""

_CODES: Final = {int(code): code.name for code in ErrorCode}


def error_name(code: int) -> str:
    """Return Kafka's name of an error code."""
    return _CODES[code]


def group_record_json(record: GroupRecord) -> Json:
    """Return a record as Kafka's converters show it, and its bytes."""
    key, value = encode_record(record)
    shown = {"groupId": record.key.group_id}
    if record.key.member_id is not None:
        shown["memberId"] = record.key.member_id
    return {
        "type": record.key.type.value,
        "key": shown,
        "value": None if record.value is None else _value_json(asdict(record.value, filter=_is_shown)),
        "raw": [b64encode(key).decode(), b64encode(value or b"").decode()],
    }


def _is_shown(attribute: Any, value: object) -> bool:  # noqa: ANN401 - attrs passes one for any field
    """Return whether Kafka shows a field: not those it does not know, nor a tagged one that says nothing."""
    return attribute.name != "tagged_fields" and (attribute.name, value) != ("assignment_timestamp", 0)


def _value_json(value: Any) -> Json:  # noqa: ANN401 - what a record has
    if isinstance(value, dict):
        return {_camel(name): _value_json(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_value_json(each) for each in value]
    json: Json = value
    return json


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def initialize_json(request: InitializeStateParameters | None) -> Json:
    """Return what is to be initialized, by topic; None if nothing is."""
    if request is None:
        return None
    return {
        topic.topic_id: [
            [each.partition, each.state_epoch, each.start_offset]
            for each in sorted(topic.partitions, key=lambda each: each.partition)
        ]
        for topic in request.topics
    }


def numbers_json(partitions: Mapping[str, Iterable[int]]) -> Mapping[str, Json]:
    """Return partitions, by topic."""
    return {topic_id: sorted(numbers) for topic_id, numbers in partitions.items()}


def groups_json(tables: GroupTables, group_ids: Iterable[str]) -> Json:
    """Return all that is known of those groups that there are."""
    groups = tables.groups.values
    return {each: _group_json(tables, groups[each]) for each in sorted(group_ids) if each in groups}


def _group_json(tables: GroupTables, group: ShareGroup) -> Json:
    known = tables.state_partitions.values.get(group.group_id)
    return {
        "state": group.state.value,
        "epoch": group.epoch,
        "assignment_epoch": group.target_metadata.epoch,
        "metadata_hash": group.metadata_hash,
        "members": {each: _member_json(group, member) for each, member in group.members.values.items()},
        "partitions": None
        if known is None
        else {
            "initializing": _initialized_json(known.initializing),
            "initialized": _initialized_json(known.initialized),
            "deleting": sorted(known.deleting),
        },
    }


def _member_json(group: ShareGroup, member: ShareGroupMember) -> Json:
    return {
        "epoch": member.epoch,
        "previous_epoch": member.previous_epoch,
        "topics": sorted(member.topic_names),
        "assigned": numbers_json(member.assigned),
        "target": numbers_json(group.target(member.member_id)),
    }


def _initialized_json(topics: Mapping[str, InitializedTopic]) -> Json:
    return {each: [topic.topic_name, sorted(topic.partitions), topic.replayed_ms] for each, topic in topics.items()}


def described_text(group: DescribedGroup) -> str:
    """Return a described group as the driver has it: as Java prints the class of the response."""
    members = ", ".join(map(_member_text, group.members))
    return (
        f"DescribedGroup(errorCode={int(group.error_code)}, errorMessage={_quoted(group.error_message)}, "
        f"groupId={_quoted(group.group_id)}, groupState={_quoted(group.state)}, groupEpoch={group.epoch}, "
        f"assignmentEpoch={group.assignment_epoch}, assignorName={_quoted(group.assignor)}, members=[{members}], "
        f"authorizedOperations={NO_OPERATIONS})"
    )


def _member_text(member: DescribedMember) -> str:
    names = ", ".join(member.topic_names)
    topics = ", ".join(
        f"TopicPartitions(topicId={topic_id}, topicName={_quoted(member.topic_names_by_id[topic_id])}, "
        f"partitions={list(numbers)})"
        for topic_id, numbers in member.assigned.items()
    )
    return (
        f"Member(memberId={_quoted(member.member_id)}, rackId={_quoted(member.rack_id)}, memberEpoch={member.epoch}, "
        f"clientId={_quoted(member.client_id)}, clientHost={_quoted(member.client_host)}, "
        f"subscribedTopicNames=[{names}], assignment=Assignment(topicPartitions=[{topics}]))"
    )


def _quoted(text: str | None) -> str:
    return "null" if text is None else f"'{text}'"
