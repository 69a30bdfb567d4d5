"""Persisters that mistake who may write, each in one way."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from attrs import evolve

from sharestate import ErrorCode, InMemoryPersister, SharePartitionKey
from sharestate.coordinator import CoordinatorProfile
from sharestate.persister import (
    InitializeStateParameters,
    Parameters,
    PartitionErrorData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    StoredState,
)


class SummariesFence(InMemoryPersister):
    """Who asks for a summary is taken for a leader."""

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Read first."""
        self.read_state(ReadStateParameters(group_id=request.group_id, topics=request.topics)).result()
        return super().read_summary(request)


class KnowsTheFirstLeaderOnly(InMemoryPersister):
    """A leader epoch is remembered if none was before."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        before = {key: state for key, state in self._shard.states.items() if state.highest_leader_epoch}
        result = super()._apply(request)
        if isinstance(request, ReadStateParameters):
            self._shard.states |= before
        return result


class FreesOldLeaders(InMemoryPersister):
    """An initialization forgets which leaders have read."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        result = super()._apply(request)
        if isinstance(request, InitializeStateParameters):
            self._shard.states = {
                key: evolve(state, highest_leader_epoch=0) for key, state in self._shard.states.items()
            }
        return result


class RemembersTheDeleted(InMemoryPersister):
    """The epochs of what was deleted go on fencing."""

    def __init__(self, *, profile: CoordinatorProfile) -> None:
        """Make one that has deleted nothing."""
        super().__init__(profile=profile)
        self.deleted: dict[SharePartitionKey, StoredState] = {}

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        before = dict(self._shard.states)
        result = super()._apply(request)
        self.deleted |= {key: state for key, state in before.items() if key not in self._shard.states}
        for key in self.deleted.keys() & self._shard.states.keys():
            old = self.deleted.pop(key)
            self._shard.states[key] = evolve(self._shard.states[key], highest_leader_epoch=old.highest_leader_epoch)
        return result


class ForgetsStateEpochs(InMemoryPersister):
    """An initialization without a state epoch unfences all that have an older one."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        result = super()._apply(request)
        if isinstance(request, InitializeStateParameters):
            self._shard.states = {
                key: evolve(state, highest_state_epoch=state.state_epoch) for key, state in self._shard.states.items()
            }
        return result


class CallsFencedReadsInvalid(InMemoryPersister):
    """A leader that is fenced is told that nothing is initialized."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        result = super()._apply(request)
        if isinstance(request, ReadStateParameters):
            fenced = [entry.error_code for topic in result.topics for entry in topic.partitions]
            return request.failed(ErrorCode.INVALID_REQUEST) if ErrorCode.FENCED_LEADER_EPOCH in fenced else result
        return result


class InitializesEachTime(InMemoryPersister):
    """What should initialize once initializes whenever it is asked."""

    def initialize_once(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize."""
        return self.initialize_state(request)
