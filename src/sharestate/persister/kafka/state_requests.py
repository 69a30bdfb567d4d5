"""
The requests of persisters as requests to share coordinators, and their answers; the schemas are kio's.

Source:
    The message definitions of clients/src/main/resources/common/message (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from attrs import frozen
from kio.schema.delete_share_group_state.v0 import request as delete_v0
from kio.schema.delete_share_group_state.v0.response import DeleteShareGroupStateResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.initialize_share_group_state.v0 import request as initialize_v0
from kio.schema.initialize_share_group_state.v0.response import InitializeShareGroupStateResponse
from kio.schema.read_share_group_state.v0 import request as read_v0
from kio.schema.read_share_group_state.v0.response import ReadShareGroupStateResponse
from kio.schema.read_share_group_state_summary.v1 import request as summary_v1
from kio.schema.read_share_group_state_summary.v1.response import ReadShareGroupStateSummaryResponse
from kio.schema.write_share_group_state.v1 import request as write_v1
from kio.schema.write_share_group_state.v1.response import WriteShareGroupStateResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from sharestate.coordinator.wire import topic_id_bytes
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
    WriteStateParameters,
)
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import StateBatch

SHARE: Final = 2
"""The key type of share partitions in FindCoordinator (CoordinatorType)."""


@frozen
class StateRequest:
    """One of the five requests: how it is made, and how its answer is read."""

    request: Callable[..., RequestPayload]
    """Makes the request of a ``group_id`` and ``topics``; a class of kio."""

    topic: Callable[..., Any]
    """Makes a topic of the request of a ``topic_id`` and ``partitions``; a class of kio."""

    partition: Callable[[Any], Any]
    """Makes a partition of the request of an entry."""

    response: type[ResponsePayload]
    """The schema of the answer."""

    answer: Callable[[Fields], PartitionErrorData]
    """Makes an entry of the result of a partition of the answer."""

    def of(self, group_id: str, entries: Iterable[tuple[SharePartitionKey, PartitionIdData]]) -> RequestPayload:
        """
        Return the request about *entries* of one group: by topic, and in their order within each.

        Raises:
            MalformedInputError: A topic id is no UUID.
        """
        topics: dict[str, list[Any]] = {}
        for key, entry in entries:
            topics.setdefault(key.topic_id, []).append(self.partition(entry))
        return self.request(
            group_id=group_id,
            topics=tuple(
                self.topic(topic_id=UUID(bytes=topic_id_bytes(topic_id)), partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
        )

    def answers(self, response: Fields) -> dict[tuple[str, int], PartitionErrorData]:
        """
        Return the answers in *response* by topic id and partition, of several the first, as Kafka's persister does.

        Those about partitions that cannot be are ignored: nobody has asked for them.
        """
        answers: dict[tuple[str, int], PartitionErrorData] = {}
        for topic in response["results"]:
            topic_id = topic["topic_id"]
            for part in topic["partitions"]:
                if part["partition"] >= 0:
                    answers.setdefault((topic_id, part["partition"]), self.answer(part))
        return answers


# ---- entries of requests


def _state(entry: PartitionStateData) -> initialize_v0.PartitionData:
    return initialize_v0.PartitionData(
        partition=_(entry.partition), state_epoch=_(entry.state_epoch), start_offset=_(entry.start_offset)
    )


def _read(entry: PartitionIdLeaderEpochData) -> read_v0.PartitionData:
    return read_v0.PartitionData(partition=_(entry.partition), leader_epoch=_(entry.leader_epoch))


def _written(entry: PartitionStateBatchData) -> write_v1.PartitionData:
    return write_v1.PartitionData(
        partition=_(entry.partition),
        state_epoch=_(entry.state_epoch),
        leader_epoch=_(entry.leader_epoch),
        start_offset=_(entry.start_offset),
        delivery_complete_count=_(entry.delivery_complete_count),
        state_batches=tuple(
            write_v1.StateBatch(
                first_offset=_(first), last_offset=_(last), delivery_state=_(state), delivery_count=_(count)
            )
            for first, last, state, count in entry.state_batches
        ),
    )


def _deleted(entry: PartitionIdData) -> delete_v0.PartitionData:
    return delete_v0.PartitionData(partition=_(entry.partition))


def _summed(entry: PartitionIdLeaderEpochData) -> summary_v1.PartitionData:
    return summary_v1.PartitionData(partition=_(entry.partition), leader_epoch=_(entry.leader_epoch))


def _(number: int) -> Any:  # noqa: ANN401 - kio's types of numbers are narrower; its writer refuses what does not fit
    return number


# ---- entries of answers


def _error(part: Fields) -> dict[str, Any]:
    return {name: part[name] for name in ("partition", "error_code", "error_message")}


def _outcome(part: Fields) -> PartitionErrorData:
    return PartitionErrorData(**_error(part))


def _state_of(part: Fields) -> PartitionAllData:
    batches = [
        StateBatch(batch["first_offset"], batch["last_offset"], batch["delivery_state"], batch["delivery_count"])
        for batch in part["state_batches"]
    ]
    return PartitionAllData(
        **_error(part), state_epoch=part["state_epoch"], start_offset=part["start_offset"], state_batches=batches
    )


def _summary_of(part: Fields) -> PartitionStateSummaryData:
    names = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
    return PartitionStateSummaryData(**_error(part), **{name: part[name] for name in names})


STATE_REQUESTS: Final[Mapping[type[Parameters[Any, Any]], StateRequest]] = MappingProxyType(
    {
        InitializeStateParameters: StateRequest(
            initialize_v0.InitializeShareGroupStateRequest,
            initialize_v0.InitializeStateData,
            _state,
            InitializeShareGroupStateResponse,
            _outcome,
        ),
        ReadStateParameters: StateRequest(
            read_v0.ReadShareGroupStateRequest,
            read_v0.ReadStateData,
            _read,
            ReadShareGroupStateResponse,
            _state_of,
        ),
        WriteStateParameters: StateRequest(
            write_v1.WriteShareGroupStateRequest,
            write_v1.WriteStateData,
            _written,
            WriteShareGroupStateResponse,
            _outcome,
        ),
        DeleteStateParameters: StateRequest(
            delete_v0.DeleteShareGroupStateRequest,
            delete_v0.DeleteStateData,
            _deleted,
            DeleteShareGroupStateResponse,
            _outcome,
        ),
        ReadSummaryParameters: StateRequest(
            summary_v1.ReadShareGroupStateSummaryRequest,
            summary_v1.ReadStateSummaryData,
            _summed,
            ReadShareGroupStateSummaryResponse,
            _summary_of,
        ),
    }
)
"""The form of each request of a persister on the wire."""

SCHEMAS: Final[tuple[type[ResponsePayload], ...]] = (
    FindCoordinatorResponse,
    *(state_request.response for state_request in STATE_REQUESTS.values()),
)
"""The schemas of all answers; a broker has to speak their versions."""


def find_coordinator(keys: Iterable[str]) -> FindCoordinatorRequest:
    """Return the request for the coordinators of the share partitions with the coordinator keys *keys*."""
    return FindCoordinatorRequest(key_type=_(SHARE), coordinator_keys=tuple(keys))
