"""What of the state topic is redundant, and what is written again; the job is tested with ``ShareCoordinator``."""

from __future__ import annotations

from sharestate import StateBatch
from sharestate.coordinator import Outcome, ShareSnapshot
from tests.support.logged_shard import KEY, OTHER, Coordinator, led

# ---- snapshots of what is cold


def test_an_old_snapshot_is_written_again() -> None:
    """The state is written as it is, with a new epoch and time; the time of its creation stays."""
    coordinator = led()
    coordinator.write((10, 19, 2, 1))
    assert coordinator.shard.snapshot_cold(now_ms=1099).records == ()
    (record,) = coordinator.log(coordinator.shard.snapshot_cold(now_ms=1100)).records

    assert record.value == ShareSnapshot(
        snapshot_epoch=1,
        state_epoch=1,
        leader_epoch=5,
        start_offset=10,
        create_timestamp_ms=1000,
        write_timestamp_ms=1100,
        state_batches=(StateBatch(10, 19, 2, 1),),
    )
    assert coordinator.state.update_count == 2


def test_nothing_is_written_when_all_is_cold() -> None:
    """Cold snapshots are not repeated until some share partition is written to by its leader."""
    coordinator = led()
    coordinator.log(coordinator.shard.snapshot_cold(now_ms=2000))
    assert coordinator.shard.snapshot_cold(now_ms=9000).records == ()

    coordinator.begin(OTHER)
    again = coordinator.shard.snapshot_cold(now_ms=9000).records
    assert [record.key for record in again] == [KEY, OTHER]


def test_an_empty_shard_has_nothing_cold() -> None:
    """Without share partitions nothing is written."""
    assert Coordinator().shard.snapshot_cold(now_ms=10**9) == Outcome()


# ---- redundant records


def test_records_before_the_oldest_snapshot_are_redundant() -> None:
    """Updates keep nothing, a share partition's newest snapshot does, and offset 0 is never reported."""
    coordinator = Coordinator(updates_per_snapshot=1)
    assert coordinator.shard.redundant_offset() is None
    coordinator.begin()
    coordinator.begin(OTHER)
    assert coordinator.shard.redundant_offset() is None
    coordinator.write((10, 10, 2, 1))
    coordinator.write((11, 11, 2, 1))
    assert coordinator.shard.redundant_offset() == 1
    coordinator.begin(OTHER)
    assert coordinator.shard.redundant_offset() == 3


def test_a_tombstone_keeps_its_own_offset_until_the_next_snapshot() -> None:
    """As long as a tombstone is the last of all snapshots and tombstones, records from it on are needed."""
    coordinator = Coordinator()
    coordinator.begin()
    coordinator.begin(OTHER)
    coordinator.log(coordinator.shard.delete(KEY))
    assert coordinator.shard.redundant_offset() == 1
    coordinator.log(coordinator.shard.delete(OTHER))
    assert coordinator.shard.redundant_offset() == 3
    coordinator.begin()
    assert coordinator.shard.redundant_offset() == 4


def test_the_least_needed_offset_may_be_zero() -> None:
    """It is that of the oldest last snapshot; the first record of a log is needed, too, though nothing is before it."""
    coordinator = Coordinator(updates_per_snapshot=1)
    assert coordinator.shard.least_needed_offset() is None
    coordinator.begin()
    coordinator.begin(OTHER)
    assert coordinator.shard.least_needed_offset() == 0
    coordinator.write((10, 10, 2, 1))
    coordinator.write((11, 11, 2, 1))
    assert coordinator.shard.least_needed_offset() == 1
