"""
A member has left, and every record that it holds is released.

Records with a pending write are no longer the member's: they follow their own write.

Source:
    SharePartition.releaseAcquiredRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from sharestate.partition.batches import Batch, distinct
from sharestate.partition.cells import NO_MEMBER, Cell
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState
from sharestate.partition.writes import Change, issue
from sharestate.values.effects import Effects
from sharestate.values.records import RecordState


def release(state: PartitionState, member_id: str) -> Effects:
    """
    Release every record that *member_id* holds, and issue the write (rule 9).

    Complexity:
        Linear in the batches of which the member holds records, and in the records of split ones.
    """
    change = Change(state)
    try:
        for offset in state.locks.batches_of(*{member_id, NO_MEMBER}):
            _release_batch(state, change, state.in_flight[offset], member_id)
        return issue(state, change)
    except BaseException:
        change.withdraw()
        raise


def _release_batch(state: PartitionState, change: Change, batch: Batch, member_id: str) -> None:
    if not batch.is_split:
        _split_if_straddling(state, batch, member_id)
    if batch.is_split:
        _release_records(state, change, batch, member_id)
    elif _is_released(batch.cell, member_id):
        is_below = batch.last_offset < state.start_offset
        input_ = Input.BELOW_START if is_below else Input.SESSION_CLOSE
        change.begin_one(batch, batch.first_offset, batch.last_offset, batch.cell, input_)


def _is_released(cell: Cell, member_id: str) -> bool:
    # rule 9
    return cell.state is RecordState.ACQUIRED and cell.member_id in {member_id, NO_MEMBER}


def _split_if_straddling(state: PartitionState, batch: Batch, member_id: str) -> None:
    """Split *batch* if the log start has moved into it: its two parts have different fates (rules 9 and 24.5)."""
    if (
        batch.first_offset < state.start_offset <= batch.last_offset
        and batch.cell.is_held_by(member_id)
        and not state.in_flight.is_oversized(batch)
    ):
        batch.split(state.locks)


def _release_records(state: PartitionState, change: Change, batch: Batch, member_id: str) -> None:
    # rule 9, step 2
    start = state.start_offset
    below = (batch.first_offset, min(batch.last_offset, start - 1), Input.BELOW_START)
    above = (max(batch.first_offset, start), batch.last_offset, Input.SESSION_CLOSE)
    for first_offset, last_offset, input_ in (below, above):
        if first_offset <= last_offset:
            part = batch.part(first_offset, last_offset)
            cells = [cell for cell in distinct(part) if _is_released(cell, member_id)]
            if cells:
                change.begin(batch, first_offset, part, input_, cells)
