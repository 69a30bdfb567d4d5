"""
What clients ask of a cluster: its versions, its brokers, its topics, and where its coordinators are.

Source:
    KafkaApis, AuthHelper, DescribeTopicPartitionsRequestHandler, KRaftMetadataCache (Kafka 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sharestate.broker.node import MetadataRequest, Topic, TopicResult, TopicsResponse
from sharestate.broker.node.topics import invalid_name
from sharestate.broker.server.api_versions import API_VERSIONS_KEY, FEATURES
from sharestate.broker.server.calls import Asked, Call, Response
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode, MalformedInputError

NO_TOPIC_ID: Final = "A" * 22
"""What stands for no id of a topic (Uuid.ZERO_UUID)."""

TOPIC_OPERATIONS: Final = 0b1101_1111_1000
"""What everybody may do with a topic: a bit for each AclOperation (AclEntry.supportedOperations, as below)."""

CLUSTER_OPERATIONS: Final = 0b1_1111_1010_0000
"""What everybody may do with the cluster."""

MAX_PARTITIONS: Final = 2000
"""The most partitions of a DescribeTopicPartitions response (``max.request.partition.size.limit``). [partitions]"""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What the name and the version of a client look like (ApiVersionsRequest)."""

_FIRST_WITH_FEATURES_FROM_0: Final = 4
"""The first version of ApiVersions whose clients can read features that begin at 0 (KAFKA-17492)."""

_FIRST_WITH_TOPIC_IDS: Final = 12
"""The first version of Metadata in which a topic may be asked for by its id (KAFKA-14190)."""

_FIRST_WITH_MANY_KEYS: Final = 4
"""The first version of FindCoordinator with several keys (FindCoordinatorRequest.json)."""

_FIRST_WITH_SHARE: Final = 6
"""The first version of FindCoordinator that finds share coordinators (KIP-932)."""

_GROUP, _TRANSACTION, _SHARE = range(3)
"""The types of keys of FindCoordinator (FindCoordinatorRequest.CoordinatorType)."""

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
"""What DescribeCluster may ask for (EndpointType)."""


# ---- ApiVersions


def api_versions(call: Call) -> Response:
    """Answer ApiVersions: what this server has, and what its release has."""
    fields = call.fields
    for name in ("client_software_name", "client_software_version"):
        if name in fields and not _SOFTWARE.fullmatch(fields[name]):
            return {"error_code": ErrorCode.INVALID_REQUEST}
    features = FEATURES[call.config.release].items()
    least = 0 if call.version >= _FIRST_WITH_FEATURES_FROM_0 else 1
    return {
        "api_keys": [
            {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in call.versions.items()
        ],
        "supported_features": [
            {"name": name, "min_version": feature.lowest, "max_version": feature.highest}
            for name, feature in features
            if feature.lowest >= least
        ],
        "finalized_features_epoch": 1,
        "finalized_features": [
            {"name": name, "min_version_level": feature.level, "max_version_level": feature.level}
            for name, feature in features
        ],
    }


def unsupported_api_versions(call: Call) -> Response:
    """Answer an ApiVersions of a version that there is not, in the oldest one: with the versions that there are."""
    low, high = call.versions[API_VERSIONS_KEY]
    return {
        "error_code": ErrorCode.UNSUPPORTED_VERSION,
        "api_keys": [{"api_key": API_VERSIONS_KEY, "min_version": low, "max_version": high}],
    }


# ---- Metadata


def metadata(call: Call) -> Asked | Response:
    """Answer Metadata: the broker, and topics with their partitions."""
    topics = call.fields["topics"]
    # Version 0 has no null: nothing stands for all.
    is_about_all = topics is None or (call.version == 0 and not topics)
    named = [] if topics is None else [(topic["name"], topic.get("topic_id", NO_TOPIC_ID)) for topic in topics]
    if call.version < _FIRST_WITH_TOPIC_IDS and any(name is None or i != NO_TOPIC_ID for name, i in named):
        return _refused_metadata(named, ErrorCode.INVALID_REQUEST)
    if (None, NO_TOPIC_ID) in named:
        return _refused_metadata(named, ErrorCode.UNKNOWN_SERVER_ERROR)  # a NullPointerException
    request = MetadataRequest(
        names=None if is_about_all else [name for name, _ in named if name is not None],
        topic_ids=[topic_id for _, topic_id in named if topic_id != NO_TOPIC_ID],
        allow_auto_topic_creation=call.fields.get("allow_auto_topic_creation", True),
    )
    asks = _asks(call, "topic")

    def topic_of(result: TopicResult) -> Response:
        # What has no name may be anything.
        may_ask = asks and result.error_code is not ErrorCode.UNKNOWN_TOPIC_ID
        return _metadata_of(call, result) | ({"topic_authorized_operations": TOPIC_OPERATIONS} if may_ask else {})

    def write(answer: TopicsResponse) -> Response:
        return _cluster(call) | {"topics": list(map(topic_of, answer.topics))}

    return Asked((request,), write)


def _refused_metadata(named: Iterable[tuple[str | None, str]], code: ErrorCode) -> Response:
    """Return the response for an error of the whole request (MetadataRequest.getErrorResponse)."""
    topics = [{"error_code": code, "name": name or "", "topic_id": topic_id} for name, topic_id in named]
    return {"error_code": code, "topics": topics}


def _asks(call: Call, what: str) -> bool:
    """Return whether the request asks for what the client may do with *what*."""
    return bool(call.fields.get(f"include_{what}_authorized_operations", False))


def _cluster(call: Call) -> dict[str, Any]:
    """Return what DescribeCluster and Metadata both say of the cluster; brokers have other names there."""
    config = call.config
    cluster: dict[str, Any] = {
        "cluster_id": config.cluster_id,
        "controller_id": config.node.node_id,
        "brokers": [_broker(call, "node_id")],
    }
    if _asks(call, "cluster"):
        cluster["cluster_authorized_operations"] = CLUSTER_OPERATIONS
    return cluster


def _broker(call: Call, id_name: str) -> dict[str, Any]:
    config = call.config
    return {id_name: config.node.node_id, "host": config.host, "port": config.port, "rack": config.rack}


def _metadata_of(call: Call, topic: TopicResult) -> dict[str, Any]:
    partitions = range(topic.partition_count)
    return {
        "error_code": topic.error_code,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [] if topic.name is None else [_partition(call, topic.name, index) for index in partitions],
    }


def _partition(call: Call, topic: str, index: int) -> dict[str, Any]:
    node_id = call.config.node.node_id
    return {
        "partition_index": index,
        "leader_id": node_id,
        "leader_epoch": call.node.leader_epoch(topic, index),
        "replica_nodes": [node_id],
        "isr_nodes": [node_id],
    }


# ---- DescribeCluster


def describe_cluster(call: Call) -> Response:
    """Answer DescribeCluster: there is one broker."""
    endpoint_type = call.fields.get("endpoint_type", _BROKERS)
    if endpoint_type == _BROKERS:
        return _cluster(call) | {"brokers": [_broker(call, "broker_id")], "endpoint_type": _BROKERS}
    if endpoint_type == _CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    return {"error_code": code, "error_message": message}


# ---- FindCoordinator


def find_coordinator(call: Call) -> Response:
    """Answer FindCoordinator: every coordinator is here, at once."""
    key_type = call.fields.get("key_type", _GROUP)
    is_many = call.version >= _FIRST_WITH_MANY_KEYS
    keys = call.fields["coordinator_keys"] if is_many else [call.fields["key"]]
    found = [{"key": key, **_coordinator(call, key_type, key)} for key in keys]
    if not is_many or key_type not in {_GROUP, _TRANSACTION, _SHARE}:  # the errors of a request have texts
        found = [{**each, "error_message": ERROR_MESSAGES.get(each["error_code"], "NONE")} for each in found]
    return {"coordinators": found} if is_many else found[0]


def _coordinator(call: Call, key_type: int, key: str) -> dict[str, Any]:
    is_share = key_type == _SHARE and call.version >= _FIRST_WITH_SHARE and _is_share_partition(key)
    if key_type in {_GROUP, _TRANSACTION} or is_share:
        return {"error_code": ErrorCode.NONE, **_broker(call, "node_id")}
    return {"error_code": ErrorCode.INVALID_REQUEST, "node_id": -1, "host": "", "port": -1}


def _is_share_partition(key: str) -> bool:
    """Return whether *key* is a group, a topic's id and a partition (SharePartitionKey.getInstance)."""
    group_id, _, rest = key.partition(":") if key.count(":") == 2 else ("", "", "")  # noqa: PLR2004 - three parts
    topic_id, _, partition = rest.partition(":")
    try:
        topic_id_bytes(topic_id)
    except MalformedInputError:
        return False
    return bool(group_id.strip()) and re.fullmatch(r"[+-]?[0-9]{1,10}", partition) is not None


# ---- DescribeTopicPartitions


def describe_topic_partitions(call: Call) -> Response:
    """Answer DescribeTopicPartitions: topics by their names, as many partitions as the request wants."""
    fields, node = call.fields, call.node
    cursor: Mapping[str, Any] = fields["cursor"] or {"topic_name": "", "partition_index": 0}
    wanted = [topic["name"] for topic in fields["topics"]]
    names = sorted({name for name in wanted or [topic.name for topic in node.topics] if name >= cursor["topic_name"]})
    is_malformed = cursor["partition_index"] < 0 or (
        fields["cursor"] is not None and wanted and cursor["topic_name"] not in names
    )
    if is_malformed:
        return {"topics": [{"error_code": ErrorCode.INVALID_REQUEST, "name": name} for name in wanted]}
    left = max(min(MAX_PARTITIONS, fields["response_partition_limit"]), 1)
    described: list[Response] = []
    for name in names:
        first = cursor["partition_index"] if name == cursor["topic_name"] else 0
        if not left:
            return {"topics": described, "next_cursor": {"topic_name": name, "partition_index": 0}}
        topic = node.topics.by_name(name)
        if topic is None:
            described.append(_unknown(name))
            continue
        end = min(first + left, topic.partition_count)
        described.append(_described(call, topic, range(first, end)))
        if end < topic.partition_count:
            return {"topics": described, "next_cursor": {"topic_name": name, "partition_index": end}}
        left -= max(end - first, 0)
    return {"topics": described}


def _described(call: Call, topic: Topic, partitions: range) -> dict[str, Any]:
    nobody: dict[str, Any] = {"eligible_leader_replicas": [], "last_known_elr": []}
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [_partition(call, topic.name, index) | nobody for index in partitions],
        "topic_authorized_operations": TOPIC_OPERATIONS,
    }


def _unknown(name: str) -> dict[str, Any]:
    is_valid = invalid_name(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return {"error_code": code, "name": name, "topic_authorized_operations": TOPIC_OPERATIONS}
