"""
Spec 10: an acquisition lock runs out.

One lapsed lock is handled at a time, because the write that it causes may be answered, and the SPSO may move, before
the next one. What it does to the state is final, whether or not that write succeeds. A record whose change is on its
way to the persister only remembers that its lock has fired.

Source:
    SharePartition.releaseAcquisitionLockOnTimeout (Kafka 4.3.1).
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from sharestate.partition.advance import advance
from sharestate.partition.chronicle import cause_of
from sharestate.partition.transitions import Input
from sharestate.partition.writing import issue_write
from sharestate.values.effects import NOTHING, Effects
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch, state_batches
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger
    from sharestate.partition.locks import Lock
    from sharestate.partition.pending import PendingWrite


def expire_next(ledger: Ledger) -> Effects | None:
    """
    Handle the lock that has lapsed first; of a split batch, its first record that waits for it.

    Where the profile expires all that have lapsed in one call, it goes on until none has.

    Returns:
        The write that it causes, if it causes one; None if no lock has lapsed.

    Complexity:
        O(log n), n the locks; the records of one lock are walked once.
    """
    lock = _first_lapsed(ledger)
    if lock is None:
        return None
    entries = _expire(ledger, lock)
    if ledger.profile.expires_per_call:
        while (lock := _first_lapsed(ledger)) is not None:
            entries += _expire(ledger, lock)
    if not entries:
        return NOTHING
    writes = issue_write(ledger, entries, None)
    if not writes:
        advance(ledger)
    return Effects(writes=writes, wake=True)


def _first_lapsed(ledger: Ledger) -> Lock | None:
    lock = ledger.locks.first()
    return None if lock is None or lock.deadline_ms >= ledger.now_ms else lock


def _expire(ledger: Ledger, lock: Lock) -> list[StateBatch]:
    return _expire_record(ledger, lock) if lock.batch.is_split else _expire_whole(ledger, lock)


def _expire_record(ledger: Ledger, lock: Lock) -> list[StateBatch]:
    batch = lock.batch
    offset = _next_holder(lock)
    lock.cursor = offset + 1
    ledger.locks.let_go(lock, 1)
    cell = batch.at(offset)
    if cell.write is not None:
        _fire(ledger, batch, offset, offset, cell, cell.write)
        return []
    after = _lapse(ledger, batch, offset, offset)
    return [StateBatch(offset, offset, after.state, after.delivery_count)]


def _next_holder(lock: Lock) -> int:
    cells, first = lock.batch.cells, lock.batch.first_offset
    offset = lock.cursor
    while cells[offset - first].lock is not lock or cells[offset - first].has_fired:
        offset += 1
    return offset


def _expire_whole(ledger: Ledger, lock: Lock) -> list[StateBatch]:
    batch = lock.batch
    first, last, start = batch.first_offset, batch.last_offset, ledger.start_offset
    (cell,) = batch.cells
    if cell.write is None and first < start <= last and batch.size <= ledger.split_limit:
        return _expire_straddling(ledger, batch)
    ledger.locks.let_go(lock, 1)
    if cell.write is not None:
        _fire(ledger, batch, first, last, cell, cell.write)
        return []
    after = _lapse(ledger, batch, first, last)
    return [StateBatch(first, last, after.state, after.delivery_count)]


def _expire_straddling(ledger: Ledger, batch: Batch) -> list[StateBatch]:
    first, last, start = batch.first_offset, batch.last_offset, ledger.start_offset
    batch.split(ledger.locks)
    ledger.locks.let_go_of(batch.cells[0], batch.size)
    entries: list[StateBatch] = []
    for low, high in ((first, start - 1), (start, last)):
        after = _lapse(ledger, batch, low, high)
        entries += state_batches(range(low, high + 1), repeat(after.state), repeat(after.delivery_count))
    return entries


def _fire(  # noqa: PLR0913 - one record, or all of a whole batch
    ledger: Ledger, batch: Batch, first_offset: int, last_offset: int, cell: Cell, change: PendingWrite
) -> None:
    become = {cell: change.fired(cell)}
    ledger.recast(batch, first_offset, last_offset, become, lambda _: Cause.LAPSED, change.number)


def _lapse(ledger: Ledger, batch: Batch, first_offset: int, last_offset: int) -> Cell:
    """Take records that share one cell from their owner, and return what they share now."""
    input_ = Input.BELOW_START if last_offset < ledger.start_offset else Input.LAPSE
    cell = batch.at(first_offset)
    after = cell.ended(input_, ledger.config.delivery_count_limit)
    write = ledger.next_write if ledger.writer.is_written(ledger, last_offset) else None
    ledger.recast(batch, first_offset, last_offset, {cell: after}, partial(cause_of, input_), write)
    if after.state is RecordState.AVAILABLE:
        ledger.find_next = True
    else:
        ledger.delivery_complete_count += max(0, last_offset - max(first_offset, ledger.start_offset) + 1)
    return after
