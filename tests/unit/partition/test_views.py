"""What the outside may see of the in-flight batches."""

import pytest

from sharestate import KAFKA_4_2, RecordState, ShareConfig, SharePartition
from tests.support.scenes import KEY, LEADER_EPOCH, Scene


def test_a_whole_batch_has_one_run() -> None:
    """All records of a batch that was never split share what is true of them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    (batch,) = scene.partition.batches()
    (run,) = batch.runs

    assert (batch.first_offset, batch.last_offset, batch.is_split) == (0, 4, False)
    assert (run.first_offset, run.last_offset) == (0, 4)
    assert (run.state, run.delivery_count, run.member_id) == (RecordState.ACQUIRED, 1, "m1")
    assert run.lock_deadline_ms == 10_000
    assert (run.has_pending_write, run.lock_expired, run.is_archived_meanwhile) == (False, False, False)


def test_a_split_batch_has_its_runs_in_order() -> None:
    """The runs of a batch cover it without gaps."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "1-2:reject")
    (batch,) = scene.partition.batches()

    assert batch.is_split
    assert [(run.first_offset, run.last_offset, run.state.name) for run in batch.runs] == [
        (0, 0, "ACQUIRED"),
        (1, 2, "ARCHIVED"),
        (3, 4, "ACQUIRED"),
    ]


def test_neighbors_that_look_alike_are_one_run() -> None:
    """Records that were locked one after the other and then renewed together cannot be distinguished any more."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.now_ms = 5
    scene.acknowledge("m1", "0-4:renew")
    (batch,) = scene.partition.batches()
    assert [(run.first_offset, run.lock_deadline_ms) for run in batch.runs] == [(0, 10_005), (5, 10_000)]

    scene.now_ms = 7
    scene.acknowledge("m1", "0-9:renew")
    (batch,) = scene.partition.batches()
    assert [(run[:2], run.lock_deadline_ms) for run in batch.runs] == [((0, 9), 10_007)]


def test_a_view_does_not_follow() -> None:
    """A view stays as it was when it was asked for."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    (before,) = scene.partition.batches()
    scene.acknowledge("m1", "0-4:release")

    assert before.runs[0].state is RecordState.ACQUIRED


def test_a_run_says_whether_a_write_is_pending() -> None:
    """A pending write, a lock that has expired meanwhile and an archival meanwhile show in the view."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9 p1]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept", "5-9:release")
    scene.wait(10_001)

    runs = [run for batch in scene.partition.batches() for run in batch.runs]
    assert [(run.has_pending_write, run.lock_expired) for run in runs] == [(True, True), (True, True)]


@pytest.mark.parametrize("field", ["state", "delivery_count", "member_id"])
def test_a_view_is_a_value(field: str) -> None:
    """Nothing can be changed through a view: neither this share partition nor one that is made afterwards."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    run = scene.partition.batches()[0].runs[0]

    with pytest.raises(AttributeError):
        setattr(run, field, None)
    assert all(isinstance(value, str | int | None) for value in run)


def test_the_arguments_of_a_share_partition_can_be_read() -> None:
    """Key, epoch, profile and settings are those given at the beginning."""
    config = ShareConfig(max_record_locks=7)
    partition = SharePartition(KEY, leader_epoch=LEADER_EPOCH, profile=KAFKA_4_2, config=config)

    assert (partition.key, partition.leader_epoch, partition.profile, partition.config) == (
        KEY,
        LEADER_EPOCH,
        KAFKA_4_2,
        config,
    )


@pytest.mark.parametrize("name", ["start_offset", "lifecycle", "config", "find_next", "gap_window"])
def test_views_are_read_only(name: str) -> None:
    """What can be seen of a share partition is read only."""
    partition = Scene().load().partition

    with pytest.raises(AttributeError):
        setattr(partition, name, None)
