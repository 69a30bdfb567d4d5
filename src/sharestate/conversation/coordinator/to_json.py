"""Records, stored states and answers of a share coordinator as the protocol's JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sharestate.conversation.coordinator.grammar import RECORD_TYPES
from sharestate.conversation.to_json import error_json
from sharestate.coordinator.records import RecordType, ShareSnapshot, ShareUpdate, StateRecord
from sharestate.coordinator.shard import Outcome
from sharestate.coordinator.stored_state import StoredState
from sharestate.error_codes import ErrorCode
from sharestate.errors import ShareStateError
from sharestate.json_lines import Json
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

_NAMES: Final[Mapping[RecordType, str]] = MappingProxyType({type_: name for name, type_ in RECORD_TYPES.items()})

# ---- records


def base64(data: bytes | None) -> str | None:
    """Return bytes as text; None stays None."""
    return None if data is None else b64encode(data).decode()


def raw_json(key: bytes, value: bytes | None) -> Json:
    """Return a record as its bytes."""
    return {"key": base64(key), "value": base64(value)}


def record_json(record: StateRecord) -> Json:
    """Return a record decoded."""
    key, value, _ = record
    return {
        "type": _NAMES[record.record_type],
        "group": key.group_id,
        "topic": key.topic_id,
        "partition": key.partition,
        "data": None if value is None else _data_json(value),
    }


def _data_json(value: ShareSnapshot | ShareUpdate) -> Json:
    if isinstance(value, ShareSnapshot):
        return _state_json(value)
    return {
        "snapshot_epoch": value.snapshot_epoch,
        "leader_epoch": value.leader_epoch,
        "start_offset": value.start_offset,
        "complete": value.delivery_complete_count,
        "batches": list(map(list, value.state_batches)),
    }


def _state_json(state: ShareSnapshot | StoredState) -> Json:
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


# ---- states


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
        "data": _state_json(state),
    }


def java_order(key: SharePartitionKey) -> bytes:
    """Return what sorts keys as Kafka's driver does, which compares texts of Java."""
    return f"{key.group_id}\0{key.topic_id}\0{key.partition:012}".encode("utf-16-be")


# ---- answers


def entry_json(op: str, topic: str | None, partition: int, outcome: Outcome) -> Json:
    """Return the answer to an entry of a request."""
    answer: Json = {
        "topic": topic,
        "partition": partition,
        "error": outcome.error_code.name,
        "message": outcome.error_message,
    }
    return answer if outcome.error_code else answer | _found_json(op, outcome.state)


def _found_json(op: str, state: StoredState | None) -> Json:
    """Return what a read or a summary has found."""
    if op == "read" and state is not None:
        return {
            "state_epoch": state.state_epoch,
            "start_offset": state.start_offset,
            "batches": list(map(list, state.state_batches)),
        }
    if op == "summary":
        return {
            "state_epoch": 0 if state is None else state.state_epoch,
            "leader_epoch": 0 if state is None else state.leader_epoch,
            "start_offset": UNINITIALIZED_START_OFFSET if state is None else state.start_offset,
            "complete": UNINITIALIZED_COUNT if state is None else state.delivery_complete_count,
        }
    return {}


def shard_json(index: int, code: ErrorCode = ErrorCode.NONE) -> Json:
    """Return the answer of a shard."""
    return {"shard": index, "error": code.name}


def raised_json(error: ShareStateError) -> Json:
    """Return the result of a request that raises *error*; other implementations have to agree on its code only."""
    return {"raised": error_json(error)}
