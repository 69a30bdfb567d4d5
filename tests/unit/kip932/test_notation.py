"""The KIP's notation for what is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sharestate import MalformedInputError, StateBatch
from sharestate.json_lines import Json
from sharestate.kip932.notation import KipRecord, read_control_record, read_keyed_record, read_request, state_records
from sharestate.persister import PartitionStateBatchData

REQUEST = """{
  "GroupId": "G1",
  "TopicId": topic_uuid,
  "Partition": 0,
  "StartOffset": -1,
  "StateBatches": [
    {
      "BaseOffset": 110,
      "LastOffset": 110,
      "State": 2 (Acknowledged),       "DeliveryCount": 1 (whatever it was when it was acknowledged)
    }
  ]
}"""


def test_a_request_is_read_without_its_remarks() -> None:
    """The number of a state stays, its name in brackets goes, and the topic's name becomes a string."""
    assert read_request(REQUEST) == {
        "GroupId": "G1",
        "TopicId": "topic_uuid",
        "Partition": 0,
        "StartOffset": -1,
        "StateBatches": [{"BaseOffset": 110, "LastOffset": 110, "State": 2, "DeliveryCount": 1}],
    }


def test_a_control_record_is_read_with_its_type() -> None:
    """The heading names the type; where it stands in the log is passed over; without a heading it is a checkpoint."""
    assert read_control_record('SHARE_DELTA offset 131:\n{"States": []}') == {"SHARE_DELTA": {"States": []}}
    assert read_control_record('SHARE_CHECKPOINT:\n{"States": []}') == {"SHARE_CHECKPOINT": {"States": []}}
    assert read_control_record('{"States": []}') == {"SHARE_CHECKPOINT": {"States": []}}


def test_a_record_is_read_with_its_key() -> None:
    """The type, the key and the value are taken apart."""
    text = 'ShareDelta: key: "groupId:topicId:partition:deltaIndex=1", value: "checkpointEpoch=2"'

    assert read_keyed_record(text) == {
        "ShareDelta": {"key": "groupId:topicId:partition:deltaIndex=1", "value": "checkpointEpoch=2"}
    }


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_request, ""),
        (read_request, "[]"),
        (read_request, '{"TopicId": another_uuid}'),
        (read_request, '{"State": 0 (Available}'),
        (read_control_record, 'SHARE_SNAPSHOT offset 131:\n{"States": []}'),
        (read_control_record, "SHARE_DELTA offset 131:"),
        (read_keyed_record, 'ShareDelta: key: "groupId:topicId:partition"'),
        (read_keyed_record, 'ShareUpdate: key: "groupId:topicId:partition", value: "checkpointEpoch=2"'),
    ],
)
def test_a_text_outside_the_notation_is_refused(read: Callable[[str, str], Json], text: str) -> None:
    """A text that cannot be read raises, and says where it stood."""
    with pytest.raises(MalformedInputError) as caught:
        read(text, "rows[3].written[0]")

    assert caught.value.field == "rows[3].written[0]"


# ---- checkpoint epochs and delta indices of record keys

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
    assert KipRecord(delta_index=None, checkpoint_epoch=2).to_json() == {
        "ShareCheckpoint": {"key": "groupId:topicId:partition", "value": "checkpointEpoch=2"}
    }
    assert KipRecord(delta_index=7, checkpoint_epoch=2).to_json() == {
        "ShareDelta": {"key": "groupId:topicId:partition:deltaIndex=7", "value": "checkpointEpoch=2"}
    }
