"""What the outside may see of the in-flight batches."""

import pytest

from sharestate import KAFKA_4_2, RecordState, ShareConfig, SharePartition

from .scenes import KEY, LEADER_EPOCH, Scene


def test_a_whole_batch_has_one_run() -> None:
    """All records of a batch that was never split share what is true of them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    (batch,) = scene.partition.batches()
    (run,) = batch.runs

    assert (batch.first_offset, batch.last_offset, batch.is_split) == (0, 4, False)
    assert (run.first_offset, run.last_offset) == (0, 4)
    assert (run.cell.state, run.cell.delivery_count, run.cell.member_id) == (RecordState.ACQUIRED, 1, "m1")
    assert run.cell.lock_deadline_ms == 10_000
    assert (run.cell.is_ongoing, run.cell.has_fired, run.cell.is_terminal) == (False, False, False)


def test_a_split_batch_has_its_runs_in_order() -> None:
    """The runs of a batch cover it without gaps."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "1-2:3")
    (batch,) = scene.partition.batches()

    assert batch.is_split
    assert [(run.first_offset, run.last_offset, run.cell.state.name) for run in batch.runs] == [
        (0, 0, "ACQUIRED"),
        (1, 2, "ARCHIVED"),
        (3, 4, "ACQUIRED"),
    ]


def test_neighbours_that_look_alike_are_one_run() -> None:
    """Records that were locked one after the other and then renewed together can't be told apart any more."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.now_ms = 5
    scene.acknowledge("m1", "0-4:4")
    (batch,) = scene.partition.batches()
    assert [(run.first_offset, run.cell.lock_deadline_ms) for run in batch.runs] == [(0, 10_005), (5, 10_000)]

    scene.now_ms = 7
    scene.acknowledge("m1", "0-9:4")
    (batch,) = scene.partition.batches()
    assert [(run[:2], run.cell.lock_deadline_ms) for run in batch.runs] == [((0, 9), 10_007)]


def test_a_view_does_not_follow() -> None:
    """A view stays as it was when it was asked for."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    (before,) = scene.partition.batches()
    scene.acknowledge("m1", "0-4:2")

    assert before.runs[0].cell.state is RecordState.ACQUIRED


def test_what_is_true_of_a_record_reads_like_the_spec() -> None:
    """A cell shows state, count and owner, and a star for a write in flight."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:1")

    assert [repr(run.cell) for batch in scene.partition.batches() for run in batch.runs] == [
        "ACKNOWLEDGED/1/-*",
        "ACQUIRED/1/m1",
    ]


def test_what_it_was_made_with_can_be_read() -> None:
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
def test_nothing_can_be_changed_from_outside(name: str) -> None:
    """What can be seen of a share partition is read only."""
    partition = Scene().load().partition

    with pytest.raises(AttributeError):
        setattr(partition, name, None)
