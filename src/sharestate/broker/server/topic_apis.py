"""
What clients ask of topics: to make, delete and grow them, and to delete records.

Source:
    ControllerApis, ReplicationControlManager, KafkaApis.handleDeleteRecordsRequest (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

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
from sharestate.broker.node.topics import USE_DEFAULT
from sharestate.broker.server.calls import Asked, Call, Response, by_topic
from sharestate.broker.server.cluster_apis import NO_TOPIC_ID
from sharestate.errors import ErrorCode
from sharestate.persister.kafka.frames import Fields

_FIRST_WITH_TOPIC_IDS: Final = 6
"""The first version of DeleteTopics that takes ids (KIP-516)."""


def create_topics(call: Call) -> Asked:
    """Answer CreateTopics."""
    topics = call.fields["topics"]
    refused = {topic["name"]: error for topic in topics if (error := _creation_error(topic, call.config.node.node_id))}
    counts = {topic["name"]: len(topic["assignments"]) or topic["num_partitions"] for topic in topics}
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic["name"],
                partition_count=counts[topic["name"]],
                replication_factor=topic["replication_factor"],
                configs={config["name"]: config["value"] for config in topic["configs"]},
            )
            for topic in topics
            if topic["name"] not in refused
        ],
        validate_only=call.fields["validate_only"],
    )

    def write(answer: TopicsResponse) -> Response:
        made = [_created(topic) for topic in answer.topics]
        return {"topics": [*made, *(_refused(name, *error) for name, error in refused.items())]}

    return Asked((request,), write)


def _created(topic: TopicResult) -> Response:
    if topic.error_code:
        return _refused(topic.name, topic.error_code, topic.message)
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "error_message": None,
        "num_partitions": topic.partition_count,
        "replication_factor": 1,
    }


def _refused(name: str | None, code: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"name": name, "error_code": code, "error_message": message}


def _creation_error(topic: Fields, node_id: int) -> tuple[ErrorCode, str] | None:
    """Return why a topic is not even looked at by the node: its assignment, or a config without a value."""
    nulls = [config["name"] for config in topic["configs"] if config["value"] is None]
    if nulls:
        return ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
    assignments = topic["assignments"]
    if not assignments:
        return None
    if topic["replication_factor"] != USE_DEFAULT:
        message = "A manual partition assignment was specified, but replication factor was not set to -1."
        return ErrorCode.INVALID_REQUEST, message
    if topic["num_partitions"] != USE_DEFAULT:
        message = "A manual partition assignment was specified, but numPartitions was not set to -1."
        return ErrorCode.INVALID_REQUEST, message
    indexes: set[int] = set()
    for assignment in assignments:
        index = assignment["partition_index"]
        if index in indexes:
            message = f"Found multiple manual partition assignments for partition {index}"
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, message
        indexes.add(index)
    if (message := _assignment_error(assignments, node_id)) is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, message
    if indexes != set(range(len(indexes))):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
    return None


def _assignment_error(assignments: Iterable[Fields], node_id: int) -> str | None:
    """Return why partitions cannot have these replicas; None if they are what there is: the node."""
    for assignment in assignments:
        if not assignment["broker_ids"]:
            return "The manual partition assignment includes an empty replica list."
        for broker_id in sorted(assignment["broker_ids"]):
            if broker_id != node_id:
                return (
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
                )
        if len(assignment["broker_ids"]) > 1:
            return f"The manual partition assignment includes the broker {node_id} more than once."
    return None


def delete_topics(call: Call) -> Asked:
    """Answer DeleteTopics."""
    if call.version < _FIRST_WITH_TOPIC_IDS:
        topics = [{"name": name, "topic_id": NO_TOPIC_ID} for name in call.fields["topic_names"]]
    else:
        topics = call.fields["topics"]
    refused = []
    for topic in topics:
        if topic["name"] is None and topic["topic_id"] == NO_TOPIC_ID:
            refused.append(_refused(None, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."))
        elif topic["name"] is not None and topic["topic_id"] != NO_TOPIC_ID:
            message = "You may not specify both topic name and topic id."
            refused.append({**_refused(topic["name"], ErrorCode.INVALID_REQUEST, message), "topic_id": topic["topic_id"]})
    request = DeleteTopicsRequest(
        names=[topic["name"] for topic in topics if topic["name"] is not None and topic["topic_id"] == NO_TOPIC_ID],
        topic_ids=[topic["topic_id"] for topic in topics if topic["name"] is None and topic["topic_id"] != NO_TOPIC_ID],
    )

    def write(answer: TopicsResponse) -> Response:
        deleted = [
            {**_refused(topic.name, topic.error_code, topic.message), "topic_id": topic.topic_id}
            for topic in answer.topics
        ]
        return {"responses": [*refused, *deleted]}

    return Asked((request,), write)


def create_partitions(call: Call) -> Asked:
    """Answer CreatePartitions."""
    refused = {
        topic["name"]: error
        for topic in call.fields["topics"]
        if (error := _growth_error(call, topic)) is not None
    }
    request = CreatePartitionsRequest(
        topics=[(topic["name"], topic["count"]) for topic in call.fields["topics"] if topic["name"] not in refused],
        validate_only=call.fields["validate_only"],
    )

    def write(answer: TopicsResponse) -> Response:
        grown = [_refused(topic.name, topic.error_code, topic.message) for topic in answer.topics]
        return {"results": [*grown, *(_refused(name, *error) for name, error in refused.items())]}

    return Asked((request,), write)


def _growth_error(call: Call, topic: Fields) -> tuple[ErrorCode, str] | None:
    """Return why the partitions that a topic is to get cannot be where they are to be; None if that is not asked for."""
    known = call.node.topics.by_name(topic["name"])
    additional = 0 if known is None else topic["count"] - known.partition_count
    if topic["assignments"] is None or additional <= 0:
        return None  # what else is wrong with it comes first
    given = len(topic["assignments"])
    if given != additional:
        message = f"Attempted to add {additional} additional partition(s), but only {given} assignment(s) were specified."
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, message
    message_ = _assignment_error(topic["assignments"], call.config.node.node_id)
    return None if message_ is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message_)


def delete_records(call: Call) -> Asked:
    """Answer DeleteRecords."""
    request = DeleteRecordsRequest(
        partitions=[
            DeletedRecords(topic["name"], partition["partition_index"], partition["offset"])
            for topic in call.fields["topics"]
            for partition in topic["partitions"]
        ]
    )

    def write(answer: DeleteRecordsResponse) -> Response:
        deleted = [
            (
                partition.topic,
                {
                    "partition_index": partition.partition,
                    "low_watermark": partition.low_watermark,
                    "error_code": partition.error_code,
                },
            )
            for partition in answer.partitions
        ]
        return {"topics": by_topic(deleted, "name", "partitions")}

    return Asked((request,), write)
