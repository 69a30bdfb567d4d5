"""
What members of share groups ask: heartbeats, fetches and acknowledgements.

Source:
    KafkaApis.handleShareGroupHeartbeat, handleShareFetchRequest, handleShareAcknowledgeRequest (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import (
    GroupResponse,
    LeaderIdAndEpoch,
    PartitionError,
    PartitionOfRequest,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
)
from sharestate.broker.server.calls import Asked, Call, Response, by_topic
from sharestate.broker.server.record_batches import to_wire
from sharestate.broker.sessions import MAX_MEMBER_ID
from sharestate.errors import ErrorCode
from sharestate.persister.kafka.frames import Fields
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquireMode

_ACQUIRE_MODES: Final = MappingProxyType({0: AcquireMode.BATCH_OPTIMIZED, 1: AcquireMode.RECORD_LIMIT})
"""The acquire modes by their ids on the wire (ShareAcquireMode, Kafka 4.4.0)."""

_NOBODY: Final = LeaderIdAndEpoch()


def share_group_heartbeat(call: Call) -> Asked | Response:
    """Answer ShareGroupHeartbeat."""
    fields = call.fields
    if not 0 < len(fields["member_id"]) <= MAX_MEMBER_ID:
        return {"error_code": ErrorCode.INVALID_REQUEST}
    heartbeat = ShareGroupHeartbeat(
        group_id=fields["group_id"],
        member_id=fields["member_id"],
        member_epoch=fields["member_epoch"],
        rack_id=fields["rack_id"],
        topic_names=fields["subscribed_topic_names"],
        client_id=call.client_id or "",
        client_host=call.client_host,
    )
    return Asked((heartbeat,), _write_heartbeat)


def _write_heartbeat(answer: GroupResponse) -> Response:
    if answer.error_code:
        return {"error_code": answer.error_code, "error_message": answer.message}
    result: Any = answer.result
    assignment = result.assignment
    return {
        "member_id": result.member_id,
        "member_epoch": result.member_epoch,
        "heartbeat_interval": result.heartbeat_interval_ms,
        "assignment": None
        if assignment is None
        else {
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in assignment.items()
            ]
        },
    }


def _partitions(topics: Iterable[Fields]) -> list[PartitionOfRequest]:
    """Return the partitions of a request, each with what it acknowledges."""
    return [
        PartitionOfRequest(
            topic["topic_id"],
            partition["partition_index"],
            [
                AcknowledgementBatch(batch["first_offset"], batch["last_offset"], tuple(batch["acknowledge_types"]))
                for batch in partition["acknowledgement_batches"]
            ],
        )
        for topic in topics
        for partition in topic["partitions"]
    ]


def share_fetch(call: Call) -> Asked:
    """Answer ShareFetch."""
    fields = call.fields
    request = ShareFetchRequest(
        group_id=fields["group_id"],
        member_id=fields["member_id"],
        share_session_epoch=fields["share_session_epoch"],
        partitions=_partitions(fields["topics"]),
        forgotten=[
            PartitionOfRequest(topic["topic_id"], partition)
            for topic in fields["forgotten_topics_data"]
            for partition in topic["partitions"]
        ],
        max_wait_ms=fields["max_wait"],
        min_bytes=fields["min_bytes"],
        max_bytes=fields["max_bytes"],
        max_records=fields["max_records"],
        batch_size=fields["batch_size"],
        share_acquire_mode=_ACQUIRE_MODES.get(fields.get("share_acquire_mode", 0)),
        is_renew_ack=fields.get("is_renew_ack", False),
        version=call.version,
    )

    def write(answer: ShareFetchResponse) -> Response:
        def partition_of(partition: ShareFetchPartition) -> Response:
            topic = call.node.topics.name_of(partition.topic_id)
            epoch = call.node.leader_epoch(topic, partition.partition) if topic and partition.records else 0
            return {
                **_of_partition(partition.partition, partition.error, partition.current_leader),
                "error_message": None,  # KafkaApis.getResponsePartitionData leaves it out
                "acknowledge_error_code": partition.acknowledge_error.error_code,
                "acknowledge_error_message": partition.acknowledge_error.message,
                "records": b"".join(to_wire(batch, epoch) for batch in partition.records),
                "acquired_records": [acquired._asdict() for acquired in partition.acquired_records],
            }

        responses = [(partition.topic_id, partition_of(partition)) for partition in answer.partitions]
        return _whole(call, answer) | {"responses": by_topic(responses, "topic_id", "partitions")}

    return Asked((request,), write)


def share_acknowledge(call: Call) -> Asked:
    """Answer ShareAcknowledge."""
    fields = call.fields
    request = ShareAcknowledgeRequest(
        group_id=fields["group_id"],
        member_id=fields["member_id"],
        share_session_epoch=fields["share_session_epoch"],
        partitions=_partitions(fields["topics"]),
        is_renew_ack=fields.get("is_renew_ack", False),
        version=call.version,
    )

    def write(answer: ShareAcknowledgeResponse) -> Response:
        responses = [
            (each.topic_id, _of_partition(each.partition, each.error, each.current_leader))
            for each in answer.partitions
        ]
        return _whole(call, answer) | {"responses": by_topic(responses, "topic_id", "partitions")}

    return Asked((request,), write)


def _whole(call: Call, answer: ShareFetchResponse | ShareAcknowledgeResponse) -> dict[str, Any]:
    """Return what both answers have beside their partitions; leaders are named where a partition has one."""
    leaders: tuple[ShareFetchPartition | ShareAcknowledgePartition, ...] = answer.partitions
    has_leader = any(partition.current_leader.leader_id >= 0 for partition in leaders)
    config = call.config
    endpoint = {"node_id": config.node.node_id, "host": config.host, "port": config.port, "rack": config.rack}
    return {
        "error_code": answer.error_code,
        "acquisition_lock_timeout": answer.acquisition_lock_timeout_ms,
        "node_endpoints": [endpoint] if has_leader else [],
    }


def _of_partition(partition: int, error: PartitionError, leader: LeaderIdAndEpoch) -> dict[str, Any]:
    """Return what a partition has in both answers."""
    return {
        "partition_index": partition,
        "error_code": error.error_code,
        "error_message": error.message,
        "current_leader": {"leader_id": 0, "leader_epoch": 0} if leader == _NOBODY else leader._asdict(),
    }
