"""
The stored state of share partitions, and the requests that are refused.

Source:
    ShareCoordinatorShard (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import evolve, frozen

from sharestate.errors import ErrorCode
from sharestate.persister.combiner import combine
from sharestate.persister.requests import (
    NO_ERROR_MESSAGE,
    UNINITIALIZED_COUNT,
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
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

NO_EPOCH: Final = -1
"""The epoch of a request that is never fenced by it."""


@frozen(kw_only=True)
class StoredState:
    """
    The stored state of one share partition.

    Two pairs of epochs, as in Kafka: the stored ones, which are read, and the highest ones, by which requests are
    fenced. A share partition that is initialized anew starts with leader epoch 0, and old leaders stay fenced.

    Attributes:
        state_epoch: The epoch with which it was initialized last.
        start_offset: The SPSO; -1 if there is none yet.
        highest_state_epoch: The highest epoch with which it was ever initialized.
        leader_epoch: The epoch of the last leader that has read it with a higher one than those before.
        highest_leader_epoch: The highest epoch with which it was ever read.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 if none was written. [records]
        state_batches: The ranges that were in flight: ascending, without overlap.
    """

    state_epoch: int
    start_offset: int
    highest_state_epoch: int
    leader_epoch: int = 0
    highest_leader_epoch: int = 0
    delivery_complete_count: int = UNINITIALIZED_COUNT
    state_batches: tuple[StateBatch, ...] = ()


States: TypeAlias = dict[SharePartitionKey, StoredState]
"""The stored states."""

MESSAGES: Final[Mapping[ErrorCode, str]] = MappingProxyType(
    {
        ErrorCode.INVALID_REQUEST: "The share partition is not initialized: call initialize_state before the leader "
        "starts, as a group coordinator does.",
        ErrorCode.FENCED_LEADER_EPOCH: "A leader with a higher epoch has read the state.",
        ErrorCode.FENCED_STATE_EPOCH: "The state has been initialized with a higher epoch.",
        ErrorCode.NONE: NO_ERROR_MESSAGE,
    }
)
"""The texts of refusals; the words are ours."""


def apply(states: States, request: Parameters[Any, Any], key: SharePartitionKey, entry: Any) -> Any:  # noqa: ANN401 - the table pairs the types
    """Apply *entry* of *request* to share partition *key*, and return its entry in the result."""
    return RULES[type(request)](states, key, entry)


def initialize(states: States, key: SharePartitionKey, entry: PartitionStateData) -> PartitionErrorData:
    """Start the state anew, without in-flight records."""
    old = states.get(key)
    refusal = ErrorCode.NONE if old is None else _epoch_refusal(old, NO_EPOCH, entry.state_epoch)
    if refusal is ErrorCode.NONE:
        has_start_offset = entry.start_offset != UNINITIALIZED_START_OFFSET
        states[key] = StoredState(
            state_epoch=entry.state_epoch,
            start_offset=entry.start_offset,
            highest_state_epoch=max(entry.state_epoch, entry.state_epoch if old is None else old.highest_state_epoch),
            highest_leader_epoch=0 if old is None else old.highest_leader_epoch,
            delivery_complete_count=0 if has_start_offset else UNINITIALIZED_COUNT,
        )
    return PartitionErrorData(partition=key.partition, error_code=refusal, error_message=MESSAGES[refusal])


def read(states: States, key: SharePartitionKey, entry: PartitionIdLeaderEpochData) -> PartitionAllData:
    """Return the state; only a read stores a leader epoch, if it is the highest so far."""
    state = states.get(key)
    refusal = _refusal(state, entry.leader_epoch)
    if state is None or refusal is not ErrorCode.NONE:
        return PartitionAllData(partition=key.partition, error_code=refusal, error_message=MESSAGES[refusal])
    if entry.leader_epoch > state.highest_leader_epoch:
        states[key] = evolve(state, leader_epoch=entry.leader_epoch, highest_leader_epoch=entry.leader_epoch)
    return PartitionAllData(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=state.state_batches,
    )


def write(states: States, key: SharePartitionKey, entry: PartitionStateBatchData) -> PartitionErrorData:
    """Change the state; epochs that are too high are accepted and not stored."""
    state = states.get(key)
    refusal = _refusal(state, entry.leader_epoch, entry.state_epoch)
    if state is not None and refusal is ErrorCode.NONE:
        states[key] = _written(state, entry)
    return PartitionErrorData(partition=key.partition, error_code=refusal, error_message=MESSAGES[refusal])


def delete(states: States, key: SharePartitionKey, _entry: PartitionIdData) -> PartitionErrorData:
    """Delete the share partition with its epochs; there need not be one."""
    states.pop(key, None)
    return PartitionErrorData(partition=key.partition)


def summarize(states: States, key: SharePartitionKey, _entry: PartitionIdLeaderEpochData) -> PartitionStateSummaryData:
    """Return the state without its batches, whoever asks; there need not be one."""
    state = states.get(key)
    if state is None:
        return PartitionStateSummaryData(partition=key.partition)
    return PartitionStateSummaryData(
        partition=key.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


RULES: Final[Mapping[type[Parameters[Any, Any]], Callable[[States, SharePartitionKey, Any], Any]]] = MappingProxyType(
    {
        InitializeStateParameters: initialize,
        ReadStateParameters: read,
        WriteStateParameters: write,
        DeleteStateParameters: delete,
        ReadSummaryParameters: summarize,
    }
)
"""The function for an entry of each request."""


def _refusal(state: StoredState | None, leader_epoch: int, state_epoch: int = NO_EPOCH) -> ErrorCode:
    return ErrorCode.INVALID_REQUEST if state is None else _epoch_refusal(state, leader_epoch, state_epoch)


def _epoch_refusal(state: StoredState, leader_epoch: int, state_epoch: int) -> ErrorCode:
    if leader_epoch != NO_EPOCH and leader_epoch < state.highest_leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if state_epoch != NO_EPOCH and state_epoch < state.highest_state_epoch:
        return ErrorCode.FENCED_STATE_EPOCH
    return ErrorCode.NONE


def _written(state: StoredState, entry: PartitionStateBatchData) -> StoredState:
    """Return *state* after *entry*, whose batches are combined among themselves first, as they are logged."""
    logged = combine((), entry.state_batches, entry.start_offset)
    is_moved = entry.start_offset != UNINITIALIZED_START_OFFSET
    is_counted = entry.delivery_complete_count != UNINITIALIZED_COUNT
    start_offset = entry.start_offset if is_moved else state.start_offset
    return evolve(
        state,
        start_offset=start_offset,
        delivery_complete_count=entry.delivery_complete_count if is_counted else state.delivery_complete_count,
        state_batches=combine(state.state_batches, logged, start_offset),
    )
