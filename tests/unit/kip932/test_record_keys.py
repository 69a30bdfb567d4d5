"""Checkpoint epochs and delta indices of the KIP's records."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError, StateBatch
from sharestate.kip932.record_keys import StateRecord, state_records
from sharestate.persister import PartitionStateBatchData

MOVE = PartitionStateBatchData(partition=0, start_offset=110)
CHANGE = PartitionStateBatchData(partition=0, state_batches=[StateBatch(110, 110, 0, 1)])


def keys(*writes: PartitionStateBatchData, **settings: int) -> list[tuple[int | None, int]]:
    """Return delta index and checkpoint epoch of each record."""
    return [(each.delta_index, each.checkpoint_epoch) for each in state_records(writes, **settings)]


def test_the_first_checkpoint_has_epoch_0_and_each_later_one_more() -> None:
    """The epoch grows with each checkpoint, which has no delta index."""
    assert keys(MOVE, MOVE, MOVE) == [(None, 0), (None, 1), (None, 2)]


def test_deltas_have_the_epoch_of_the_last_checkpoint() -> None:
    """Delta indices begin at 0 and go on across checkpoints."""
    assert keys(MOVE, CHANGE, CHANGE, MOVE, CHANGE) == [(None, 0), (0, 0), (1, 0), (None, 1), (2, 1)]


def test_a_delta_needs_a_checkpoint() -> None:
    """The first record is a checkpoint, whatever is written."""
    assert keys(CHANGE, CHANGE) == [(None, 0), (0, 0)]


def test_delta_indices_roll_over() -> None:
    """After 255, or after the last of fewer indices, the next one is 0."""
    assert keys(MOVE, *[CHANGE] * 258)[-3:] == [(255, 0), (0, 0), (1, 0)]
    assert keys(MOVE, *[CHANGE] * 4, delta_indices=3) == [(None, 0), (0, 0), (1, 0), (2, 0), (0, 0)]


@pytest.mark.parametrize("delta_indices", [0, 257])
def test_a_delta_index_has_eight_bits(delta_indices: int) -> None:
    """There is at least one index, and at most 256."""
    with pytest.raises(MalformedInputError) as caught:
        keys(MOVE, delta_indices=delta_indices)

    assert caught.value.field == "delta_indices"


def test_records_are_told_as_the_kip_writes_them() -> None:
    """A checkpoint's key ends with the partition, a delta's with its index."""
    assert StateRecord(delta_index=None, checkpoint_epoch=2).to_json() == {
        "ShareCheckpoint": {"key": "groupId:topicId:partition", "value": "checkpointEpoch=2"}
    }
    assert StateRecord(delta_index=7, checkpoint_epoch=2).to_json() == {
        "ShareDelta": {"key": "groupId:topicId:partition:deltaIndex=7", "value": "checkpointEpoch=2"}
    }
