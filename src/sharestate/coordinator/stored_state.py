"""
The stored state of a share partition, and what a record of the state topic makes of it.

Source:
    ShareCoordinatorShard.replay, ShareGroupOffset (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.coordinator.records import ShareSnapshot, ShareUpdate
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

if TYPE_CHECKING:
    from sharestate.coordinator.combiner import Combine
    from sharestate.values.requests import StateBatch

NO_EPOCH: Final = -1
"""The epoch of a request that has none, and in an update the one that is known."""


@frozen(kw_only=True)
class StoredState:
    """
    The stored state of one share partition.

    Two pairs of epochs, as in Kafka: the stored ones, which are read, and the highest ones, by which requests are
    fenced. A share partition that is initialized again starts with leader epoch 0, and old leaders stay fenced as long
    as the coordinator runs.

    Attributes:
        state_epoch: The epoch with which it was initialized last.
        start_offset: The SPSO; -1 if there is none yet.
        highest_state_epoch: The highest epoch with which it was ever initialized; None if no snapshot has said it.
        leader_epoch: The epoch of the last leader that has read it with a higher one than those before.
        highest_leader_epoch: The highest epoch with which it was ever read.
        delivery_complete_count: The number of terminal records at or above the SPSO; -1 if none was written. [records]
        state_batches: The ranges that were in flight: ascending, without overlap.
        snapshot_epoch: The number of snapshots before the last one.
        create_timestamp_ms: The time of the last snapshot that was due to a change. [ms since 1970]
        write_timestamp_ms: The time of the last snapshot. [ms since 1970]
        update_count: The number of updates since the count was reset; None if there was none. [records]
        snapshot_offset: The offset of the last snapshot in the state topic; None if there was none.
    """

    state_epoch: int
    start_offset: int
    highest_state_epoch: int | None
    leader_epoch: int = 0
    highest_leader_epoch: int = 0
    delivery_complete_count: int = UNINITIALIZED_COUNT
    state_batches: tuple[StateBatch, ...] = ()
    snapshot_epoch: int = 0
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0
    update_count: int | None = None
    snapshot_offset: int | None = None

    @property
    def is_cold(self) -> bool:
        """True if the last snapshot was due to its age, not to a change."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    def snapshot(self) -> ShareSnapshot:
        """Return the state as a record's value."""
        return ShareSnapshot(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            create_timestamp_ms=self.create_timestamp_ms,
            write_timestamp_ms=self.write_timestamp_ms,
            state_batches=self.state_batches,
            delivery_complete_count=self.delivery_complete_count,
        )


def after_snapshot(
    state: StoredState | None, value: ShareSnapshot, offset: int, updates_per_snapshot: int
) -> StoredState:
    """
    Return the state after a snapshot: all is replaced but the highest epochs.

    Args:
        state: The state before; None if there was none.
        value: The snapshot.
        offset: Its offset in the state topic.
        updates_per_snapshot: The count of updates at which it is reset.
    """
    highest_leader_epoch, highest_state_epoch, update_count = value.leader_epoch, value.state_epoch, None
    if state is not None:
        highest_leader_epoch = max(highest_leader_epoch, state.highest_leader_epoch)
        if state.highest_state_epoch is not None:
            highest_state_epoch = max(highest_state_epoch, state.highest_state_epoch)
        update_count = state.update_count
        if update_count is not None and update_count >= updates_per_snapshot:
            update_count = 0
    return StoredState(
        state_epoch=value.state_epoch,
        start_offset=value.start_offset,
        highest_state_epoch=highest_state_epoch,
        leader_epoch=value.leader_epoch,
        highest_leader_epoch=highest_leader_epoch,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=value.state_batches,
        snapshot_epoch=value.snapshot_epoch,
        create_timestamp_ms=value.create_timestamp_ms,
        write_timestamp_ms=value.write_timestamp_ms,
        update_count=update_count,
        snapshot_offset=offset,
    )


def after_update(state: StoredState | None, value: ShareUpdate, combine: Combine) -> StoredState:
    """
    Return the state after an update; without a state before, whose snapshot was deleted, it is all that is known.

    Raises:
        MalformedInputError: A state batch is reversed.
    """
    if state is None:
        return StoredState(
            state_epoch=0,
            start_offset=value.start_offset,
            highest_state_epoch=None,
            leader_epoch=value.leader_epoch,
            highest_leader_epoch=value.leader_epoch,
            delivery_complete_count=value.delivery_complete_count,
            state_batches=value.state_batches,
            snapshot_epoch=value.snapshot_epoch,
            update_count=1,
        )
    is_moved = value.start_offset != UNINITIALIZED_START_OFFSET
    start_offset = value.start_offset if is_moved else state.start_offset
    return StoredState(  # `evolve` would take three times as long
        state_epoch=state.state_epoch,
        start_offset=start_offset,
        highest_state_epoch=state.highest_state_epoch,
        leader_epoch=state.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch,
        highest_leader_epoch=max(value.leader_epoch, state.highest_leader_epoch),
        delivery_complete_count=value.delivery_complete_count,
        state_batches=combine(state.state_batches, value.state_batches, start_offset),
        snapshot_epoch=state.snapshot_epoch,
        create_timestamp_ms=state.create_timestamp_ms,
        write_timestamp_ms=state.write_timestamp_ms,
        update_count=1 if state.update_count is None else state.update_count + 1,
        snapshot_offset=state.snapshot_offset,
    )
