"""What is true of share coordinators over a log, whatever they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    COORDINATOR_PROFILES,
    CoordinatorConfig,
    CoordinatorProfile,
    CoordinatorShard,
    MemoryLog,
    Outcome,
    ShareCoordinator,
    StoredState,
    combine_to_fewest,
)

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
CONFIG = CoordinatorConfig(updates_per_snapshot=2, cold_snapshot_interval_ms=50)

Request = Callable[[CoordinatorShard, int], Outcome]
"""A request to a shard, and the time."""

every_release = pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=lambda profile: profile.name)


def key(partition: int) -> SharePartitionKey:
    """Return one of a few share partitions."""
    return SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=partition)


def initialization(partition: int, state_epoch: int, start_offset: int) -> Request:
    """Return the request to initialize a share partition."""
    return lambda shard, now_ms: shard.initialize(
        key(partition), state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms
    )


def reading(partition: int, leader_epoch: int) -> Request:
    """Return the request to read a share partition."""
    return lambda shard, now_ms: shard.read(key(partition), leader_epoch=leader_epoch, now_ms=now_ms)


def writing(partition: int, epoch: int, start_offset: int, complete: int, batches: list[StateBatch]) -> Request:
    """Return the request to write to a share partition."""
    return lambda shard, now_ms: shard.write(
        key(partition),
        state_epoch=epoch,
        leader_epoch=epoch,
        start_offset=start_offset,
        state_batches=batches,
        delivery_complete_count=complete,
        now_ms=now_ms,
    )


def deletion(partition: int) -> Request:
    """Return the request to delete a share partition."""
    return lambda shard, _: shard.delete(key(partition))


partitions = st.integers(0, 2)
offsets = st.integers(-1, 20)
batches = st.lists(
    st.builds(
        lambda first, more, state, count: StateBatch(first, first + more, state, count),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=3,
)
requests = st.one_of(
    st.builds(initialization, partitions, st.integers(0, 2), offsets),
    st.builds(reading, partitions, st.integers(0, 3)),
    st.builds(writing, partitions, st.integers(2, 4), offsets, offsets, batches),
    st.builds(deletion, partitions),
)
steps = st.lists(st.tuples(st.integers(0, 40), st.one_of(requests, requests, requests, st.none())), max_size=25)
"""Milliseconds that pass, and then a request, or None for a deletion of redundant records."""


def all_of(coordinator: ShareCoordinator) -> dict[SharePartitionKey, StoredState]:
    """Return all that is stored."""
    return dict(coordinator.states)


def lasting(states: Mapping[SharePartitionKey, StoredState]) -> dict[SharePartitionKey, StoredState]:
    """Return *states* without the count of updates, of which some may have been deleted."""
    return {key: evolve(state, update_count=0) for key, state in states.items()}


def run(coordinator: ShareCoordinator, request: Request | None, now_ms: int) -> list[Outcome]:
    """Run a request, or delete what is redundant."""
    if request is None:
        coordinator.prune(now_ms=now_ms)
        return []
    return coordinator.run(lambda shard: request(shard, now_ms))


@every_release
@given(steps=steps)
def test_a_successor_finds_what_was_stored(
    profile: CoordinatorProfile, steps: list[tuple[int, Request | None]]
) -> None:
    """A log has the whole state at any time, the epochs that fence included."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, profile, CONFIG)
    now_ms = 0
    for passed, request in steps:
        now_ms += passed
        run(coordinator, request, now_ms)
        successor = ShareCoordinator(log, profile, CONFIG)
        if log.offsets().start == 0:
            assert all_of(successor) == all_of(coordinator)
        assert lasting(all_of(successor)) == lasting(all_of(coordinator))


@every_release
@given(steps=steps, turns=st.lists(st.booleans(), min_size=25, max_size=25))
def test_coordinators_with_one_log_are_one(
    profile: CoordinatorProfile, steps: list[tuple[int, Request | None]], turns: list[bool]
) -> None:
    """Two that have the requests in turns answer what a single one does, and store the same."""
    alone = ShareCoordinator(MemoryLog(), profile, CONFIG)
    log = MemoryLog()
    both = [ShareCoordinator(log, profile, CONFIG), ShareCoordinator(log, profile, CONFIG)]
    now_ms = 0
    for (passed, request), turn in zip(steps, turns, strict=False):
        now_ms += passed
        ours, theirs = run(both[turn], request, now_ms), run(alone, request, now_ms)
        assert [outcome.error_code for outcome in ours] == [outcome.error_code for outcome in theirs]
        assert said(both[turn]) == said(alone)


def said(coordinator: ShareCoordinator) -> dict[SharePartitionKey, tuple[object, ...]]:
    """Return what requests show of the states."""
    return {
        key: (
            state.start_offset,
            state.state_epoch,
            state.leader_epoch,
            state.highest_leader_epoch,
            state.delivery_complete_count,
            combine_to_fewest(state.state_batches, (), -1),
        )
        for key, state in coordinator.states.items()
    }
