"""
Spec 9: a member has left, and everything that it holds is given back.

Records whose change is on its way to the persister are no longer the member's: they follow their own write.

Source:
    SharePartition.releaseAcquiredRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.cells import NOBODY
from sharestate.partition.outcomes import issue_change
from sharestate.partition.pending import PendingWrite
from sharestate.partition.transitions import Input
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger
    from sharestate.values.requests import WriteShareGroupState


def release(ledger: Ledger, member_id: str) -> tuple[WriteShareGroupState, ...]:
    """
    Give back every record that *member_id* holds, and issue the write.

    Complexity:
        Linear in the batches and in the records of split ones.
    """
    change = PendingWrite(ledger.start_offset, ledger.config.delivery_count_limit)
    for batch in ledger.in_flight:
        if not batch.is_split:
            _split_if_straddling(ledger, batch, member_id)
        if batch.is_split:
            _release_records(change, batch, member_id)
        elif _is_released(batch.cells[0], member_id):
            is_below = batch.last_offset < ledger.start_offset
            change.begin_whole(batch, Input.BELOW_START if is_below else Input.SESSION_CLOSE)
    return issue_change(ledger, change)


def _is_released(cell: Cell, member_id: str) -> bool:
    return cell.state is RecordState.ACQUIRED and cell.member_id in {member_id, NOBODY}


def _split_if_straddling(ledger: Ledger, batch: Batch, member_id: str) -> None:
    cell = batch.cells[0]
    if (
        cell.state is RecordState.ACQUIRED
        and cell.member_id == member_id
        and batch.first_offset < ledger.start_offset <= batch.last_offset
        and batch.size <= ledger.split_limit
    ):
        batch.split(ledger.locks)


def _release_records(change: PendingWrite, batch: Batch, member_id: str) -> None:
    start = change.start_offset
    below = (batch.first_offset, min(batch.last_offset, start - 1), Input.BELOW_START)
    above = (max(batch.first_offset, start), batch.last_offset, Input.SESSION_CLOSE)
    for first_offset, last_offset, input_ in (below, above):
        if first_offset <= last_offset:
            cells = [cell for cell in batch.tally(first_offset, last_offset) if _is_released(cell, member_id)]
            if cells:
                change.begin(batch, first_offset, last_offset, input_, cells)
