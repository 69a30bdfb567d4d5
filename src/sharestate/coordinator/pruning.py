"""
Which records of the state topic are redundant, and what is written again before they are deleted.

A record is redundant once the last snapshot of every share partition comes after it, and the last snapshot or
tombstone of all: who loads the log needs none of those before. One share partition without changes would keep all that
comes after its snapshot, so states with old snapshots are written again. The prune job, ``ShareCoordinator.prune``,
takes three steps in one transaction: it writes ``cold_snapshots`` again, asks for the ``redundant_offset``, and, if
the log begins before that, writes ``fencing_updates`` and has the log delete what is redundant.

Source:
    ShareCoordinatorOffsetsManager; ShareCoordinatorShard.snapshotColdPartitions;
    ShareCoordinatorService.performRecordPruning (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from sharestate.coordinator.records import ShareUpdate, StateRecord
from sharestate.coordinator.stored_state import StoredState
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_START_OFFSET


def least_needed_offset(states: Iterable[StoredState], last_snapshot: int | None) -> int | None:
    """
    Return the least offset of a share partition's last snapshot, or of the last snapshot or tombstone of all.

    Args:
        states: The stored states.
        last_snapshot: The offset of the last snapshot or tombstone of all; None if there was none.

    Complexity:
        O(n) in the share partitions.
    """
    if last_snapshot is None:
        return None
    offsets = (state.snapshot_offset for state in states if state.snapshot_offset is not None)
    return min(last_snapshot, min(offsets, default=last_snapshot))


def redundant_offset(states: Iterable[StoredState], last_snapshot: int | None) -> int | None:
    """Return the offset below which all records are redundant; None if there are none; 0 is None too, as in Kafka."""
    return least_needed_offset(states, last_snapshot) or None


def cold_snapshots(
    states: Mapping[SharePartitionKey, StoredState], interval_ms: int, *, now_ms: int
) -> tuple[StateRecord, ...]:
    """
    Return the states whose snapshots are at least *interval_ms* old, to be written again.

    There are none if no share partition has had a snapshot because of a change since it was written so.
    """
    if all(state.is_cold for state in states.values()):
        return ()
    return tuple(
        StateRecord(key, evolve(state.snapshot(), snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms))
        for key, state in states.items()
        if now_ms - state.write_timestamp_ms >= interval_ms
    )


def fencing_updates(states: Mapping[SharePartitionKey, StoredState]) -> tuple[StateRecord, ...]:
    """
    Return updates with the highest leader epochs, which only records to be deleted may have.

    An initialization has stored leader epoch 0, and the leaders before it stay fenced. Kafka forgets that with the
    records.
    """
    updates = {
        key: ShareUpdate(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=state.highest_leader_epoch,
            start_offset=UNINITIALIZED_START_OFFSET,
            delivery_complete_count=state.delivery_complete_count,
        )
        for key, state in states.items()
        if state.leader_epoch < state.highest_leader_epoch
    }
    return tuple(map(StateRecord, updates, updates.values()))
