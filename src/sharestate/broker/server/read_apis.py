"""
What those ask who read a log by offsets: ListOffsets and Fetch.

A fetch gets no session: a broker may refuse one, and clients go on without.

Source:
    KafkaApis.handleListOffsetRequest, handleFetchRequest, FetchManager.newContext (Kafka 4.4.0).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.broker.node import (
    NO_OFFSET,
    AskedOffset,
    FetchedFrom,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Topic,
)
from sharestate.broker.server.calls import Asked, Call, Response, by_topic
from sharestate.broker.server.hash_orders import in_hash_order
from sharestate.broker.server.record_batches import to_wire
from sharestate.errors import ErrorCode
from sharestate.persister.kafka.frames import Fields
from sharestate.values.fetched_records import IsolationLevel

TOPIC_IDS: Final = 13
"""The version of Fetch from which on topics have ids."""

_NO_EPOCH: Final = -1
"""The epoch of a partition's leader that a client does not know (RecordBatch.NO_PARTITION_LEADER_EPOCH)."""

_LEVELS: Final = MappingProxyType({0: IsolationLevel.READ_UNCOMMITTED, 1: IsolationLevel.READ_COMMITTED})
"""The isolation levels by their ids on the wire (IsolationLevel, Kafka 4.4.0)."""

_INITIAL_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
"""The epochs of requests that ask for all, not only for what a session lacks (FetchMetadata, Kafka 4.4.0)."""


def _isolation(call: Call) -> IsolationLevel | None:
    """Return what a client wants to read; requests of old versions do not say it. None for a level that is none."""
    return _LEVELS.get(call.fields.get("isolation_level", 0))


def _epoch_error(call: Call, topic: str, partition: int, epoch: int) -> ErrorCode:
    """
    Return why a client that takes *epoch* for that of the partition's leader is refused; NONE if it is not.

    Source:
        Partition.checkCurrentLeaderEpoch (Kafka 4.4.0).
    """
    if epoch == _NO_EPOCH or not call.node.topics.has_partition(topic, partition):
        return ErrorCode.NONE
    known = call.node.leader_epoch(topic, partition)
    if epoch < known:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > known else ErrorCode.NONE


# ---- ListOffsets


def list_offsets(call: Call) -> Asked | Response:
    """Find offsets by timestamps, and the ends of logs."""
    isolation = _isolation(call)
    if isolation is None:
        return _nothing_listed(call)
    asked = []
    errors = {}
    for topic in call.fields["topics"]:
        for each in topic["partitions"]:
            place = topic["name"], each["partition_index"]
            asked.append(AskedOffset(*place, each["timestamp"]))
            errors[place] = _epoch_error(call, *place, each.get("current_leader_epoch", _NO_EPOCH))
    request = ListOffsetsRequest(partitions=tuple(asked), isolation=isolation, version=call.version)

    def write(response: ListOffsetsResponse) -> Response:
        # Of a partition that is asked for twice, a broker says so once.
        listed = {each[:2]: _listed(call, each, each.error_code or errors[each[:2]]) for each in response.partitions}
        return {"topics": in_hash_order(listed)}

    return Asked((request,), write)


def _nothing_listed(call: Call) -> Response:
    """Return the answer to a request that fails as a whole (ListOffsetsRequest.getErrorResponse)."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": each["partition_index"], "error_code": error} for each in topic["partitions"]
                ],
            }
            for topic in call.fields["topics"]
        ]
    }


def _listed(call: Call, listed: ListedOffset, error: ErrorCode) -> Response:
    if error:
        return {"partition_index": listed.partition, "error_code": error}
    has_epoch = listed.offset >= 0
    return {
        "partition_index": listed.partition,
        "timestamp": listed.timestamp_ms,
        "offset": listed.offset,
        "leader_epoch": call.node.leader_epoch(listed.topic, listed.partition) if has_epoch else _NO_EPOCH,
    }


# ---- Fetch


class _Asked(NamedTuple):
    """A partition of a fetch, with the name or the id by which the client knows its topic."""

    key: str
    topic: Topic | None
    fields: Fields

    @property
    def partition(self) -> int:
        return int(self.fields["partition"])


def fetch(call: Call) -> Asked | Response:
    """Read partitions, and wait until there is enough to read."""
    if call.fields.get("session_epoch", _FINAL_EPOCH) not in {_INITIAL_EPOCH, _FINAL_EPOCH}:
        return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND}
    topics = call.node.topics
    has_ids = call.version >= TOPIC_IDS
    key, find = ("topic_id", topics.by_id) if has_ids else ("topic", topics.by_name)
    # Of a partition that is named twice the last place counts, and the first turn (FetchRequest.fetchData).
    asked = {
        (topic[key], each["partition"]): _Asked(topic[key], find(topic[key]), each)
        for topic in call.fields["topics"]
        for each in topic["partitions"]
    }.values()
    errors = [_refusal(call, each) for each in asked]
    isolation = _isolation(call)
    if isolation is None:
        if not _UNKNOWN.issuperset(errors):
            return _nothing_fetched(call, key)
        isolation = IsolationLevel.READ_UNCOMMITTED  # nobody asks for it where no partition is read
    request = FetchRequest(
        partitions=tuple(
            FetchedFrom(
                each.topic.topic_id,
                each.partition,
                each.fields["fetch_offset"],
                max(0, each.fields["partition_max_bytes"]),
            )
            for each, error in zip(asked, errors, strict=True)
            if each.topic is not None and not error
        ),
        max_bytes=max(0, call.fields["max_bytes"]),
        isolation=isolation,
        max_wait_ms=0 if any(errors) else call.fields["max_wait"],  # who gets an error does not wait
        min_bytes=call.fields["min_bytes"],
    )

    def write(response: FetchResponse) -> Response:
        results = iter(response.partitions)
        parts = [
            (each.key, _refused(each, error) if error else _fetched(call, each, next(results)))
            for each, error in zip(asked, errors, strict=True)
        ]
        parts.sort(key=lambda part: part[1]["error_code"] in _UNKNOWN)  # which a broker adds to the others
        return {"responses": by_topic(parts, key, "partitions")}

    return Asked((request,), write)


def _refusal(call: Call, asked: _Asked) -> ErrorCode:
    if asked.topic is None:
        has_ids = call.version >= TOPIC_IDS
        return ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not call.node.topics.has_partition(asked.topic.name, asked.partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _epoch_error(call, asked.topic.name, asked.partition, asked.fields.get("current_leader_epoch", _NO_EPOCH))


_UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def _refused(asked: _Asked, error: ErrorCode) -> Response:
    return _without_records(asked.partition, error) | {"aborted_transactions": [] if error in _UNKNOWN else None}


def _without_records(partition: int, error: ErrorCode) -> dict[str, Any]:
    return {"partition_index": partition, "error_code": error, "high_watermark": NO_OFFSET, "records": b""}


def _nothing_fetched(call: Call, key: str) -> Response:
    """Return the answer to a request that fails as a whole (FetchRequest.getErrorResponse)."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [
        {key: topic[key], "partitions": [_without_records(each["partition"], error) for each in topic["partitions"]]}
        for topic in call.fields["topics"]
    ]
    return {
        "error_code": error,
        "session_id": call.fields.get("session_id", 0),
        "responses": topics if call.version < TOPIC_IDS else [],
    }


def _fetched(call: Call, asked: _Asked, result: FetchResult) -> Response:
    if result.error_code or asked.topic is None:
        return _refused(asked, result.error_code)
    is_committed = _isolation(call) is IsolationLevel.READ_COMMITTED
    epoch = call.node.leader_epoch(asked.topic.name, asked.partition) if result.batches else _NO_EPOCH
    return {
        "partition_index": result.partition,
        "error_code": ErrorCode.NONE,
        "high_watermark": result.high_watermark,
        "last_stable_offset": result.last_stable_offset,
        "log_start_offset": result.log_start_offset,
        "aborted_transactions": [each._asdict() for each in result.aborted_transactions] if is_committed else None,
        "records": b"".join(to_wire(batch, epoch) for batch in result.batches),
    }
