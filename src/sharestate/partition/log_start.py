"""
The log start has moved: the SPSO moves with it, and available records below it are archived.

Source:
    SharePartition.updateCacheAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.partition.advance import advance
from sharestate.partition.archive import archive_range
from sharestate.partition.batches import Batch
from sharestate.partition.record_machine import TERMINAL, Input
from sharestate.partition.state import PartitionState
from sharestate.values.effects import NOTHING, WAKE, Effects
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState


def advance_log_start(state: PartitionState, offset: int) -> Effects:
    """
    Move the SPSO to *offset*, where the log starts now; ignored if that is not past it (rules 13 and 20.4).

    Available records below it are archived. What members hold there stays theirs, but can no longer be acknowledged: it
    is archived when its lock expires or its member leaves. The new SPSO becomes durable with the next write of any
    kind.

    Complexity:
        Linear in the batches that the SPSO passes, and in the records of split ones that it passes; of those it has
        passed before, in the batches from the first with an available record on, which only releases of Kafka have.
    """
    old = state.start_offset
    if offset <= old:
        return NOTHING
    if not state.profile.has(Quirk.STALLS_IN_GAP_BELOW_START):  # rule 24.1
        state.lift_gap_window(offset)
    if state.in_flight:
        _archive_below(state, old, offset)
    else:
        state.pass_all(offset)
    is_advancing = not state.profile.has(Quirk.STALLS_AFTER_LOG_START)  # rules 16 and 24.1
    return WAKE if is_advancing and advance(state) else NOTHING


def _archive_below(state: PartitionState, old: int, offset: int) -> None:
    """Archive what is available from the SPSO, which is *old*, to before *offset*, and move it there."""
    passed = _terminal_count(state, old, offset - 1)
    # Below the old SPSO only records that became available after it had passed them can be there still (B15).
    batches = state.in_flight.from_floor(min(old, state.acquirable_from), offset - 1)
    # What is archived here lies below the new SPSO, so it never counts.
    if archive_range(state, batches, old, offset - 1, RecordState.AVAILABLE, Input.BELOW_START) >= 0:
        state.look_again()
    state.taken(state.acquirable_from, _first_available(state, batches, offset) - 1)
    state.move_start(offset, passed)
    state.extend_end(offset)


def _first_available(state: PartitionState, batches: Iterable[Batch], offset: int) -> int:
    """Return an offset below which no record of *batches*, up to that which holds *offset*, is available any more."""
    for batch in batches:
        if batch.last_offset >= offset:  # the SPSO is within it, and it is not worth a walk
            return batch.first_offset
        available = batch.first_acquirable(state.acquirable_from)
        if available is not None:
            return available
    return offset


def _terminal_count(state: PartitionState, first_offset: int, last_offset: int) -> int:
    """Return how many records of a range are terminal, those with a pending write included (rule 20.4)."""
    count = 0
    for batch in state.in_flight.from_floor(first_offset, last_offset):
        low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
        if low > high:  # the floor batch may end before the range
            continue
        if not batch.is_split:
            count += high - low + 1 if batch.cell.state in TERMINAL else 0
        else:
            count += sum(size for cell, size in batch.tally(low, high).items() if cell.state in TERMINAL)
    return count
