"""Performing a scenario: a leader, a persister in memory, and what they show after each row."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from attrs import frozen

from sharestate.conversation import requests
from sharestate.conversation.lookups import NO_TABLE
from sharestate.kip932.states import KipState, changes, state_of
from sharestate.kip932.write_requests import KEY
from sharestate.leader import Leader
from sharestate.partition.partition import SharePartition
from sharestate.persister import (
    InitializeStateParameters,
    InMemoryPersister,
    PartitionStateBatchData,
    PartitionStateData,
    WriteStateParameters,
)
from sharestate.values.checks import integer
from sharestate.values.keys import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.kip932.tables import Scenario
    from sharestate.values.config import AutoOffsetReset
    from sharestate.values.profiles import Profile
    from sharestate.values.snapshot import Snapshot

Write: TypeAlias = tuple[SharePartitionKey, PartitionStateBatchData]
"""A share partition, and what is written to it."""

NOTHING_YET: Final = KipState()
"""What there is before the first row."""


@frozen(kw_only=True)
class Step:
    """What the commands of one row have led to."""

    writes: tuple[Write, ...]
    """The writes that have reached the persister, in their order."""

    before: KipState
    """The state before them."""

    snapshot: Snapshot
    """The share partition after them."""

    @property
    def state(self) -> KipState:
        """The state after them."""
        return state_of(self.snapshot)

    @property
    def changes(self) -> KipState:
        """What they have changed."""
        return changes(self.before, self.state)


def perform(scenario: Scenario, profile: Profile) -> tuple[Step, ...]:
    """Perform *scenario* with a new leader under *profile*, and return what each of its steps has led to."""
    stage = _Stage(profile)
    return tuple(stage.perform(commands) for commands in scenario.steps)


class _Stage:
    """A leader of a share partition whose state was initialised and never written."""

    def __init__(self, profile: Profile) -> None:
        self._persister = InMemoryPersister()
        self._persister.initialize_state(
            InitializeStateParameters.of(KEY.group_id, KEY.topic_id, PartitionStateData(partition=KEY.partition))
        )
        self._partition = SharePartition(KEY, profile=profile)
        self._leader = Leader(self._partition, self._persister, reset_offset=self._look_up)
        self._lookup = NO_TABLE
        self._now_ms = 0
        self._state = NOTHING_YET

    def perform(self, commands: Iterable[requests.Command]) -> Step:
        """Carry out *commands*, each of whose writes is answered before the next one."""
        first = len(self._persister.requests)
        for command in commands:
            self._PERFORMERS[type(command)](self, command)
        writes = (each for each in self._persister.requests[first:] if isinstance(each, WriteStateParameters))
        step = Step(
            writes=tuple(entry for write in writes for entry in write.entries()),
            before=self._state,
            snapshot=self._partition.snapshot(),
        )
        self._state = step.state
        return step

    def _look_up(self, reset: AutoOffsetReset) -> int:
        return integer(self._lookup.of(reset.strategy).meaning, "lookup", 0)

    # ---- commands

    def _initialize(self, command: requests.Initialize) -> None:
        self._lookup = command.lookup
        self._leader.start(now_ms=self._now_ms).result(timeout=0)

    def _acquire(self, command: requests.Acquire) -> None:
        self._leader.acquire(
            command.member,
            command.fetched,
            now_ms=self._now_ms,
            max_records=command.max_records,
            batch_size=command.batch_size,
            mode=command.mode,
        )

    def _acknowledge(self, command: requests.Acknowledge) -> None:
        self._leader.acknowledge(command.member, command.batches, now_ms=self._now_ms).result(timeout=0)

    def _advance(self, command: requests.Advance) -> None:
        self._now_ms += command.ms
        self._leader.poll(now_ms=self._now_ms)

    _PERFORMERS: ClassVar[Mapping[type[requests.Command], Callable[[_Stage, Any], None]]] = MappingProxyType(
        {
            requests.Initialize: _initialize,
            requests.Acquire: _acquire,
            requests.Acknowledge: _acknowledge,
            requests.Advance: _advance,
        }
    )
    """What to do for each command that scenarios have."""
