"""
The SPSO advances over durable records, and whole batches leave the cache.

Source:
    SharePartition.maybeUpdateCachedStateAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sharestate.partition.batches import Batch
from sharestate.partition.recorder import TransitionRecorder
from sharestate.partition.state import PartitionState
from sharestate.values.effects import Cause
from sharestate.values.profiles import Quirk


class Durability(Protocol):
    """A judge of which records are durable: terminal, and known to be persisted."""

    def is_durable(self, batch: Batch, offset: int) -> bool:
        """Return whether the record at *offset*, which lies within *batch*, is durable."""

    def durable_last(self, batch: Batch) -> int:
        """Return the last offset of *batch* up to which every record is durable; first_offset - 1 if none is."""


class _Committed:
    """Records are durable once their write has succeeded."""

    @staticmethod
    def is_durable(batch: Batch, offset: int) -> bool:
        return batch.at(offset).is_durable

    @staticmethod
    def durable_last(batch: Batch) -> int:
        return batch.durable_end() - 1


class AdvancePlan(NamedTuple):
    """The records that the SPSO can pass."""

    last_durable: int
    """The last offset up to which all that is cached is durable."""

    completed: int
    """The number of records at or above the SPSO that are passed. [records]"""

    next_batch: Batch | None
    """The batch in which, or before which, the SPSO stops; None if it passes all that is cached."""


def advance(state: PartitionState) -> bool:
    """
    Move the SPSO past everything that is durable, and remove the batches that it has passed (rules 12 and 20.4).

    Returns:
        Whether anything changed.

    Complexity:
        O(k log n), n the batches, k those that are removed; durable records of a batch are walked once in its life.
    """
    start = state.start_offset
    batch = state.in_flight.first_at(start) if state.gap_window is None else None
    if batch is not None:  # nearly always the SPSO stays in it, or it is the only one: no plan is needed
        new, last = batch.durable_end(), batch.last_offset
        if new == start:
            return False
        if start < new <= last:
            state.move_start(new, new - start)
            return True
        if new > last and batch is state.in_flight.last:
            removed = state.in_flight.remove_all()
            state.pass_all(new)
            if state.recorder is not None:
                _record_passed(state.recorder, removed)
            return True
    return _advance_over_batches(state)


def _advance_over_batches(state: PartitionState) -> bool:
    plan = _plan_advance(state, _Committed)
    if plan is None:
        return False
    start = _start_after(state, plan)
    if not state.profile.has(Quirk.WAITS_AT_WINDOW_END):  # rule 24.1
        state.lift_gap_window(start)
    if plan.next_batch is None:
        state.pass_all(start)
    else:
        state.move_start(start, plan.completed)
    if plan.next_batch is not state.in_flight.first:  # else the SPSO stays within the first batch: nothing to remove
        removed = state.in_flight.remove_up_to(plan.last_durable)
        if state.recorder is not None:
            _record_passed(state.recorder, removed)
    return True


def _record_passed(recorder: TransitionRecorder, removed: Iterable[Batch]) -> None:
    for batch in removed:
        recorder.record_all(batch, Cause.PASSED)


def start_offset_after(state: PartitionState, durability: Durability) -> int:
    """Return where the SPSO would be if the records were durable that *durability* says are."""
    plan = _plan_advance(state, durability)
    return state.start_offset if plan is None else _start_after(state, plan)


def _plan_advance(state: PartitionState, durability: Durability) -> AdvancePlan | None:
    # rules 12, 20.4 and 24.1
    start = state.start_offset
    floor = state.in_flight.floor(start)
    # rule 24.2, B7: the log start may have moved past the end of the floor batch
    if floor is None or not durability.is_durable(floor, min(start, floor.last_offset)):
        return None
    window = state.active_gap_window
    gap = None if window is None else window.first_offset
    last_durable, completed, next_batch = None, 0, None
    for batch in state.in_flight:
        first = batch.first_offset
        # Records may be missing from the first gap of the window on. Kafka stops at any batch that reaches it, also one
        # that covers the gap (B17); healed, only an offset that no batch covers stops the walk.
        if gap is not None and batch.last_offset >= gap:
            if first > gap or state.profile.has(Quirk.WAITS_AT_WINDOW_END):
                next_batch = batch
                break
            gap = batch.last_offset + 1
        last = durability.durable_last(batch)
        if last >= first:
            last_durable = last
            completed += state.not_below_start(first, last)
        if last < batch.last_offset:
            next_batch = batch
            break
    return None if last_durable is None else AdvancePlan(last_durable, completed, next_batch)


def _start_after(state: PartitionState, plan: AdvancePlan) -> int:
    """Return where the SPSO is once *plan* is carried out (rules 12 and 24.1)."""
    old, next_batch = state.start_offset, plan.next_batch
    if next_batch is None:
        new = plan.last_durable + 1
        return new if state.profile.has(Quirk.START_MOVES_BACK) else max(old, new)
    if next_batch.first_offset <= plan.last_durable:  # it stops within this batch
        return max(old, plan.last_durable + 1)
    # It skips a natural gap up to the next batch, but not what is to be fetched again in the gap window.
    window = state.active_gap_window
    new = max(old, next_batch.first_offset)
    if window is None:
        return new
    gap = window.first_offset
    if not state.profile.has(Quirk.WAITS_AT_WINDOW_END):
        gap = max(gap, plan.last_durable + 1)
    new = min(new, gap)
    return new if state.profile.has(Quirk.START_MOVES_BACK) else max(old, new)
