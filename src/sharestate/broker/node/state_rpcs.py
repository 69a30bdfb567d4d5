"""
A node's own share coordinator, and the RPCs by which Kafka's leaders of share partitions reach theirs.

Source:
    PersisterStateManager, ShareCoordinatorShard (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from sharestate.coordinator.shard import Outcome
from sharestate.errors import ErrorCode
from sharestate.leader.answers import MESSAGES
from sharestate.persister.coordinator_persister import CoordinatorPersister
from sharestate.persister.protocol import RETRIABLE, CheckedPersister, P, Persister, R
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionErrorData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    WriteStateParameters,
)

STATE_REQUESTS: Final[Mapping[type[Parameters[Any, Any]], str]] = MappingProxyType(
    {
        InitializeStateParameters: "initialize_state",
        ReadStateParameters: "read_state",
        WriteStateParameters: "write_state",
        DeleteStateParameters: "delete_state",
        ReadSummaryParameters: "read_summary",
    }
)
"""The methods of a persister that answer the requests 83 to 87."""

_NAMES: Final[Mapping[type[Parameters[Any, Any]], str]] = MappingProxyType(
    {
        InitializeStateParameters: "initialize state",
        ReadStateParameters: "read state",
        WriteStateParameters: "write state",
        DeleteStateParameters: "delete state",
        ReadSummaryParameters: "read state summary",
    }
)
"""What the texts of PersisterStateManager call the RPCs."""


class NodeCoordinator(CoordinatorPersister):
    """The share coordinator of a node, whose errors have Kafka's texts: nobody here can initialize anything."""

    def _entry(self, request: Parameters[P, R], partition: int, outcome: Outcome) -> R:
        entry = super()._entry(request, partition, outcome)
        return evolve(entry, error_message=outcome.error_message) if outcome.error_code else entry


class StateRpcs(CheckedPersister):
    """
    A share coordinator as leaders and the group coordinator reach it: its errors come with what was asked.

    Args:
        coordinator: Stores the state.

    Attributes:
        coordinator: As it was given.

    Source:
        PersisterStateManager.WriteStateHandler and its likes, requestErrorResponse (Kafka 4.4.0).
    """

    def __init__(self, coordinator: Persister) -> None:
        """Make one that has asked nothing yet."""
        self.coordinator = coordinator

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        answer: Future[Result[R]] = Future()
        stored: Future[Result[R]] = getattr(self.coordinator, STATE_REQUESTS[type(request)])(request)
        stored.add_done_callback(partial(_pass_on, answer, _NAMES[type(request)]))
        return answer


def _pass_on(answer: Future[Result[R]], name: str, stored: Future[Result[R]]) -> None:
    error = stored.exception()
    if error is None:
        answer.set_result(_worded(stored.result(), name))
    else:
        answer.set_exception(error)


def _worded(result: Result[R], name: str) -> Result[R]:
    if not any(entry.error_code for topic in result.topics for entry in topic.partitions):
        return result
    topics = (
        evolve(topic, partitions=tuple(evolve(entry, error_message=_text(entry, name)) for entry in topic.partitions))
        for topic in result.topics
    )
    return evolve(result, topics=tuple(topics))


def _text(entry: PartitionErrorData, name: str) -> str | None:
    code = entry.error_code
    if not code:
        return entry.error_message
    if code in RETRIABLE:
        return f"Error in {name} RPC. Exhausted max retries to complete {name} RPC without success."
    said = entry.error_message or MESSAGES.get(code, MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR])
    return f"Error in {name} RPC. {said}"
