"""States, errors and effects as the protocol's JSON."""

from __future__ import annotations

from typing import Final

from sharestate.errors import ShareStateError
from sharestate.json_lines import Json
from sharestate.partition.share_partition import SharePartition
from sharestate.partition.views import BatchView, RecordRun
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import WriteShareGroupState

TOPIC_ID: Final = "AAAAAAAAAAEAAAAAAAAAAQ"
"""The topic of every share partition of a conversation; one message shows it, as Kafka's driver has it."""

KEY: Final = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
"""The key of every share partition of a conversation; messages show a placeholder in its place."""


def error_json(error: ShareStateError) -> Json:
    """Return *error* as the protocol writes it."""
    message = None if error.message is None else error.message.replace(str(KEY), "<key>")
    return {"error": error.code.name, "exception": error.exception, "message": message}


def status_json(effects: Effects) -> Json:
    """Return the status of a future that *effects* complete."""
    return "ok" if effects.error is None else error_json(effects.error)


def acquired_json(effects: Effects) -> Json:
    """Return the result of ``acquire``."""
    return {"count": effects.acquired_count, "acquired": [list(records) for records in effects.acquired]}


def write_request_json(write: WriteShareGroupState) -> Json:
    """Return the request of a ``write`` event."""
    return {
        "write": write.number,
        "start_offset": write.start_offset,
        "delivery_complete_count": write.delivery_complete_count,
        "state_epoch": write.state_epoch,
        "leader_epoch": write.leader_epoch,
        "state_batches": [[first, last, int(state), count] for first, last, state, count in write.state_batches],
    }


def dead_letter_json(dead_letter: DeadLetterRequest) -> Json:
    """Return the request of a ``dlq`` event."""
    return {
        "dlq": dead_letter.number,
        "first": dead_letter.first_offset,
        "last": dead_letter.last_offset,
        "delivery_count": dead_letter.delivery_count,
        "cause": dead_letter.cause.value,
    }


def state_json(partition: SharePartition, fetch_lock: str | None) -> Json:
    """Return the protocol's state; *fetch_lock* is the id of the fetch lock's holder."""
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
        runs = [[run.first_offset, run.last_offset, _cell(run)] for run in batch.runs]
        return [batch.first_offset, batch.last_offset, runs, "per_offset"]
    return [batch.first_offset, batch.last_offset, _cell(batch.runs[0])]


def _cell(run: RecordRun) -> Json:
    flags = "o" * run.has_pending_write + "x" * run.lock_expired + "t" * run.is_archived_meanwhile
    return [run.state.name, run.delivery_count, run.member_id, run.lock_deadline_ms, flags]
