"""States, errors and effects as the protocol's JSON."""

from __future__ import annotations

from typing import Final

from sharestate.errors import ShareStateError
from sharestate.json_lines import Json
from sharestate.partition.cells import Cell
from sharestate.partition.partition import SharePartition
from sharestate.partition.views import BatchView
from sharestate.values.effects import Effects
from sharestate.values.keys import SharePartitionKey
from sharestate.values.requests import WriteShareGroupState

TOPIC_ID: Final = "AAAAAAAAAAEAAAAAAAAAAQ"
"""The topic of every share partition of a conversation; one message shows it, as Kafka's driver has it."""

KEY: Final = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
"""The key of every share partition of a conversation; messages show a placeholder instead."""


def error_json(error: ShareStateError) -> Json:
    """Return the protocol's ERR."""
    message = None if error.message is None else error.message.replace(str(KEY), "<key>")
    return {"error": error.code.name, "exception": error.exception, "message": message}


def status_json(effects: Effects) -> Json:
    """Return the status of the future that *effects* settled."""
    return "ok" if effects.error is None else error_json(effects.error)


def acquired_json(effects: Effects) -> Json:
    """Return the protocol's ACQ."""
    return {"count": effects.acquired_count, "acquired": [list(records) for records in effects.acquired]}


def write_request_json(write: WriteShareGroupState) -> Json:
    """Return the protocol's WRITE."""
    return {
        "write": write.number,
        "start_offset": write.start_offset,
        "delivery_complete_count": write.delivery_complete_count,
        "state_epoch": write.state_epoch,
        "leader_epoch": write.leader_epoch,
        "state_batches": [[first, last, int(state), count] for first, last, state, count in write.state_batches],
    }


def state_json(partition: SharePartition, fetch_lock: str | None) -> Json:
    """Return the protocol's state, of which *fetch_lock* is the part that the core does not have."""
    return {
        "lifecycle": partition.lifecycle.name,
        "start_offset": partition.start_offset,
        "end_offset": partition.end_offset,
        "delivery_complete_count": partition.delivery_complete_count,
        "state_epoch": partition.state_epoch,
        "batches": [_batch(batch) for batch in partition.batches()],
        "internal": {
            "find_next": partition.find_next,
            "gap": None if partition.gap_window is None else list(partition.gap_window),
            "fetch_lock": fetch_lock,
        },
    }


def _batch(batch: BatchView) -> Json:
    if batch.is_split:
        runs = [[first_offset, last_offset, _cell(cell)] for first_offset, last_offset, cell in batch.runs]
        return [batch.first_offset, batch.last_offset, runs, "per_offset"]
    return [batch.first_offset, batch.last_offset, _cell(batch.runs[0].cell)]


def _cell(cell: Cell) -> Json:
    flags = "o" * cell.is_ongoing + "x" * cell.has_fired + "t" * cell.is_terminal
    return [cell.state.name, cell.delivery_count, cell.member_id, cell.lock_deadline_ms, flags]
