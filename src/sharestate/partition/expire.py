"""
An acquisition lock expires.

One expired lock is handled at a time, because the write that it causes may be answered, and the SPSO may move, before
the next one. The transition is final, whether or not that write succeeds. A record with a pending write only keeps in
mind that its lock has expired; what a failed write then does to it is in ``commit``.

Source:
    SharePartition.releaseAcquisitionLockOnTimeout (Kafka 4.3.1).
"""

from __future__ import annotations

from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell, PendingCell
from sharestate.partition.dead_letters import exceeded
from sharestate.partition.locks import Lock, LockedRecords
from sharestate.partition.record_machine import TERMINAL, Input
from sharestate.partition.state import PartitionState
from sharestate.partition.writes import issue_final
from sharestate.values.effects import NOTHING, Cause, Effects
from sharestate.values.requests import StateBatch


def expire_next(state: PartitionState) -> Effects | None:
    """
    Handle the lock that has expired first; of a split batch, its first record that waits for it.

    Where the profile handles all expired locks in one call, it goes on until none is left.

    Returns:
        The write that it causes, if it causes one; None if no lock has expired.

    Complexity:
        O(log n), n the locks; the records of one lock are walked once.
    """
    # rules 10, 16 and 24.5
    lock = state.locks.first_expired(state.now_ms)
    if lock is None:
        return None
    entries = _expire(state, lock)
    if state.profile.expires_per_call:
        while (lock := state.locks.first_expired(state.now_ms)) is not None:
            entries += _expire(state, lock)
    if not entries:
        return NOTHING
    queued = exceeded(entries) if state.config.dead_letter_queue else ()  # rule 21.2
    writes = issue_final(state, tuple(entries), queued)
    if not writes:  # the KIP's policy may have nothing to write: then no answer follows that would advance the SPSO
        advance(state)
    return Effects(writes=writes, wake=True)


def _expire(state: PartitionState, lock: Lock) -> list[StateBatch]:
    batch = state.in_flight[lock.batch_offset]
    if lock.records is None:
        return _expire_whole(state, lock, batch)
    return _expire_record(state, lock, lock.records, batch)


def _expire_record(state: PartitionState, lock: Lock, records: LockedRecords, batch: Batch) -> list[StateBatch]:
    # rule 10
    offset = _next_holder(lock, records, batch)
    records.cursor = offset + 1
    state.locks.release(lock, 1)
    cell = batch.at(offset)
    if isinstance(cell, PendingCell):
        _expire_pending(state, batch, offset, offset, cell)
        return []
    after = _expire_range(state, batch, offset, offset)
    return [StateBatch(offset, offset, after.state, after.delivery_count)]


def _next_holder(lock: Lock, records: LockedRecords, batch: Batch) -> int:
    cells, first = batch.cells, batch.first_offset
    offset = records.cursor
    while cells[offset - first].lock is not lock or cells[offset - first].lock_expired:
        offset += 1
    return offset


def _expire_whole(state: PartitionState, lock: Lock, batch: Batch) -> list[StateBatch]:
    # rules 10 and 24.5
    first, last, start = batch.first_offset, batch.last_offset, state.start_offset
    cell = batch.cell
    if cell.write is None and first < start <= last and not state.in_flight.is_oversized(batch):
        return _expire_straddling(state, batch)
    state.locks.release(lock, 1)
    if isinstance(cell, PendingCell):
        _expire_pending(state, batch, first, last, cell)
        return []
    after = _expire_range(state, batch, first, last)
    return [StateBatch(first, last, after.state, after.delivery_count)]


def _expire_straddling(state: PartitionState, batch: Batch) -> list[StateBatch]:
    """Expire a batch into which the log start has moved: its two parts have different fates (rule 10)."""
    first, last, start = batch.first_offset, batch.last_offset, state.start_offset
    batch.split(state.locks)
    state.release_lock(batch.cells[0], batch.size)
    entries: list[StateBatch] = []
    for low, high in ((first, start - 1), (start, last)):
        after = _expire_range(state, batch, low, high)
        entries += [StateBatch(offset, offset, after.state, after.delivery_count) for offset in range(low, high + 1)]
    return entries


def _expire_pending(
    state: PartitionState, batch: Batch, first_offset: int, last_offset: int, cell: PendingCell
) -> None:
    """Keep in mind that the lock of records with a pending write has expired (rule 10)."""
    replacements: dict[Cell, Cell] = {cell: cell.with_expired_lock()}
    state.replace_cells(batch, first_offset, last_offset, replacements, Cause.LOCK_EXPIRED, cell.write)


def _expire_range(state: PartitionState, batch: Batch, first_offset: int, last_offset: int) -> Cell:
    """Take records that share one cell from their owner, and return what they share now (rules 10 and 20.4)."""
    input_ = Input.BELOW_START if last_offset < state.start_offset else Input.LOCK_TIMEOUT
    cell = batch.at(first_offset)
    config = state.config
    after = cell.immediate(input_, config.delivery_count_limit, has_queue=config.dead_letter_queue)
    write = state.next_write if state.writer.is_written(state, last_offset) else None
    state.replace_cells(batch, first_offset, last_offset, {cell: after}, input_, write)
    if after.state in TERMINAL:
        state.count_completed(state.not_below_start(first_offset, last_offset))
    return after
