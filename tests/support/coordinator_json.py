"""Records, states and answers of the share coordinator as the JSON of its line protocol."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    Outcome,
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    StoredState,
    decode_record,
    encode_record,
)

Json = Any

TYPES: Final = {"snapshot": RecordType.SHARE_SNAPSHOT, "update": RecordType.SHARE_UPDATE}
NAMES: Final = {type_: name for name, type_ in TYPES.items()}


def batches(rows: Iterable[Sequence[int]]) -> tuple[StateBatch, ...]:
    """Return rows as state batches."""
    return tuple(StateBatch(*row) for row in rows)


def base64(data: bytes | None) -> str | None:
    """Return bytes as text."""
    return None if data is None else b64encode(data).decode()


def raw(record: StateRecord) -> Json:
    """Return the bytes of a record."""
    key, value = encode_record(record)
    return {"key": base64(key), "value": base64(value)}


def record_bytes(row: Mapping[str, Json]) -> tuple[bytes, bytes | None]:
    """Return the bytes of a record that is given raw or decoded."""
    if "key" in row:
        value = row.get("value")
        return b64decode(row["key"]), None if value is None else b64decode(value)
    return encode_record(record(row))


def record(row: Mapping[str, Json]) -> StateRecord:
    """Return a record that is given raw or decoded."""
    if "key" in row:
        return decode_record(*record_bytes(row))
    key = SharePartitionKey(group_id=row["group"], topic_id=row["topic"], partition=row["partition"])
    data = row.get("data")
    if data is None:
        return StateRecord(key, None, TYPES[row["type"]])
    fields = {
        "snapshot_epoch": data.get("snapshot_epoch", 0),
        "leader_epoch": data.get("leader_epoch", 0),
        "start_offset": data.get("start_offset", 0),
        "delivery_complete_count": data.get("complete", -1),
        "state_batches": batches(data.get("batches", [])),
    }
    if row["type"] == "update":
        return StateRecord(key, ShareUpdate(**fields))
    snapshot = ShareSnapshot(
        **fields,
        state_epoch=data.get("state_epoch", 0),
        create_timestamp_ms=data.get("created", 0),
        write_timestamp_ms=data.get("written", 0),
    )
    return StateRecord(key, snapshot)


def decoded(row: StateRecord) -> Json:
    """Return a record decoded."""
    key, value, _ = row
    data = None
    if isinstance(value, ShareSnapshot):
        data = data_json(value)
    elif isinstance(value, ShareUpdate):
        data = {
            "snapshot_epoch": value.snapshot_epoch,
            "leader_epoch": value.leader_epoch,
            "start_offset": value.start_offset,
            "complete": value.delivery_complete_count,
            "batches": list(map(list, value.state_batches)),
        }
    return {
        "type": NAMES[row.record_type],
        "group": key.group_id,
        "topic": key.topic_id,
        "partition": key.partition,
        "data": data,
    }


def data_json(state: ShareSnapshot | StoredState) -> Json:
    """Return what a snapshot and a stored state have in common."""
    return {
        "snapshot_epoch": state.snapshot_epoch,
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "complete": state.delivery_complete_count,
        "created": state.create_timestamp_ms,
        "written": state.write_timestamp_ms,
        "batches": list(map(list, state.state_batches)),
    }


def key_json(key: SharePartitionKey, state: StoredState) -> Json:
    """Return all that is stored of a share partition."""
    return {
        "group": key.group_id,
        "topic": key.topic_id,
        "partition": key.partition,
        "leader_epoch": state.highest_leader_epoch,
        "state_epoch": state.highest_state_epoch,
        "updates": state.update_count,
        "snapshot_offset": state.snapshot_offset,
        "data": data_json(state),
    }


def result_json(op: str, topic: str | None, partition: int, outcome: Outcome) -> Json:
    """Return the answer to an entry of a request."""
    result: Json = {
        "topic": topic,
        "partition": partition,
        "error": outcome.error_code.name,
        "message": outcome.error_message,
    }
    if outcome.error_code:
        return result
    state = outcome.state
    if op == "read":
        assert state is not None
        result |= {
            "state_epoch": state.state_epoch,
            "start_offset": state.start_offset,
            "batches": list(map(list, state.state_batches)),
        }
    if op == "summary":
        result |= {
            "state_epoch": 0 if state is None else state.state_epoch,
            "leader_epoch": 0 if state is None else state.leader_epoch,
            "start_offset": -1 if state is None else state.start_offset,
            "complete": -1 if state is None else state.delivery_complete_count,
        }
    return result


def java_order(key: SharePartitionKey) -> tuple[bytes, bytes, int]:
    """Return what sorts keys as Java sorts their texts."""
    return key.group_id.encode("utf-16-be"), key.topic_id.encode("utf-16-be"), key.partition
