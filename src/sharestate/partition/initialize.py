"""
Spec 4 to 4.3: the persisted state is read and taken over.

It is judged as a whole before anything is taken over: a failed initialisation leaves the share partition FAILED and
otherwise as it was.

Source:
    SharePartition.maybeInitialize, startOffsetDuringInitialization (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.errors import (
    InitializationError,
    NoReadPendingError,
    ResetOffsetRequiredError,
    ShareStateError,
)
from sharestate.partition.advance import advance
from sharestate.partition.batch import Batch
from sharestate.partition.cells import unowned
from sharestate.partition.gaps import GapWindow
from sharestate.partition.lifecycle import Event, Lifecycle, initialize_refusal, moved
from sharestate.partition.transitions import TERMINAL
from sharestate.partition.writing import issue_form
from sharestate.values.effects import NOTHING, Effects
from sharestate.values.records import RecordState
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, ReadShareGroupState
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.partition.ledger import Ledger
    from sharestate.values.requests import PersistedState, StateBatch

_PERSISTED_STATES = frozenset({RecordState.AVAILABLE}) | TERMINAL


def initialize(ledger: Ledger) -> ReadShareGroupState:
    """
    Ask for the persisted state.

    Raises:
        ShareStateError: The share partition is not EMPTY.
    """
    if ledger.lifecycle is not Lifecycle.EMPTY:
        raise initialize_refusal(ledger.lifecycle, ledger.key)
    ledger.lifecycle = moved(ledger.lifecycle, Event.INITIALIZE)
    ledger.is_read_pending = True
    return ReadShareGroupState(key=ledger.key, leader_epoch=ledger.leader_epoch)


def read_succeeded(ledger: Ledger, state: PersistedState, reset_offset: int | None) -> Effects:
    """Take over *state*; return the write that this causes, if the policy writes now, or why it failed."""
    _expect_read(ledger)
    if ledger.lifecycle is Lifecycle.FENCED:
        _end_read(ledger, Event.READ_TAKEN_OVER)
        return Effects(error=initialize_refusal(ledger.lifecycle, ledger.key))
    start = _start_offset(state, reset_offset)
    reason = _refusal(state.state_batches, start)
    if reason is not None:
        message = f"Failed to initialize the share partition {ledger.key}"
        _end_read(ledger, Event.READ_REFUSED)
        return Effects(error=InitializationError(message, reason))
    ledger.state_epoch = state.state_epoch
    _take_over(ledger, start, state.state_batches)
    _end_read(ledger, Event.READ_TAKEN_OVER)
    form = ledger.writer.taken_over(ledger, state)
    return NOTHING if form is None else Effects(writes=(issue_form(ledger, form, None),))


def read_failed(ledger: Ledger, error: ShareStateError) -> ShareStateError:
    """Give up the initialisation, and return the error that its waiters are told."""
    _expect_read(ledger)
    _end_read(ledger, Event.READ_FAILED)
    return initialize_refusal(ledger.lifecycle, ledger.key) if ledger.lifecycle is Lifecycle.FENCED else error


def _expect_read(ledger: Ledger) -> None:
    if not ledger.is_read_pending:
        message = f"no read of the persisted state of {ledger.key} is pending"
        raise NoReadPendingError(message)


def _end_read(ledger: Ledger, event: Event) -> None:
    ledger.is_read_pending = False
    ledger.lifecycle = moved(ledger.lifecycle, event)


def _start_offset(state: PersistedState, reset_offset: int | None) -> int:
    if state.start_offset != UNINITIALIZED_START_OFFSET:
        return state.start_offset
    if reset_offset is None:
        message = "nothing is persisted yet: look up the offset at which to start, and pass it as reset_offset"
        raise ResetOffsetRequiredError(message)
    return reset_offset


def _refusal(batches: Iterable[StateBatch], start: int) -> str | None:
    """Return what is wrong with the persisted batches, or None."""
    previous_last = start - 1
    for first, last, state, _ in batches:
        where = f"state batch {first}-{last}"
        if first <= previous_last:
            return f"{where} begins at or before {previous_last}, where the SPSO or the batch before it leaves off"
        if last < first:
            return f"{where} is reversed"
        if state not in _PERSISTED_STATES:
            return f"{where} has state {state}, which is never persisted"
        previous_last = last
    return None


def _take_over(ledger: Ledger, start: int, batches: Iterable[StateBatch]) -> None:
    ledger.start_offset = ledger.end_offset = start
    gap = None
    expected = start
    for first, last, state, delivery_count in batches:
        if gap is None and first > expected:
            gap = expected
        expected = last + 1
        cell = unowned(RecordState(state), delivery_count)
        ledger.in_flight.add(Batch(first, last, [cell]))
        if ledger.chronicle is not None:
            ledger.chronicle.tell(first, last, cell, Cause.READ)
        if cell.state in TERMINAL:
            ledger.delivery_complete_count += last - first + 1
    if ledger.in_flight:
        ledger.find_next = True
        ledger.end_offset = expected - 1
        ledger.gap_window = None if gap is None else GapWindow(gap, ledger.end_offset)
        advance(ledger)
