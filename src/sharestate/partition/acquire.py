"""
A member acquires what was fetched.

First it is decided whether anything is acquired, how much, and from which offset on. Then all steps are planned before
the first is taken, so a refusal changes nothing: offsets that are not cached become new batches, and available ones
that are cached are delivered again.

Source:
    SharePartition.acquire, acquireNewBatchRecords, createBatches, acquireSubsetBatchRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, Protocol

from attrs import define

from sharestate.errors import SplitLimitError
from sharestate.partition.aborted import aborted_batches, archive_aborted, without
from sharestate.partition.advance import advance
from sharestate.partition.batches import Batch
from sharestate.partition.capacity import capacity
from sharestate.partition.cells import Cell, unowned
from sharestate.partition.compacted import archive_compacted
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import LockedRecords
from sharestate.partition.state import PartitionState
from sharestate.partition.throttling import is_throttled, offered_runs, threshold
from sharestate.values.effects import NOTHING, Cause, Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import Quirk
from sharestate.values.records import AcquiredRecords, AcquireMode, RecordBatch, RecordState

_ACTIVE: Final = Lifecycle.ACTIVE  # naming the class first costs as much as two calls
_NEVER_DELIVERED: Final = unowned(RecordState.AVAILABLE, 0)


def acquire(  # noqa: PLR0913 - the parts of a fetch request
    state: PartitionState,
    member_id: str,
    fetched: FetchedRecords,
    max_records: int,
    batch_size: int,
    mode: AcquireMode,
) -> Effects:
    """
    Acquire for *member_id* what it may have of *fetched* (rules 7 and 7.1).

    Returns:
        What it has acquired; and that fetches are woken if what the log no longer offers was archived, and the SPSO has
        advanced over it.

    Complexity:
        O(log n) in the batches, linear in the records that are looked at.
    """
    if _is_one_new_batch(state, fetched, max_records, batch_size):
        log = fetched.batches
        return with_acquired((_add(state, member_id, log[0].first_offset, log[-1].last_offset),))
    if max_records <= 0 or not _is_eligible(state, fetched):
        return NOTHING
    position = None  # to return to: the natural gap is skipped before the steps are planned
    if _is_at_natural_gap(state, fetched):
        position = state.position()
        _skip_natural_gaps(state, fetched)
        if not _is_eligible(state, fetched):
            return NOTHING
    limit, last_offset = capacity(state, fetched, max_records)
    if limit <= 0:
        return NOTHING
    log, is_strict = fetched.batches, mode is AcquireMode.RECORD_LIMIT
    request = Request(member_id, log[0].first_offset, log, last_offset, limit, batch_size, is_strict)
    try:
        steps = _plan(state, request)
    except SplitLimitError:
        if position is not None:
            state.return_to(position)
        raise
    return _take(state, request, fetched, steps)


def _take(state: PartitionState, request: Request, fetched: FetchedRecords, steps: Sequence[Step]) -> Effects:
    """Take all of *steps*, and archive what *fetched* shows that the log no longer offers."""
    advances = False
    if fetched.fetch_offset < request.first_offset:
        advances = archive_compacted(state, fetched.fetch_offset, request.first_offset)
    acquired = [records for step in steps for records in step.take(state, request)]
    if acquired:
        state.shrink_gap_window(acquired[-1].last_offset + 1)
        aborted = aborted_batches(fetched)
        if aborted:
            advances |= archive_aborted(state, aborted)
            acquired = [*without(acquired, aborted)]
    # rules 16 and 24.1
    effects = with_acquired(tuple(acquired))
    return effects._replace(wake=True) if advances and advance(state) else effects


def with_acquired(acquired: tuple[AcquiredRecords, ...]) -> Effects:
    """Return the effects of a command that has only *acquired* records, or none."""
    return new_tuple(Effects, (acquired, (), False, (), None, ())) if acquired else NOTHING


def _is_eligible(state: PartitionState, fetched: FetchedRecords) -> bool:
    # rule 7.1
    return (
        state.lifecycle is _ACTIVE
        and len(fetched.batches) > 0
        and fetched.batches[-1].last_offset >= state.start_offset
    )


def _is_one_new_batch(state: PartitionState, fetched: FetchedRecords, max_records: int, batch_size: int) -> bool:
    """
    Return whether all of *fetched* becomes one batch after all that is cached: no step has to be planned.

    That is what most fetches are, and a third of the cost of a whole batch would be to plan it.
    """
    # rules 7.1, 7.2, 7.4, 7.5, 7.8, 7.9 and 7.10, where nothing is in their way
    log = fetched.batches
    if state.lifecycle is not _ACTIVE or len(log) == 0:
        return False
    first, last = log[0].first_offset, log[-1].last_offset
    size, cached = last - first + 1, state.in_flight_count
    return (
        size <= max_records
        and size <= batch_size
        and size <= state.config.max_record_locks - cached
        and (first > state.end_offset or cached == 0)
        and state.start_offset <= first <= fetched.fetch_offset
        and state.gap_window is None
        and not fetched.aborted_transactions
    )


def _plan(state: PartitionState, request: Request) -> Sequence[Step]:
    # rules 7.4 and 7.5
    first, last = request.first_offset, request.last_offset
    base = max(first, state.start_offset)
    overlap: Sequence[Batch] = ()
    if state.in_flight and first <= state.end_offset:  # else nothing is cached there
        base = _base_offset(state, first)
        first = min(first, base)
        overlap = state.in_flight.beginning_in(first, last)
    if first > last:  # rule 24.2, B1': the log was compacted, and the window is full
        return ()
    if overlap:
        return tuple(plan_overlap(state, request, base, overlap))
    return (plan_new(state, request, base, last, request.limit),)


def _base_offset(state: PartitionState, first_fetched: int) -> int:
    """Return where the acquisition begins: at the cached batch that holds *first_fetched*, or not below the SPSO."""
    # rules 7.4 and 24.1
    floor = state.in_flight.floor(first_fetched)
    if floor is not None and floor.last_offset >= first_fetched:
        return floor.first_offset
    # Kafka lifts the base to the SPSO only if no batch in flight begins before the fetched data (B6).
    if floor is None or not state.profile.has(Quirk.ACQUIRES_BELOW_START):
        return max(first_fetched, state.start_offset)
    return first_fetched


# ---- natural gaps: offsets that the log does not have


def _is_at_natural_gap(state: PartitionState, fetched: FetchedRecords) -> bool:
    """
    Return whether *fetched* shows that the log has nothing at the SPSO, which no cached batch covers (rule 24.1).

    Kafka waits there for ever (rule 24.1): no batch ever covers the SPSO, so it cannot advance. Healed, the first fetch
    that begins after the gap shows that there is nothing in it.
    """
    if not fetched.fetch_offset <= state.start_offset < fetched.batches[0].first_offset:
        return False
    if state.profile.has(Quirk.STALLS_AT_NATURAL_GAP) or not state.in_flight:
        return False
    floor = state.in_flight.floor(state.start_offset)
    return floor is None or floor.last_offset < state.start_offset


def _skip_natural_gaps(state: PartitionState, fetched: FetchedRecords) -> None:
    """Move the SPSO to where *fetched* shows that the log goes on, and past durable records on the way (rule 24.1)."""
    first_fetched = fetched.batches[0].first_offset
    while _is_at_natural_gap(state, fetched):  # a durable batch may lie between two gaps
        following = state.in_flight.higher(state.start_offset)
        state.move_start(first_fetched if following is None else min(first_fetched, following.first_offset))
        state.extend_end(state.start_offset)
        state.lift_gap_window(state.start_offset)
        advance(state)


# ---- the steps


@define
class Request:
    """
    One member's request for records of one fetch, as far as there is capacity for it.

    Attributes:
        member_id: The member that acquires.
        first_offset: The first offset that was fetched.
        log: The batches of the log that were fetched, in ascending order; at least one.
        last_offset: The last offset that may be acquired.
        limit: How many records may be acquired. [records]
        batch_size: New batches are cut at batches of the log as soon as they have as many records. [records]
        is_strict: Whether *limit* is never exceeded; else it is rounded up to batches of the log.
    """

    member_id: str
    first_offset: int
    log: Sequence[RecordBatch]
    last_offset: int
    limit: int
    batch_size: int
    is_strict: bool

    def log_index(self, offset: int) -> int:
        """Return the index of the last batch of the log that begins at or before *offset*; -1 if there is none."""
        return bisect_right(self.log, offset, key=itemgetter(0)) - 1

    def log_batch_end(self, offset: int) -> int:
        """Return the last offset of the log's batch that holds *offset*; *offset* itself if none does."""
        index = self.log_index(offset)
        return max(offset, self.log[index].last_offset) if index >= 0 else offset


class Step(Protocol):
    """A part of an acquisition, planned and not taken yet."""

    def take(self, state: PartitionState, request: Request) -> list[AcquiredRecords]:
        """Change the state, and return what the member acquires."""


# ---- new records


class AddBatches:
    """Acquire records of a range of the log in which nothing is cached (rule 7.8)."""

    __slots__ = ("count", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, count: int) -> None:
        """Plan to cache first_offset..last_offset, and to acquire its first *count* records."""
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.count = count

    def take(self, state: PartitionState, request: Request) -> list[AcquiredRecords]:
        """Cache the range in one batch or more, and lock what the member acquires."""
        if self.count < self.last_offset - self.first_offset + 1:
            return [self._add_partly(state, request.member_id)]
        if request.is_strict or self.count <= request.batch_size:
            return [_add(state, request.member_id, self.first_offset, self.last_offset)]
        return [_add(state, request.member_id, first, last) for first, last in self._ranges(request)]

    def _ranges(self, request: Request) -> Iterator[tuple[int, int]]:
        """Cut the range before batches of the log, so that each piece has batch_size offsets at least (rule 7.9)."""
        first = self.first_offset
        size, log = request.batch_size, request.log
        for index in range(request.log_index(first) + 1, len(log)):
            base = log[index].first_offset
            if base > self.last_offset:
                break
            if base - first >= size:
                yield first, base - 1
                first = base
        yield first, self.last_offset

    def _add_partly(self, state: PartitionState, member_id: str) -> AcquiredRecords:
        """Acquire the first records of a batch; the others are cached as available, never delivered (rule 20.1)."""
        first, last = self.first_offset, self.first_offset + self.count - 1
        records = LockedRecords(first, self.count)
        lock = state.locks.create(state.lock_deadline_ms, member_id, first, records)
        held = _NEVER_DELIVERED.acquired(member_id, lock)
        cells = [held] * self.count + [_NEVER_DELIVERED] * (self.last_offset - last)
        batch = Batch(first, self.last_offset, cells)
        _cache(state, batch)
        state.record(batch, first, self.last_offset, {held: Cause.ACQUIRED, _NEVER_DELIVERED: Cause.CACHED})
        return AcquiredRecords(first, last, held.delivery_count)


def _add(state: PartitionState, member_id: str, first_offset: int, last_offset: int) -> AcquiredRecords:
    lock = state.locks.create(state.lock_deadline_ms, member_id, first_offset)
    held = _NEVER_DELIVERED.acquired(member_id, lock)
    batch = Batch(first_offset, last_offset, held)
    _cache(state, batch)
    if state.recorder is not None:
        state.recorder.record_one(first_offset, last_offset, held, Cause.ACQUIRED, None)
    return new_tuple(AcquiredRecords, (first_offset, last_offset, held.delivery_count))


def _cache(state: PartitionState, batch: Batch) -> None:
    """Cache a new batch, and move the SPSO and the SPEO to it where they belong (rule 7.8, steps 3 to 5)."""
    state.add_batch(batch)
    first = batch.first_offset
    if first != state.start_offset and state.in_flight.first is batch:  # there is no record from the SPSO up to here
        state.move_start(first)
    state.extend_end(batch.last_offset)


def plan_new(state: PartitionState, request: Request, first_offset: int, last_offset: int, limit: int) -> AddBatches:
    """
    Plan to acquire *limit* records of a range in which nothing is cached (rules 7.8, 20.1 and 24.5).

    The limit is rounded up to a batch of the log. In batch_optimized mode the member acquires all of that; in
    record_limit mode as many as it wants, and the rest is cached.

    Raises:
        SplitLimitError: A batch of the log is too large to be kept record by record.
    """
    if limit < last_offset - first_offset + 1:
        rounded = request.log_batch_end(first_offset + limit - 1)
        # In the gap window the range ends before the next cached batch, and a log batch may reach beyond that.
        last_offset = rounded if state.active_gap_window is None else min(rounded, last_offset)
    size = last_offset - first_offset + 1
    if not request.is_strict or size <= limit:
        return AddBatches(first_offset, last_offset, size)
    if size > state.split_limit:
        raise state.split_refusal(first_offset, last_offset)
    return AddBatches(first_offset, last_offset, limit)


# ---- cached records


class TakeBatch:
    """Acquire all of a whole batch (rule 7.6, step 5)."""

    __slots__ = ("batch", "count")

    def __init__(self, batch: Batch) -> None:
        """Plan to acquire *batch*."""
        self.batch = batch
        self.count = batch.size

    def take(self, state: PartitionState, request: Request) -> list[AcquiredRecords]:
        """Lock the batch for the member."""
        first, last = self.batch.first_offset, self.batch.last_offset
        lock = state.locks.create(state.lock_deadline_ms, request.member_id, first)
        held = self.batch.cell.acquired(request.member_id, lock)
        state.put_cells(self.batch, first, [held])
        state.taken(first, last)
        state.record(self.batch, first, last, {held: Cause.ACQUIRED})
        return [AcquiredRecords(first, last, held.delivery_count)]


class TakeRecords:
    """Acquire runs of records of one batch, which is split for it (rule 7.6, step 4)."""

    __slots__ = ("batch", "count", "low", "runs")

    def __init__(self, batch: Batch, low: int, runs: Sequence[tuple[int, int, Cell]]) -> None:
        """Plan to acquire *runs* (first, last, cell): the first acquirable records of *batch* from *low* on."""
        self.batch = batch
        self.low = low
        self.runs = runs
        self.count = sum(last - first + 1 for first, last, _ in runs)

    def take(self, state: PartitionState, request: Request) -> list[AcquiredRecords]:
        """Lock each record for the member; neighbors with equal counts are returned as one range."""
        batch = self.batch
        if not batch.is_split:
            batch.split(state.locks)
        first, last = self.runs[0][0], self.runs[-1][1]
        state.taken(self.low, last)
        member_id, records = request.member_id, LockedRecords(first, self.count)
        lock = state.locks.create(state.lock_deadline_ms, member_id, batch.first_offset, records)
        held = {cell: cell.acquired(member_id, lock) for _, _, cell in self.runs}
        acquired: list[AcquiredRecords] = []
        for run_first, run_last, cell in self.runs:
            state.put_cells(batch, run_first, [held[cell]] * (run_last - run_first + 1))
            count = held[cell].delivery_count
            if acquired and acquired[-1].last_offset + 1 == run_first and acquired[-1].delivery_count == count:
                acquired[-1] = acquired[-1]._replace(last_offset=run_last)
            else:
                acquired.append(AcquiredRecords(run_first, run_last, count))
        state.record(batch, first, last, dict.fromkeys(held.values(), Cause.ACQUIRED))
        return acquired


class Throttled:
    """Acquire nothing: available records that are held back are recorded as such, and stay as they are (rule 20.3)."""

    __slots__ = ("batches",)

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Plan to leave what is still available of *batches*."""
        self.batches = batches

    def take(self, state: PartitionState, request: Request) -> list[AcquiredRecords]:
        """Record them."""
        if state.recorder is not None:
            for batch in self.batches:
                low = max(batch.first_offset, request.first_offset)
                high = min(batch.last_offset, request.last_offset)
                available = (cell for cell in batch.distinct() if cell.is_acquirable)
                state.record(batch, low, high, dict.fromkeys(available, Cause.THROTTLED))
        return []


def plan_overlap(state: PartitionState, request: Request, base_offset: int, overlap: Sequence[Batch]) -> Iterator[Step]:
    """
    Plan to acquire what is available of the cached batches *overlap*, and what was fetched between and after them.

    Offsets between two batches are acquired only in an active gap window; elsewhere the log has nothing there.

    Raises:
        SplitLimitError: A batch is too large to be split.
    """
    # rules 7.6 and 7.7
    window = state.active_gap_window
    gap_offset, remaining = base_offset, request.limit
    for index, batch in enumerate(overlap):
        if remaining <= 0:
            return
        if window is not None:
            first = _not_below_start(state, gap_offset)
            if first < batch.first_offset:
                gap = plan_new(state, request, first, batch.first_offset - 1, remaining)
                remaining -= gap.count
                yield gap
            gap_offset = batch.last_offset + 1
            if remaining <= 0:
                return
        throttles = _is_throttled(state, request, batch)
        if throttles and remaining < request.limit:
            yield Throttled(overlap[index:])
            return
        step = _plan_batch(state, request, batch, remaining, throttles=throttles)
        if step is not None:
            remaining -= step.count
            yield step
            if throttles:
                yield Throttled(overlap[index:] if remaining > 0 else (batch,))
                return
    first = _not_below_start(state, overlap[-1].last_offset + 1)
    if remaining > 0 and first <= request.last_offset:
        yield plan_new(state, request, first, request.last_offset, remaining)


def _not_below_start(state: PartitionState, offset: int) -> int:
    # rule 24.1
    return offset if state.profile.has(Quirk.ACQUIRES_BELOW_START) else max(offset, state.start_offset)


def _plan_batch(
    state: PartitionState, request: Request, batch: Batch, remaining: int, *, throttles: bool
) -> TakeBatch | TakeRecords | None:
    # rules 7.6, 20.1 and 24.5
    is_full = request.first_offset <= batch.first_offset and batch.last_offset <= request.last_offset
    if is_full and not batch.is_split and not throttles and not (request.is_strict and batch.size > remaining):
        return TakeBatch(batch) if batch.cell.is_acquirable else None
    low = max(request.first_offset, batch.first_offset)
    high = min(request.last_offset, batch.last_offset)
    budget = remaining if request.is_strict else None
    looked_from = _looked_from(state, batch, low)
    runs = list(offered_runs(batch, looked_from, high, state.config.delivery_count_limit, budget))
    if not runs:
        return None
    if not batch.is_split and state.in_flight.is_oversized(batch):
        raise state.split_refusal(batch.first_offset, batch.last_offset)
    return TakeRecords(batch, low, runs)


def _looked_from(state: PartitionState, batch: Batch, low: int) -> int:
    """Return from where on *batch* has to be looked at for acquirable records at or after *low*."""
    return max(low, state.acquirable_from) if batch.is_split else low


def _is_throttled(state: PartitionState, request: Request, batch: Batch) -> bool:
    """Return whether an acquirable record of *batch* that was fetched has been delivered too often (rule 20.3)."""
    least = threshold(state.config.delivery_count_limit)
    if state.most_delivered < least:
        return False
    low = _looked_from(state, batch, max(request.first_offset, batch.first_offset))
    high = min(request.last_offset, batch.last_offset)
    return any(is_throttled(cell, least) for _, _, cell in batch.parts(low, high))
