"""
What clients ask of topics: to make, delete and grow them, and to delete records.

Source:
    ControllerApis, ReplicationControlManager, KafkaApis.handleDeleteRecordsRequest (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sharestate.broker.groups.java_hash_map import hash_set
from sharestate.broker.node import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeletedRecords,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    TopicResult,
    TopicsResponse,
)
from sharestate.broker.node.topic_service import repeated
from sharestate.broker.node.topics import USE_DEFAULT
from sharestate.broker.server.calls import Asked, Call, Response
from sharestate.broker.server.cluster_apis import NO_TOPIC_ID
from sharestate.broker.server.config_entries import topic_entries
from sharestate.broker.server.hash_orders import in_hash_order
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode
from sharestate.persister.kafka.frames import Fields

_FIRST_WITH_TOPIC_IDS: Final = 6
"""The first version of DeleteTopics that takes ids (DeleteTopicsRequest.json)."""


def create_topics(call: Call) -> Asked:
    """Answer CreateTopics."""
    topics = call.fields["topics"]
    twice = repeated(topic["name"] for topic in topics)  # whatever is wrong with them besides
    errors = {topic["name"]: _creation_error(topic, call.config.node.node_id) for topic in topics}
    refused = {name: error for name, error in errors.items() if error is not None and name not in twice}
    configs = {topic["name"]: {each["name"]: each["value"] or "" for each in topic["configs"]} for topic in topics}
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic["name"],
                partition_count=len(topic["assignments"]) or topic["num_partitions"],
                replication_factor=topic["replication_factor"],
                configs=configs[topic["name"]],
            )
            for topic in topics
            if topic["name"] not in refused
        ],
        validate_only=call.fields["validate_only"],
    )

    # What is wrong with their names comes first, and then with their configs, of which none is null.
    others = [
        CreatableTopic(name=name, partition_count=1, configs={} if code is ErrorCode.INVALID_CONFIG else configs[name])
        for name, (code, _) in refused.items()
    ]
    check = CreateTopicsRequest(topics=others, validate_only=True)

    def write(answer: TopicsResponse, checked: TopicsResponse) -> Response:
        made = {topic.name: _created(topic, configs, call.config.release) for topic in answer.topics}
        for topic, error in zip(checked.topics, refused.values(), strict=True):
            made[topic.name] = _refused(topic.name, *((topic.error_code, topic.message) if topic.error_code else error))
        once = [topic["name"] for topic in topics if topic["name"] not in twice]
        return {"topics": [made[name] for name in [*once, *hash_set(twice)]]}

    return Asked((request, check), write)


def _created(topic: TopicResult, configs: Mapping[str, Mapping[str, str]], release: str) -> Response:
    if topic.error_code or topic.name is None:
        return _refused(topic.name, topic.error_code, topic.message)
    entries = sorted(topic_entries(configs[topic.name], release))
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "error_message": None,
        "num_partitions": topic.partition_count,
        "replication_factor": 1,
        "configs": [{"name": each.name, "value": each.value, "config_source": each.source} for each in entries],
    }


def _refused(name: str | None, code: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"name": name, "error_code": code, "error_message": message}


def _creation_error(topic: Fields, node_id: int) -> tuple[ErrorCode, str] | None:
    """Return why a topic is not even looked at by the node: its assignment, or a config without a value."""
    nulls = [config["name"] for config in topic["configs"] if config["value"] is None]
    if nulls:
        return ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
    assignments = topic["assignments"]
    for count, what in (("replication_factor", "replication factor"), ("num_partitions", "numPartitions")):
        if assignments and topic[count] != USE_DEFAULT:
            message = f"A manual partition assignment was specified, but {what} was not set to -1."
            return ErrorCode.INVALID_REQUEST, message
    indexes = [assignment["partition_index"] for assignment in assignments]
    if twice := repeated(indexes):
        wrong: str | None = f"Found multiple manual partition assignments for partition {min(twice)}"
    else:
        wrong = _assignment_error(assignments, node_id)
    if wrong is None and set(indexes) != set(range(len(indexes))):
        wrong = "partitions should be a consecutive 0-based integer sequence"
    return None if wrong is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)


def _assignment_error(assignments: Iterable[Fields], node_id: int) -> str | None:
    """Return why partitions cannot have these replicas; None if they are what there is: the node."""
    for assignment in assignments:
        broker_ids = assignment["broker_ids"]
        unknown = [broker_id for broker_id in broker_ids if broker_id != node_id]
        if not broker_ids:
            return "The manual partition assignment includes an empty replica list."
        if unknown:
            return f"The manual partition assignment includes broker {min(unknown)}, but no such broker is registered."
        if len(broker_ids) > 1:
            return f"The manual partition assignment includes the broker {node_id} more than once."
    return None


def delete_topics(call: Call) -> Asked:
    """Answer DeleteTopics."""
    if call.version < _FIRST_WITH_TOPIC_IDS:
        topics = [(name, NO_TOPIC_ID) for name in call.fields["topic_names"]]
    else:
        topics = [(topic["name"], topic["topic_id"]) for topic in call.fields["topics"]]
    refused = [
        _result(name, topic_id, ErrorCode.INVALID_REQUEST, _NEITHER if name is None else _BOTH)
        for name, topic_id in topics
        if (name is None) == (topic_id == NO_TOPIC_ID)
    ]
    request = DeleteTopicsRequest(
        names=[name for name, topic_id in topics if name is not None and topic_id == NO_TOPIC_ID],
        topic_ids=[topic_id for name, topic_id in topics if name is None and topic_id != NO_TOPIC_ID],
    )

    def write(answer: TopicsResponse) -> Response:
        deleted = [
            _result(each.name, each.topic_id, each.error_code, each.message or ERROR_MESSAGES.get(each.error_code))
            for each in answer.topics
        ]
        return {"responses": [*refused, *deleted]}

    return Asked((request,), write)


_NEITHER: Final = "Neither topic name nor id were specified."
_BOTH: Final = "You may not specify both topic name and topic id."


def _result(name: str | None, topic_id: str | None, code: ErrorCode, message: str | None) -> Response:
    return {"topic_id": topic_id, **_refused(name, code, message)}


def create_partitions(call: Call) -> Asked:
    """Answer CreatePartitions."""
    topics = call.fields["topics"]
    twice = repeated(topic["name"] for topic in topics)
    errors = {topic["name"]: _growth_error(call, topic) for topic in topics}
    refused = {name: error for name, error in errors.items() if error is not None and name not in twice}
    request = CreatePartitionsRequest(
        topics=[(topic["name"], topic["count"]) for topic in topics if topic["name"] not in refused],
        validate_only=call.fields["validate_only"],
    )

    def write(answer: TopicsResponse) -> Response:
        grown = {topic.name: _refused(topic.name, topic.error_code, topic.message) for topic in answer.topics}
        grown |= {name: _refused(name, *error) for name, error in refused.items()}
        once = hash_set(topic["name"] for topic in topics if topic["name"] not in twice)
        return {"results": [grown[name] for name in [*hash_set(twice), *once]]}

    return Asked((request,), write)


def _growth_error(call: Call, topic: Fields) -> tuple[ErrorCode, str] | None:
    """Return why new partitions cannot be where they are to be; None also if something else is wrong with them."""
    known = call.node.topics.by_name(topic["name"])
    additional = 0 if known is None else topic["count"] - known.partition_count
    if topic["assignments"] is None or additional <= 0:
        return None
    given = len(topic["assignments"])
    wrong = _assignment_error(topic["assignments"], call.config.node.node_id)
    if given != additional:
        wrong = f"Attempted to add {additional} additional partition(s), but only {given} assignment(s) were specified."
    return None if wrong is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)


def delete_records(call: Call) -> Asked:
    """Answer DeleteRecords; of a partition that is named twice, a broker knows the last offset."""
    offsets = {
        (topic["name"], partition["partition_index"]): partition["offset"]
        for topic in call.fields["topics"]
        for partition in topic["partitions"]
    }
    request = DeleteRecordsRequest(partitions=[DeletedRecords(*place, offset) for place, offset in offsets.items()])

    def write(answer: DeleteRecordsResponse) -> Response:
        deleted = {
            (partition.topic, partition.partition): {
                "partition_index": partition.partition,
                "low_watermark": partition.low_watermark,
                "error_code": partition.error_code,
            }
            for partition in answer.partitions
        }
        return {"topics": in_hash_order(deleted)}

    return Asked((request,), write)
