"""
The persisted state is read and taken over.

It is judged as a whole before anything is taken over: a failed initialization leaves the share partition FAILED and
otherwise as it was.

Source:
    SharePartition.maybeInitialize, startOffsetDuringInitialization (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from sharestate.errors import (
    NoReadPendingError,
    ResetOffsetRequiredError,
    ShareStateError,
    initialization_failed,
)
from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch
from sharestate.partition.cells import unowned
from sharestate.partition.dead_letters import resumed
from sharestate.partition.lifecycle import Event, Lifecycle, after, initialize_refusal
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.state import FinalWrite, PartitionState
from sharestate.partition.writes import issue_content
from sharestate.values.effects import NOTHING, Cause, Effects
from sharestate.values.records import RecordState, unknown_state
from sharestate.values.requests import (
    UNINITIALIZED_START_OFFSET,
    PersistedState,
    ReadShareGroupState,
    StateBatch,
)

_PERSISTED_STATES = frozenset({RecordState.AVAILABLE}) | TERMINAL
_PERSISTED_STATES_WITH_QUEUE = _PERSISTED_STATES | {RecordState.ARCHIVING}


def initialize(state: PartitionState) -> ReadShareGroupState:
    """
    Request the persisted state (rules 3 and 4).

    Raises:
        ShareStateError: The share partition is not EMPTY.
    """
    if state.lifecycle is not Lifecycle.EMPTY:
        raise initialize_refusal(state.lifecycle, state.key)
    state.lifecycle = after(state.lifecycle, Event.INITIALIZE)
    state.is_read_pending = True
    return ReadShareGroupState(key=state.key, leader_epoch=state.leader_epoch)


def read_succeeded(state: PartitionState, persisted: PersistedState, reset_offset: int | None) -> Effects:
    """Take over *persisted*; return the write that the policy needs because of it, or the error (rules 4 and 4.1)."""
    _expect_read(state)
    if state.lifecycle is Lifecycle.FENCED:  # rule 24.2, B14
        _end_read(state, Event.READ_REFUSED)
        return Effects(error=initialize_refusal(state.lifecycle, state.key))
    start = _start_offset(persisted, reset_offset)
    legal = _PERSISTED_STATES_WITH_QUEUE if state.profile.has_dead_letter_queue else _PERSISTED_STATES
    reason = _refusal(persisted.state_batches, start, legal)
    if reason is not None:
        _end_read(state, Event.READ_REFUSED)
        return Effects(error=initialization_failed(state.key, reason))
    state.state_epoch = persisted.state_epoch
    _take_over(state, start, persisted.state_batches)
    _end_read(state, Event.READ_TAKEN_OVER)
    content = state.writer.on_initialized(state, persisted)
    writes = () if content is None else (issue_content(state, content, FinalWrite()),)
    letters = state.hand_over(resumed(persisted.state_batches, state.config.delivery_count_limit))  # rule 21.4
    return Effects(writes=writes, dead_letters=letters) if writes or letters else NOTHING


def read_failed(state: PartitionState, error: ShareStateError) -> ShareStateError:
    """Give up the initialization, and return the error for those who wait for it (rules 4.1 and 24.2)."""
    _expect_read(state)
    _end_read(state, Event.READ_FAILED)
    return initialize_refusal(state.lifecycle, state.key) if state.lifecycle is Lifecycle.FENCED else error


def _expect_read(state: PartitionState) -> None:
    if not state.is_read_pending:
        message = f"no read of the persisted state of {state.key} is pending"
        raise NoReadPendingError(message)


def _end_read(state: PartitionState, event: Event) -> None:
    state.is_read_pending = False
    state.lifecycle = after(state.lifecycle, event)


def _start_offset(persisted: PersistedState, reset_offset: int | None) -> int:
    # rule 4.2
    if persisted.start_offset != UNINITIALIZED_START_OFFSET:
        return persisted.start_offset
    if reset_offset is None:
        message = "nothing is persisted yet: look up the offset at which to start, and pass it as reset_offset"
        raise ResetOffsetRequiredError(message)
    return reset_offset


def _refusal(batches: Iterable[StateBatch], start: int, legal_states: Container[int]) -> str | None:
    """Return what is wrong with the persisted batches, or None (rules 4.3, 21.4 and 24.2)."""
    previous_last = start - 1
    for first, last, state, _ in batches:
        where = f"state batch {first}-{last}"
        if first <= previous_last:
            return f"{where} begins at or before {previous_last}, where the SPSO or the batch before it leaves off"
        if last < first:
            return f"{where} is reversed"
        if state not in legal_states:
            unknown = unknown_state([(first, last, state, 0)])
            return unknown or f"{where} has state {state}, which is never persisted"
        previous_last = last
    return None


def _take_over(state: PartitionState, start: int, batches: Iterable[StateBatch]) -> None:
    # rules 4.3, 4.4 and 20.4
    state.pass_all(start)
    gap = None
    expected = start
    for first, last, delivery_state, delivery_count in batches:
        if gap is None and first > expected:
            gap = expected
        expected = last + 1
        cell = unowned(RecordState(delivery_state), delivery_count)
        batch = Batch(first, last, cell)
        state.add_batch(batch)
        if state.recorder is not None:
            state.recorder.record_all(batch, Cause.READ)
        if cell.state in TERMINAL:
            state.count_completed(last - first + 1)
    if state.in_flight:
        state.look_again()
        state.extend_end(expected - 1)
        if gap is not None:
            state.begin_gap_window(gap)
        advance(state)
