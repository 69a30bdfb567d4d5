"""
What a persister asks a share coordinator: to initialize, read, write, delete and sum up the state of share partitions.

Source:
    KafkaApis.handleInitializeShareGroupStateRequest and those beside it, ShareCoordinatorService, ShareCoordinatorShard
    (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from sharestate.broker.node.share_broker import coordinator_profile
from sharestate.broker.server.calls import Asked, Call, Response, by_topic
from sharestate.coordinator.shard import NEGATIVE_PARTITION, NEGATIVE_STATE_EPOCH
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode, MalformedInputError
from sharestate.persister.kafka.frames import Fields
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
    WriteStateParameters,
)
from sharestate.values.requests import StateBatch


@frozen
class _StateApi:
    """
    One of the five APIs.

    Attributes:
        request: Makes the request of a persister.
        asked: Makes an entry of it of a partition of the request.
        answered: Makes a partition of the response of an entry of the answer.
        needs_topic: Whether it is the first question if there is such a partition; reads and writes ask for its state
            first.
    """

    request: type[Parameters[Any, Any]]
    asked: Callable[[Fields], PartitionIdData]
    answered: Callable[[Any], Response]
    needs_topic: bool = True


def state_api(call: Call) -> Asked | Response:
    """Ask the share coordinator; without a group, or partitions of each topic, the answer is empty."""
    topics = call.fields["topics"]
    if not call.fields["group_id"] or not all(topic["partitions"] for topic in topics):
        return {}
    api = _STATE_APIS[call.api_key]
    refused: list[tuple[str, Response]] = []
    entries: dict[str, list[PartitionIdData]] = {}
    for topic in topics:
        for fields in topic["partitions"]:
            entry = _entry(call, api, topic["topic_id"], fields)
            if isinstance(entry, PartitionIdData):
                entries.setdefault(topic["topic_id"], []).append(entry)
            else:
                refused.append((topic["topic_id"], entry))
    if not entries:
        return _results(refused)
    asked = tuple(TopicData(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in entries.items())

    def write(result: Result[Any]) -> Response:
        found = [(topic.topic_id, api.answered(each)) for topic in result.topics for each in topic.partitions]
        return _results([*found, *refused])

    return Asked((api.request(group_id=call.fields["group_id"], topics=asked),), write)


def _entry(call: Call, api: _StateApi, topic_id: str, fields: Fields) -> PartitionIdData | Response:
    """Return a partition of the request, or its answer if it cannot be asked for."""
    name = call.node.topics.name_of(topic_id)
    partition = fields["partition"]
    if partition < 0:
        return _refused(partition, ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
    if fields.get("state_epoch", 0) < 0 and api.needs_topic and _refuses_negative_epochs(call):
        return _refused(partition, ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
    if api.needs_topic and (name is None or not call.node.topics.has_partition(name, partition)):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _refused(partition, error, ERROR_MESSAGES[error])
    try:
        return api.asked(fields)
    except MalformedInputError as refusal:
        return _refused(partition, ErrorCode.INVALID_REQUEST, str(refusal))


def _refuses_negative_epochs(call: Call) -> bool:
    return coordinator_profile(call.config.node.profile).refuses_negative_epochs


def _refused(partition: int, error: ErrorCode, message: str) -> Response:
    return {"partition": partition, "error_code": error, "error_message": message}


def _results(parts: Iterable[tuple[str, Response]]) -> Response:
    return {"results": by_topic(parts, "topic_id", "partitions")}


# ---- entries of requests


def _only(*names: str) -> Callable[[Fields], dict[str, Any]]:
    return lambda fields: {name: fields[name] for name in names}


def _initialized(fields: Fields) -> PartitionStateData:
    return PartitionStateData(**_only("partition", "state_epoch", "start_offset")(fields))


def _read(fields: Fields) -> PartitionIdLeaderEpochData:
    return PartitionIdLeaderEpochData(**_only("partition", "leader_epoch")(fields))


def _written(fields: Fields) -> PartitionStateBatchData:
    names = _WRITTEN & fields.keys()  # version 0 has no delivery complete count
    batches = [
        StateBatch(each["first_offset"], each["last_offset"], each["delivery_state"], each["delivery_count"])
        for each in fields["state_batches"]
    ]
    return PartitionStateBatchData(**{name: fields[name] for name in names}, state_batches=batches)


_WRITTEN: Final = frozenset({"partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"})


def _deleted(fields: Fields) -> PartitionIdData:
    return PartitionIdData(partition=fields["partition"])


# ---- entries of answers


def _outcome(entry: PartitionErrorData) -> dict[str, Any]:
    message = entry.error_message if entry.error_code else None
    return {"partition": entry.partition, "error_code": entry.error_code, "error_message": message}


def _state(entry: PartitionAllData) -> Response:
    if entry.error_code:
        return _outcome(entry)
    return {
        **_outcome(entry),
        "state_epoch": entry.state_epoch,
        "start_offset": entry.start_offset,
        "state_batches": [each._asdict() for each in entry.state_batches],
    }


def _summary(entry: PartitionStateSummaryData) -> Response:
    return {
        **_outcome(entry),
        "state_epoch": entry.state_epoch,
        "leader_epoch": entry.leader_epoch,
        "start_offset": entry.start_offset,
        "delivery_complete_count": entry.delivery_complete_count,
    }


_STATE_APIS: Final[Mapping[int, _StateApi]] = MappingProxyType(
    {
        83: _StateApi(InitializeStateParameters, _initialized, _outcome),
        84: _StateApi(ReadStateParameters, _read, _state, needs_topic=False),
        85: _StateApi(WriteStateParameters, _written, _outcome, needs_topic=False),
        86: _StateApi(DeleteStateParameters, _deleted, _outcome),
        87: _StateApi(ReadSummaryParameters, _read, _summary),
    }
)
"""The APIs by their keys."""
