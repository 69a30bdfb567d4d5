"""The KIP's notation for what is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sharestate import MalformedInputError
from sharestate.json_lines import Json
from sharestate.kip932.notation import read_control_record, read_keyed_record, read_request

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
def test_what_is_not_in_the_notation_is_refused(read: Callable[[str, str], Json], text: str) -> None:
    """A text that cannot be read raises, and says where it stood."""
    with pytest.raises(MalformedInputError) as caught:
        read(text, "rows[3].written[0]")

    assert caught.value.field == "rows[3].written[0]"
