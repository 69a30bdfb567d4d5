"""
Records of a range are archived, no matter who holds them.

Three things lead here: a fetch shows that log compaction has removed records (``compacted.py``), a transaction was
aborted (``aborted.py``), or the log start has moved (``log_start.py``). Nothing is persisted.

Source:
    SharePartition.archiveRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.partition.batches import Batch
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState
from sharestate.values.profiles import Quirk
from sharestate.values.records import RecordState


def archive_range(  # noqa: PLR0913 - a range of batches, and the input that archives it
    state: PartitionState,
    batches: Iterable[Batch],
    first_offset: int,
    last_offset: int,
    from_state: RecordState,
    input_: Input,
) -> int:
    """
    Archive the records of *batches* within a range that are in *from_state*; a pending write of them goes on.

    Args:
        state: The share partition's.
        batches: The batches to look at, none of which begins after the range. One in *from_state* is split if the range
            does not cover it; as in Kafka, even if it ends before the range: later writes of its records show that.
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        from_state: The state that the records are in.
        input_: The input that archives them.

    Returns:
        How many of them count as complete from now on, if anything was archived; -1 if nothing was. [records]
    """
    # rules 14 and 24.5
    completed = -1
    for batch in batches:
        if not batch.is_split and not (first_offset <= batch.first_offset and batch.last_offset <= last_offset):
            if batch.cell.state is not from_state:
                continue
            if not state.in_flight.is_oversized(batch):
                batch.split(state.locks)
            elif input_ is not Input.BELOW_START or batch.last_offset > last_offset:
                continue  # it is left as it is until the range covers it
        low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
        if not batch.is_split:
            low = batch.first_offset  # one that is too large to be split may begin before the range
        if low <= high:
            completed = _archive(state, batch, low, high, from_state, input_, completed)
    return completed


def _archive(  # noqa: PLR0913 - as above, for one batch
    state: PartitionState, batch: Batch, low: int, high: int, from_state: RecordState, input_: Input, completed: int
) -> int:
    # rules 14, 20.4 and 24.1
    replacements = {}
    for cell, references in batch.tally(low, high).items():
        if cell.state is from_state:
            replacements[cell] = cell.archived(input_)
            state.release_lock(cell, references)
    if not replacements:
        return completed
    from_offset = low if state.profile.has(Quirk.COUNTS_BELOW_START) else max(low, state.start_offset)
    archived = batch.record_count(from_offset, high, replacements)
    state.replace_cells(batch, low, high, replacements, input_)
    state.writer.on_unwritten(low, high)
    return max(completed, 0) + archived
