"""
Where the next fetch begins.

At the first offset that can be acquired again, or that lies in a gap of the gap window; else after all that is cached.

Source:
    SharePartition.nextFetchOffset (Kafka 4.3.1).
"""

from __future__ import annotations

from sharestate.partition.state import PartitionState
from sharestate.values.profiles import Quirk


def next_fetch_offset(state: PartitionState) -> int:
    """
    Return the offset at which the log is to be fetched next (rule 5).

    It may clear ``find_next``, so it is a command as far as a replay is concerned.

    Complexity:
        O(1), or linear in the batches and records from the lowest one that may be acquirable to the first that is.
    """
    offset = first_offered(state) if state.find_next else None
    if offset is not None:
        return offset
    state.found_none()
    return state.end_offset + 1 if _has_some(state) else state.end_offset


def first_offered(state: PartitionState) -> int | None:
    """Return where a fetch of what is in flight begins; None if nothing of it can be acquired (rule 5)."""
    offset = _first_acquirable(state) if _has_some(state) else None
    if offset is None or state.profile.has(Quirk.STALLS_IN_GAP_BELOW_START):
        return offset
    return max(offset, state.start_offset)  # rule 24.1, F5: what lies below the SPSO may be below the log start


def _has_some(state: PartitionState) -> bool:
    """Return whether something is in flight at or above the SPSO."""
    return bool(state.in_flight) and state.start_offset <= state.in_flight.last.last_offset


def _first_acquirable(state: PartitionState) -> int | None:
    # rule 5, step 3
    window = state.active_gap_window
    gap = state.acquirable_from if window is None else window.first_offset
    for batch in state.in_flight.from_floor(min(state.acquirable_from, gap), state.end_offset):
        if window is not None:
            if batch.first_offset > gap:
                return gap
            gap = max(batch.last_offset + 1, gap)
        if not batch.is_split and not batch.cell.is_acquirable:  # of most batches: not worth a call
            continue
        offset = batch.first_acquirable(state.acquirable_from)
        if offset is not None:
            state.acquirable_from = offset
            return offset
    state.acquirable_from, state.most_delivered = state.end_offset + 1, 0
    return None
