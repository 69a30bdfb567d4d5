"""What persisters that store the state themselves have in common: requests become operations of a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sharestate.coordinator.shard import READ_UNINITIALIZED, WRITE_UNINITIALIZED, CoordinatorShard, Outcome
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeOnceParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
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

NOT_INITIALIZED: Final = (
    "The share partition is not initialized: call initialize_state before the leader starts, as a group coordinator "
    "does."
)

_TEXTS: Final[Mapping[str | None, str]] = MappingProxyType(
    {READ_UNINITIALIZED: NOT_INITIALIZED, WRITE_UNINITIALIZED: NOT_INITIALIZED}
)


def operate(
    shard: CoordinatorShard,
    request: Parameters[Any, Any],
    key: SharePartitionKey,
    entry: Any,  # noqa: ANN401 - the table pairs the types
    now_ms: int,
) -> Outcome:
    """Return what *entry* of *request*, about *key*, comes to in *shard*; nothing is changed yet."""
    return _OPERATIONS[type(request)](shard, key, entry, now_ms)


def answer(request: Parameters[Any, Any], partition: int, outcome: Outcome) -> Any:  # noqa: ANN401 - as the request's class says
    """Return the entry of *request*'s result for *partition* that *outcome* makes."""
    if outcome.error_code:
        text = _TEXTS.get(outcome.error_message, outcome.error_message)
        return request.answered(partition=partition, error_code=outcome.error_code, error_message=text)
    state = outcome.state
    if state is None:
        return request.answered(partition=partition)
    if request.answered is PartitionAllData:
        return PartitionAllData(
            partition=partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=state.state_batches,
        )
    return PartitionStateSummaryData(
        partition=partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


def _initialize(shard: CoordinatorShard, key: SharePartitionKey, entry: PartitionStateData, now_ms: int) -> Outcome:
    return shard.initialize(key, state_epoch=entry.state_epoch, start_offset=entry.start_offset, now_ms=now_ms)


def _initialize_once(
    shard: CoordinatorShard, key: SharePartitionKey, entry: PartitionStateData, now_ms: int
) -> Outcome:
    return Outcome() if key in shard.states else _initialize(shard, key, entry, now_ms)


def _read(shard: CoordinatorShard, key: SharePartitionKey, entry: PartitionIdLeaderEpochData, now_ms: int) -> Outcome:
    return shard.read(key, leader_epoch=entry.leader_epoch, now_ms=now_ms)


def _write(shard: CoordinatorShard, key: SharePartitionKey, entry: PartitionStateBatchData, now_ms: int) -> Outcome:
    return shard.write(
        key,
        state_epoch=entry.state_epoch,
        leader_epoch=entry.leader_epoch,
        start_offset=entry.start_offset,
        state_batches=entry.state_batches,
        delivery_complete_count=entry.delivery_complete_count,
        now_ms=now_ms,
    )


def _delete(shard: CoordinatorShard, key: SharePartitionKey, _entry: PartitionIdData, _now_ms: int) -> Outcome:
    return shard.delete(key)


def _summarize(
    shard: CoordinatorShard, key: SharePartitionKey, _entry: PartitionIdLeaderEpochData, _now_ms: int
) -> Outcome:
    return shard.summarize(key)


_OPERATIONS: Final[
    Mapping[type[Parameters[Any, Any]], Callable[[CoordinatorShard, SharePartitionKey, Any, int], Outcome]]
] = MappingProxyType(
    {
        InitializeStateParameters: _initialize,
        InitializeOnceParameters: _initialize_once,
        ReadStateParameters: _read,
        WriteStateParameters: _write,
        DeleteStateParameters: _delete,
        ReadSummaryParameters: _summarize,
    }
)
"""The operation for an entry of each request."""
