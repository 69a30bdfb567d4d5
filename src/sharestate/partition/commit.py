"""
The outcome of a write: it commits what the write carried, or rolls it back (rule 11).

If a write succeeds the locks are cancelled and the SPSO may advance. If it fails the records are rolled back to their
owner, unless they were archived or their lock has expired meanwhile. What a ``FinalWrite`` carries stands, written or
not.

Source:
    SharePartition.rollbackOrProcessStateUpdates; InFlightState.completeStateTransition (Kafka 4.3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from sharestate.errors import UnknownWriteError
from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch, distinct_unordered
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import TERMINAL, Input
from sharestate.partition.state import FinalWrite, PartitionState, PendingWrite
from sharestate.values.effects import NOTHING, WAKE, Cause, Effects
from sharestate.values.profiles import Quirk

_STALLS: Final = frozenset({Quirk.STALLS_AFTER_LOG_START, Quirk.STALLS_AFTER_COMPACTION})
"""The quirks of what archives records while a write of them is pending; which of the two did is not kept."""


def write_succeeded(state: PartitionState, number: int, advances: bool) -> Effects:  # noqa: FBT001 - as in commands
    """Commit the change of write *number*, and with *advances* move the SPSO (rules 11 and 16)."""
    pending = state.writes.pop(number, None)
    if pending is None:
        raise _unknown(state, number)
    state.writer.on_confirmed(number)
    if isinstance(pending, FinalWrite):
        wakes = pending.wakes
    else:
        commit(state, pending, number)
        wakes = True
    if not advances:  # in Kafka the exception keeps what is to be dead letters from their queue, too (B25)
        return NOTHING
    effects = WAKE if advance(state) and wakes else NOTHING
    return _with_dead_letters(state, pending, effects) if pending.dead_letters else effects


def write_failed(state: PartitionState, number: int) -> Effects:
    """Roll back the change of write *number*; a final one stands, written or not (rules 10, 11 and 16)."""
    pending = state.writes.pop(number, None)
    if pending is None:
        raise _unknown(state, number)
    state.writer.on_failed(number)
    if isinstance(pending, FinalWrite):
        has_advanced = _advances_after_failed_expiry(state) and advance(state)
        return _with_dead_letters(state, pending, WAKE if has_advanced and pending.wakes else NOTHING)
    has_archived = False
    for batch, first_offset, last_offset in pending.ranges:
        has_archived |= _roll_back_range(state, pending, batch, first_offset, last_offset)
    if not has_archived or state.profile.quirks >= _STALLS:
        return NOTHING
    return WAKE if advance(state) else NOTHING  # rule 24.1: what was archived meanwhile has waited for this answer


def commit(state: PartitionState, pending: PendingWrite, write: int | None) -> None:
    """Commit every record of *pending*, whose *write* has succeeded; None if none was needed."""
    # rule 1.5, step 1
    number = pending.number
    for batch, first_offset, last_offset in pending.ranges:
        if not batch.is_split:
            cell = batch.cell
        elif first_offset == last_offset:
            cell = batch.cells[first_offset - batch.first_offset]
        else:
            _commit_records(state, number, batch, first_offset, last_offset, write)
            continue
        if cell.write == number:
            after = cell.committed()
            state.release_lock(cell, 1)
            state.put_cell(batch, first_offset, after)
            if state.recorder is not None:
                state.recorder.record_one(first_offset, last_offset, after, Cause.CONFIRMED, write)


def _commit_records(  # noqa: PLR0913 - a range of a split batch, and what carries it
    state: PartitionState, number: int, batch: Batch, first_offset: int, last_offset: int, write: int | None
) -> None:
    part = batch.part(first_offset, last_offset)
    found = distinct_unordered(part)
    replacements = {cell: cell.committed() for cell in found if cell.write == number}
    _release_locks(state, part, replacements, are_all=len(replacements) == len(found))
    state.replace_cells(batch, first_offset, last_offset, replacements, Cause.CONFIRMED, write)


def _release_locks(state: PartitionState, part: Sequence[Cell], cells: Collection[Cell], *, are_all: bool) -> None:
    """Take what refers in *part* to *cells*, of which *are_all* says whether it has no others, from their locks."""
    if are_all and len({(cell.lock, cell.lock_expired) for cell in cells}) == 1:
        state.release_lock(part[0], len(part))  # nearly always, and to tally takes longer than all else
        return
    tally = Counter(part) if len(cells) > 1 else {cell: part.count(cell) for cell in cells}
    for cell in cells:
        state.release_lock(cell, tally[cell])


def _advances_after_failed_expiry(state: PartitionState) -> bool:
    # rule 10: where it does not, a later write moves the SPSO. With nothing left that could lead to one, nothing would.
    return state.profile.advances_after_failed_expiry or not (state.writes or state.locks.count)


def _with_dead_letters(state: PartitionState, answered: PendingWrite | FinalWrite, effects: Effects) -> Effects:
    """Return *effects* with what goes to the dead-letter queue because of *answered*."""
    # rules 16 and 21.2
    letters = answered.dead_letters
    return effects._replace(dead_letters=state.hand_over(letters)) if letters else effects


def _unknown(state: PartitionState, number: int) -> UnknownWriteError:
    message = f"write {number} was never issued, or was answered already; the next one is {state.next_write}"
    return UnknownWriteError(message, number)


def _roll_back_range(
    state: PartitionState, pending: PendingWrite, batch: Batch, first_offset: int, last_offset: int
) -> bool:
    """Roll back a range; return whether records of it stay archived."""
    # rules 11 and 20.4
    replacements = {}
    for cell, references in batch.tally(first_offset, last_offset).items():
        if cell.write == pending.number:
            replacements[cell] = after = _rolled_back(state, pending, cell)
            if cell.lock_expired and after.lock is not None:  # without B15 the expired lock is due at once
                state.locks.requeue(after.lock, references, first_offset)
    reopened = [cell for cell, after in replacements.items() if cell.state in TERMINAL and after.state not in TERMINAL]
    if reopened:
        state.count_completed(-batch.record_count(max(first_offset, state.start_offset), last_offset, reopened))
    # rule 24.1, B23: with B15 alone, what did not count while it was ARCHIVING does once it is ARCHIVED
    archived = [cell for cell, after in replacements.items() if after.state in TERMINAL and cell.state not in TERMINAL]
    if archived and not state.profile.has(Quirk.ARCHIVES_UNCOUNTED):
        state.count_completed(batch.record_count(max(first_offset, state.start_offset), last_offset, archived))
    state.replace_cells(batch, first_offset, last_offset, replacements, Cause.ROLLED_BACK, pending.number)
    if any(after is not cell.rollback for cell, after in replacements.items()):  # B15, or archived meanwhile
        state.writer.on_unwritten(first_offset, last_offset)
    return any(cell.rollback is None for cell in replacements)


def _rolled_back(state: PartitionState, pending: PendingWrite, cell: Cell) -> Cell:
    # rules 1.5 and 24.1
    if cell.rollback is None:
        return cell.committed()
    if cell.lock_expired and state.profile.has(Quirk.EXPIRES_IN_MEMORY_ONLY):
        # Kafka changes its memory and writes nothing: another leader would not know.
        return cell.rollback.immediate(Input.LOCK_TIMEOUT, pending.delivery_count_limit)
    return cell.rollback
