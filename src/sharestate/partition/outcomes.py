"""
Spec 11: what becomes of a change once its write was answered, or once it is refused.

A change shows at once, but it is confirmed by its write. If the write succeeds the records let go of their locks and
the SPSO may advance. If it fails they go back to their owner, unless they were archived meanwhile; if their lock has
fired meanwhile there is no owner to go back to.

Source:
    SharePartition.rollbackOrProcessStateUpdates, InFlightState.completeStateTransition (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.errors import UnknownWriteError
from sharestate.partition.advance import advance
from sharestate.partition.transitions import TERMINAL, Input
from sharestate.partition.writing import issue_write
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger
    from sharestate.partition.pending import PendingWrite
    from sharestate.values.requests import WriteShareGroupState


def issue_change(ledger: Ledger, change: PendingWrite) -> tuple[WriteShareGroupState, ...]:
    """Issue the write that carries *change*; if nothing of it has to be persisted, it is confirmed."""
    if not change.entries:
        return ()
    ledger.delivery_complete_count += change.completed_count
    writes = issue_write(ledger, change.entries, change)
    change.issued(writes[0].number if writes else None, ledger.chronicle)
    if not writes:
        _confirm_all(ledger, change)
    return writes


def settle(ledger: Ledger, number: int, *, is_confirmed: bool) -> PendingWrite | None:
    """
    Take the unanswered write *number* off the books and return what waits for its outcome.

    Raises:
        UnknownWriteError: It was never issued, or was settled already.
    """
    if number not in ledger.writes:
        message = f"write {number} was never issued, or was settled already; the next one is {ledger.next_write}"
        raise UnknownWriteError(message, number)
    ledger.writer.answered(number, is_confirmed=is_confirmed)
    return ledger.writes.pop(number)


def write_succeeded(ledger: Ledger, number: int) -> bool:
    """Confirm the change of write *number*; return whether waiting fetches should look again."""
    change = settle(ledger, number, is_confirmed=True)
    if change is None:
        advance(ledger)
        return False
    return _confirm_all(ledger, change)


def write_failed(ledger: Ledger, number: int) -> None:
    """Undo the change of write *number*; a change by expiry stands, written or not."""
    change = settle(ledger, number, is_confirmed=False)
    if change is None:
        if ledger.profile.advances_after_failed_expiry:
            advance(ledger)
        return
    for batch, first_offset, last_offset in change.ranges():
        _roll_back(ledger, change, batch, first_offset, last_offset)


def withdraw(change: PendingWrite) -> None:
    """Undo a change that was refused before it was written."""
    for batch, first_offset, last_offset in change.ranges():
        become = {
            cell: cell.before
            for cell in batch.tally(first_offset, last_offset)
            if cell.write is change and cell.before is not None
        }
        batch.recast(first_offset, last_offset, become)


def _confirm_all(ledger: Ledger, change: PendingWrite) -> bool:
    for batch, first_offset, last_offset in change.ranges():
        _confirm(ledger, change, batch, first_offset, last_offset)
    return advance(ledger)


def _confirm(ledger: Ledger, change: PendingWrite, batch: Batch, first_offset: int, last_offset: int) -> None:
    become = {}
    for cell, references in batch.tally(first_offset, last_offset).items():
        if cell.write is change:
            become[cell] = cell.committed()
            ledger.locks.let_go_of(cell, references)
            if cell.state is RecordState.AVAILABLE:
                ledger.find_next = True
    ledger.recast(batch, first_offset, last_offset, become, lambda _: Cause.CONFIRMED, change.number)


def _roll_back(ledger: Ledger, change: PendingWrite, batch: Batch, first_offset: int, last_offset: int) -> None:
    become = {}
    for cell, references in batch.tally(first_offset, last_offset).items():
        if cell.write is change:
            become[cell] = after = _rolled_back(ledger, change, cell)
            if after.state is RecordState.AVAILABLE:
                ledger.find_next = True
            if cell.has_fired and after.lock is not None:
                ledger.locks.hold_again(after.lock, references, first_offset)
    reopened = [cell for cell, after in become.items() if cell.state in TERMINAL and after.state not in TERMINAL]
    if reopened:
        from_offset = max(first_offset, ledger.start_offset)
        ledger.delivery_complete_count -= batch.record_count(from_offset, last_offset, reopened)
    ledger.recast(batch, first_offset, last_offset, become, lambda _: Cause.ROLLED_BACK, change.number)


def _rolled_back(ledger: Ledger, change: PendingWrite, cell: Cell) -> Cell:
    if cell.before is None:
        return cell.committed()
    if cell.has_fired and ledger.profile.has(Quirk.B15):
        return cell.before.ended(Input.LAPSE, change.delivery_count_limit)
    return cell.before
