"""
Records are archived because the log no longer offers them, no matter who holds them.

Three things lead here: a fetch shows that log compaction has removed records, a transaction was aborted, or the log
start has moved. Nothing is persisted.

Source:
    SharePartition.archiveRecords, maybeArchiveStaleBatches, maybeFilterAbortedTransactionalAcquiredRecords,
    updateCacheAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch
from sharestate.partition.record_machine import TERMINAL, Input
from sharestate.partition.state import PartitionState
from sharestate.values.effects import NOTHING, WAKE, Effects
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.profiles import Quirk
from sharestate.values.records import NO_PRODUCER_ID, AcquiredRecords, ControlType, RecordBatch, RecordState


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
        batches: The batches to look at, in ascending order. One in *from_state* is split if the range does not cover
            it; as in Kafka, even if it ends before the range: later writes of its records show that.
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
        if batch.first_offset > last_offset:
            break
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


# ---- log compaction


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


# ---- aborted transactions


def aborted_batches(fetched: FetchedRecords) -> Sequence[RecordBatch]:
    """
    Return the data batches whose transaction was aborted, if the group reads committed records only.

    The whole fetch is looked at, not only what is acquired. Transaction markers are not among them: they are acquired
    like data, and the client skips them.
    """
    # rule 7.10
    if not fetched.aborted_transactions or fetched.isolation is not IsolationLevel.READ_COMMITTED:
        return ()
    return tuple(_aborted_batches(fetched))


def archive_aborted(state: PartitionState, aborted: Iterable[RecordBatch]) -> bool:
    """Archive what is acquired of *aborted*, no matter who holds it; return whether the SPSO has to advance now."""
    # rules 7.10 and 20.4
    is_archived = False
    for batch in aborted:
        first, last = batch.first_offset, batch.last_offset
        cached = state.in_flight.from_floor(first, last)  # rule 24.2, B8: there may be no floor batch
        completed = archive_range(state, cached, first, last, RecordState.ACQUIRED, Input.ABORTED)
        state.count_completed(max(completed, 0))
        is_archived |= completed >= 0
    return is_archived and not state.profile.has(Quirk.STALLS_AFTER_ABORT)  # rule 24.1


def _aborted_batches(fetched: FetchedRecords) -> Iterator[RecordBatch]:
    """Go through the data batches whose transaction was aborted (rule 7.10, step 1)."""
    listed = sorted(fetched.aborted_transactions, key=lambda transaction: transaction.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in fetched.batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        while listed and listed[-1].first_offset <= batch.last_offset:
            aborting.add(listed.pop().producer_id)
        if batch.control is ControlType.ABORT:
            aborting.discard(batch.producer_id)
        elif (batch.is_transactional or batch.control is not None) and batch.producer_id in aborting:
            yield batch


def without(acquired: Iterable[AcquiredRecords], aborted: Sequence[RecordBatch]) -> Iterator[AcquiredRecords]:
    """Cut the ranges of *aborted* out of those of *acquired*, both in ascending order (rule 7.10, step 3)."""
    index = 0
    for first, last, count in acquired:
        while index < len(aborted) and aborted[index].last_offset < first:
            index += 1
        begin, cut = first, index
        while cut < len(aborted) and aborted[cut].first_offset <= last:
            if begin < aborted[cut].first_offset:
                yield AcquiredRecords(begin, aborted[cut].first_offset - 1, count)
            begin = aborted[cut].last_offset + 1
            cut += 1
        if begin <= last:
            yield AcquiredRecords(begin, last, count)


# ---- the log start


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
        state.move_start(offset, state.delivery_complete_count)
        state.move_end(offset)
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
        if not batch.is_split:
            count += max(0, high - low + 1) if batch.cell.state in TERMINAL else 0
        elif low <= high:
            count += sum(size for cell, size in batch.tally(low, high).items() if cell.state in TERMINAL)
    return count
