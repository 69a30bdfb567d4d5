"""What users see of a share partition's in-flight batches: values that do not follow later changes."""

from __future__ import annotations

from itertools import starmap
from typing import NamedTuple

from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell
from sharestate.values.named_tuples import new_tuple
from sharestate.values.records import RecordState


class RecordRun(NamedTuple):
    """
    Neighboring records of one batch that have the same state.

    Attributes:
        first_offset: The first offset of the run.
        last_offset: The last offset of the run, included.
        state: The records' state; that after the pending transition if there is one.
        delivery_count: The deliveries of each so far. [deliveries]
        member_id: Their owner; empty for none.
        lock_deadline_ms: The last instant at which their acquisition lock holds; None without a lock. [ms]
        has_pending_write: Whether a write that carries their last transition is pending.
        lock_expired: Whether their lock has expired while that write was pending.
        is_archived_meanwhile: Whether they were archived while that write was pending: its outcome does not matter.
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str
    lock_deadline_ms: int | None
    has_pending_write: bool
    lock_expired: bool
    is_archived_meanwhile: bool


class BatchView(NamedTuple):
    """
    An in-flight batch as it was when it was asked for.

    Attributes:
        first_offset: The batch's first offset.
        last_offset: The batch's last offset, included.
        is_split: Whether it is kept record by record; if not, there is one run.
        runs: Its records, in ascending order. Two neighboring runs always differ in state.
    """

    first_offset: int
    last_offset: int
    is_split: bool
    runs: tuple[RecordRun, ...]


def view_of(batch: Batch) -> BatchView:
    """Return *batch* as it is; linear in its records if it is split."""
    first, last = batch.first_offset, batch.last_offset
    if not batch.is_split:
        return new_tuple(BatchView, (first, last, False, (_run_of(first, last, batch.cell),)))
    runs: list[RecordRun] = []
    for run in starmap(_run_of, batch.runs(first, last)):
        if runs and runs[-1][2:] == run[2:]:
            runs[-1] = runs[-1]._replace(last_offset=run.last_offset)
        else:
            runs.append(run)
    return new_tuple(BatchView, (first, last, True, tuple(runs)))


def _run_of(first_offset: int, last_offset: int, cell: Cell) -> RecordRun:
    return new_tuple(
        RecordRun,
        (
            first_offset,
            last_offset,
            cell.state,
            cell.delivery_count,
            cell.member_id,
            cell.lock_deadline_ms,
            cell.write is not None,
            cell.lock_expired,
            cell.is_archived_meanwhile,
        ),
    )
