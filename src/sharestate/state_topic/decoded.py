"""
Records of the state topic as JSON, in Kafka's names: what ``sharestate state decode --json`` prints.

Source:
    The messages CoordinatorRecordType, ShareSnapshotValue and ShareUpdateValue (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sharestate.coordinator import RecordType, ShareSnapshot, ShareUpdate, StateRecord
from sharestate.json_checks import Check, Field, integer, list_of, nullable, record, text
from sharestate.json_lines import Json
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import StateBatch

_BATCH: Final = MappingProxyType(
    {
        "firstOffset": "first_offset",
        "lastOffset": "last_offset",
        "deliveryState": "delivery_state",
        "deliveryCount": "delivery_count",
    }
)
"""The fields of a state batch here, by their names in Kafka."""

_UPDATE: Final = MappingProxyType(
    {
        "snapshotEpoch": "snapshot_epoch",
        "leaderEpoch": "leader_epoch",
        "startOffset": "start_offset",
        "stateBatches": "state_batches",
        "deliveryCompleteCount": "delivery_complete_count",
    }
)
"""The same of an update."""

_SNAPSHOT: Final = MappingProxyType(
    {
        "snapshotEpoch": "snapshot_epoch",
        "stateEpoch": "state_epoch",
        "leaderEpoch": "leader_epoch",
        "startOffset": "start_offset",
        "createTimestamp": "create_timestamp_ms",
        "writeTimestamp": "write_timestamp_ms",
        "stateBatches": "state_batches",
        "deliveryCompleteCount": "delivery_complete_count",
    }
)
"""The same of a snapshot, in Kafka's order."""


def decoded_form(record: StateRecord) -> dict[str, Any]:
    """Return *record* as JSON; fields that this release does not know are left out."""
    key, value, _ = record
    return {
        "type": int(record.record_type),
        "groupId": key.group_id,
        "topicId": key.topic_id,
        "partition": key.partition,
        "value": None if value is None else _decoded_value(value),
    }


def _decoded_value(value: ShareSnapshot | ShareUpdate) -> dict[str, Any]:
    names = _SNAPSHOT if isinstance(value, ShareSnapshot) else _UPDATE
    decoded = {kafkas: getattr(value, ours) for kafkas, ours in names.items()}
    decoded["stateBatches"] = [dict(zip(_BATCH, batch, strict=True)) for batch in value.state_batches]
    return decoded


def from_decoded_form(value: Json) -> StateRecord:
    """
    Return the record that ``decoded_form`` has made *value* of.

    Raises:
        MalformedInputError: It is not one; ``field`` is the path of the wrong part.
    """
    checked: StateRecord = _record(value, "")
    return checked


def _named(names: Mapping[str, str], make: Any, **checks: Check[Any]) -> Check[Any]:  # noqa: ANN401 - a class
    """Return the check for an object with the fields *names*, integers unless *checks* says otherwise."""
    return record(
        {name: Field(checks.get(name, integer())) for name in names},
        lambda **fields: make(**{names[name]: each for name, each in fields.items()}),
        extensible=True,
    )


_batches: Final = list_of(_named(_BATCH, StateBatch))
_values: Final[Mapping[int, Check[Any]]] = MappingProxyType(
    {
        RecordType.SHARE_SNAPSHOT: _named(_SNAPSHOT, ShareSnapshot, stateBatches=_batches),
        RecordType.SHARE_UPDATE: _named(_UPDATE, ShareUpdate, stateBatches=_batches),
    }
)


def _made(type: int, groupId: str, topicId: str, partition: int, value: Json) -> StateRecord:  # noqa: A002, N803 - Kafka's names
    key = SharePartitionKey(group_id=groupId, topic_id=topicId, partition=partition)
    record_type = RecordType(type)
    return StateRecord(key, None if value is None else _values[record_type](value, "value"), record_type)


_record: Final = record(
    {
        "type": Field(integer(0, max(RecordType))),
        "groupId": Field(text),
        "topicId": Field(text),
        "partition": Field(integer(0, 2**31 - 1)),
        "value": Field(nullable(lambda value, _: value)),
    },
    _made,
    extensible=True,
)
