"""
Spec (share coordinator) 1.6 to 1.9: what is stored of share partitions, and which requests are refused.

Source:
    ShareCoordinatorShard (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import evolve, frozen

from sharestate.error_codes import ErrorCode
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
from sharestate.values.keys import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, StateBatch

NO_EPOCH: Final = -1
"""The epoch of a request that is not to be judged by it."""


@frozen(kw_only=True)
class StoredState:
    """
    What is stored of one share partition.

    Two pairs of epochs, as in Kafka: the stored ones, which are read, and the highest ones, by which requests are
    judged. A share partition that is initialised anew begins with leader epoch 0, and old leaders stay fenced.
    """

    state_epoch: int
    """The epoch with which it was initialised last."""

    start_offset: int
    """The SPSO; -1 if there is none yet."""

    highest_state_epoch: int
    """The highest epoch with which it was ever initialised."""

    leader_epoch: int = 0
    """The epoch of the last leader that has read it with a higher one than those before."""

    highest_leader_epoch: int = 0
    """The highest epoch with which it was ever read."""

    delivery_complete_count: int = UNINITIALIZED_COUNT
    """How many records at or above the SPSO are terminal; -1 if nobody has said. [records]"""

    state_batches: tuple[StateBatch, ...] = ()
    """The ranges that were in flight: ascending, without overlap."""


States: TypeAlias = dict[SharePartitionKey, StoredState]
"""All that is stored."""

MESSAGES: Final[Mapping[ErrorCode, str]] = MappingProxyType(
    {
        ErrorCode.INVALID_REQUEST: "The share partition has not been initialized.",
        ErrorCode.FENCED_LEADER_EPOCH: "A leader with a higher epoch has read the state.",
        ErrorCode.FENCED_STATE_EPOCH: "The state has been initialized with a higher epoch.",
        ErrorCode.NONE: NO_ERROR_MESSAGE,
    }
)
"""What is said with the codes of refusals; the words are ours."""


def carry_out(states: States, request: Parameters[Any, Any], key: SharePartitionKey, entry: Any) -> Any:  # noqa: ANN401 - the table pairs the types
    """Do what *entry* of *request* asks for share partition *key*, and return what stands for it in the result."""
    return RULES[type(request)](states, key, entry)


def initialize(states: States, key: SharePartitionKey, entry: PartitionStateData) -> PartitionErrorData:
    """Begin the state anew; what was in flight is forgotten (spec 1.6)."""
    old = states.get(key)
    refusal = ErrorCode.NONE if old is None else _epoch_refusal(old, NO_EPOCH, entry.state_epoch)
    if refusal is ErrorCode.NONE:
        is_begun = entry.start_offset != UNINITIALIZED_START_OFFSET
        states[key] = StoredState(
            state_epoch=entry.state_epoch,
            start_offset=entry.start_offset,
            highest_state_epoch=max(entry.state_epoch, entry.state_epoch if old is None else old.highest_state_epoch),
            highest_leader_epoch=0 if old is None else old.highest_leader_epoch,
            delivery_complete_count=0 if is_begun else UNINITIALIZED_COUNT,
        )
    return PartitionErrorData(partition=key.partition, error_code=refusal, error_message=MESSAGES[refusal])


def read(states: States, key: SharePartitionKey, entry: PartitionIdLeaderEpochData) -> PartitionAllData:
    """Return the state; a leader epoch higher than any before it is remembered, and nothing else does that (1.7)."""
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
    """Put what has changed into the state; epochs that are too high are taken and not remembered (1.8, 1.10)."""
    state = states.get(key)
    refusal = _refusal(state, entry.leader_epoch, entry.state_epoch)
    if state is not None and refusal is ErrorCode.NONE:
        states[key] = _written(state, entry)
    return PartitionErrorData(partition=key.partition, error_code=refusal, error_message=MESSAGES[refusal])


def delete(states: States, key: SharePartitionKey, _entry: PartitionIdData) -> PartitionErrorData:
    """Forget the share partition, its epochs too; there need not be one (1.9)."""
    states.pop(key, None)
    return PartitionErrorData(partition=key.partition)


def summarize(states: States, key: SharePartitionKey, _entry: PartitionIdLeaderEpochData) -> PartitionStateSummaryData:
    """Return the state in short, whoever asks; there need not be one (1.9)."""
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
"""What is done for an entry of each request."""


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
