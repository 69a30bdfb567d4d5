"""
Records are archived because a fetch shows that log compaction has removed them.

Source:
    SharePartition.maybeArchiveStaleBatches (Kafka 4.3.1).
"""

from __future__ import annotations

from sharestate.partition.archive import archive_range
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState


def archive_compacted(state: PartitionState, fetch_offset: int, first_fetched: int) -> bool:
    """
    Archive what is available from *fetch_offset* to before *first_fetched*: the log no longer has it.

    Only the hole at the beginning of a fetch is seen; one between two of its batches is not.

    Returns:
        Whether the SPSO has to advance now.
    """
    # rules 7.3 and 20.4
    floor = state.in_flight.floor(fetch_offset)
    from_offset = floor.first_offset if floor is not None and floor.last_offset >= fetch_offset else fetch_offset
    batches = state.in_flight.beginning_in(from_offset, first_fetched - 1)
    completed = archive_range(
        state, batches, fetch_offset, first_fetched - 1, RecordState.AVAILABLE, Input.COMPACTED_AWAY
    )
    if completed < 0:
        return False
    state.count_completed(completed)
    state.look_again()
    return not state.profile.has(Quirk.STALLS_AFTER_COMPACTION)  # rule 24.1
