"""
Spec 7.6 and 7.7: a fetch that overlaps what is cached: what is available of it is delivered again, then comes the rest.

Source:
    SharePartition.acquire, acquireSubsetBatchRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.errors import SplitLimitError
from sharestate.partition.chronicle import itself
from sharestate.partition.gaps import active_window
from sharestate.partition.new_batches import plan_new
from sharestate.partition.throttle import is_throttled, offered_runs
from sharestate.values.profiles import Quirk
from sharestate.values.records import AcquiredRecords, AcquireMode
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sharestate.partition.acquisition import Acquisition, Step
    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger


class WholeBatch:
    """The step that acquires all of a whole batch."""

    __slots__ = ("batch",)

    def __init__(self, batch: Batch) -> None:
        """Plan to acquire *batch*."""
        self.batch = batch

    @property
    def count(self) -> int:
        """How many records it takes. [records]"""
        return self.batch.size

    def take(self, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
        """Lock the batch for the member."""
        first, last = self.batch.first_offset, self.batch.last_offset
        lock = ledger.locks.create(ledger.lock_deadline_ms, self.batch, first, last, 1)
        cell = self.batch.cells[0].acquired(acquisition.member_id, lock)
        self.batch.cells[0] = cell
        if ledger.chronicle is not None:
            ledger.chronicle.tell(first, last, cell, Cause.ACQUIRED)
        return [AcquiredRecords(first, last, cell.delivery_count)]


class SomeRecords:
    """The step that acquires runs of records of one batch, which is split for it."""

    __slots__ = ("batch", "count", "runs")

    def __init__(self, batch: Batch, runs: Sequence[tuple[int, int, Cell]]) -> None:
        """Plan to acquire *runs* of *batch*: first offset, last offset and cell of each."""
        self.batch = batch
        self.runs = runs
        self.count = sum(last - first + 1 for first, last, _ in runs)

    def take(self, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
        """Lock each record for the member; neighbours with equal counts are told as one range."""
        batch = self.batch
        if not batch.is_split:
            batch.split(ledger.locks)
        first, last = self.runs[0][0], self.runs[-1][1]
        lock = ledger.locks.create(ledger.lock_deadline_ms, batch, first, last, self.count)
        held = {cell: cell.acquired(acquisition.member_id, lock) for _, _, cell in self.runs}
        told: list[AcquiredRecords] = []
        for run_first, run_last, cell in self.runs:
            batch.replace(run_first, [held[cell]] * (run_last - run_first + 1))
            count = held[cell].delivery_count
            if told and told[-1].last_offset + 1 == run_first and told[-1].delivery_count == count:
                told[-1] = told[-1]._replace(last_offset=run_last)
            else:
                told.append(AcquiredRecords(run_first, run_last, count))
        if ledger.chronicle is not None:
            ledger.chronicle.tell_cells(batch, first, last, itself(held.values()), lambda _: Cause.ACQUIRED)
        return told


class Withheld:
    """The step that takes nothing: what is available and held back is only told of, if somebody wants to know."""

    __slots__ = ("batches", "count")

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Plan to leave what is still available of *batches* as it is."""
        self.batches = batches
        self.count = 0

    def take(self, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
        """Tell of it."""
        if ledger.chronicle is not None:
            for batch in self.batches:
                low = max(batch.first_offset, acquisition.first_offset)
                high = min(batch.last_offset, acquisition.last_offset)
                withheld = itself(cell for cell in batch.cells if cell.is_acquirable)
                ledger.chronicle.tell_cells(batch, low, high, withheld, lambda _: Cause.THROTTLED)
        return []


def plan_overlap(
    ledger: Ledger, acquisition: Acquisition, base_offset: int, overlap: Sequence[Batch]
) -> Iterator[Step]:
    """
    Plan to acquire what is available of the cached batches *overlap*, and what was fetched between and after them.

    Offsets between two batches are acquired only in an active gap window; elsewhere the log has nothing there.

    Raises:
        SplitLimitError: A batch is too large to be split.
    """
    window = active_window(ledger)
    gap_offset, remaining = base_offset, acquisition.limit
    for index, batch in enumerate(overlap):
        if remaining <= 0:
            return
        if window is not None:
            first = _from_start(ledger, gap_offset)
            if first < batch.first_offset:
                gap = plan_new(ledger, acquisition, first, batch.first_offset - 1, remaining)
                remaining -= gap.count
                yield gap
            gap_offset = batch.last_offset + 1
            if remaining <= 0:
                return
        is_throttling = _is_throttling(ledger, acquisition, batch)
        if is_throttling and remaining < acquisition.limit:
            yield Withheld(overlap[index:])
            return
        step = _plan_batch(ledger, acquisition, batch, remaining, is_throttling=is_throttling)
        if step is not None:
            remaining -= step.count
            yield step
            if is_throttling:
                yield Withheld(overlap[index:] if remaining > 0 else (batch,))
                return
    first = _from_start(ledger, overlap[-1].last_offset + 1)
    if remaining > 0 and first <= acquisition.last_offset:
        yield plan_new(ledger, acquisition, first, acquisition.last_offset, remaining)


def _is_throttling(ledger: Ledger, acquisition: Acquisition, batch: Batch) -> bool:
    limit = ledger.config.delivery_count_limit
    return is_throttled(batch, acquisition.first_offset, acquisition.last_offset, limit)


def _from_start(ledger: Ledger, offset: int) -> int:
    return offset if ledger.profile.has(Quirk.B6) else max(offset, ledger.start_offset)


def _plan_batch(
    ledger: Ledger, acquisition: Acquisition, batch: Batch, remaining: int, *, is_throttling: bool
) -> Step | None:
    is_full = acquisition.first_offset <= batch.first_offset and batch.last_offset <= acquisition.last_offset
    is_strict = acquisition.mode is AcquireMode.RECORD_LIMIT
    if is_full and not batch.is_split and not is_throttling and not (is_strict and batch.size > remaining):
        return WholeBatch(batch) if batch.cells[0].is_acquirable else None
    low = max(acquisition.first_offset, batch.first_offset)
    high = min(acquisition.last_offset, batch.last_offset)
    budget = remaining if is_strict else None
    runs = list(offered_runs(batch, low, high, ledger.config.delivery_count_limit, budget))
    if not runs:
        return None
    if not batch.is_split and batch.size > ledger.split_limit:
        message = f"the batch {batch.first_offset}-{batch.last_offset} is too large to be split"
        raise SplitLimitError(message, batch.first_offset, batch.last_offset, ledger.split_limit)
    return SomeRecords(batch, runs)
