"""
The content of a write, as brokers form it and as the KIP shows it by example.

Brokers write what has changed, and the SPSO of before the change: the persisted one always lags, and becomes durable
with the next write of any kind. What changed is written range by range, offset by offset where the batch is split, and
never merged.

The KIP's rule, made safe by four amendments: where a new SPSO says everything, nothing else is written. Otherwise the
start offset stays as it is, and what changed is written with what lies before it and is not durable yet, so that a
reader finds no holes.

Source:
    SharePartition.writeShareGroupState (Kafka 4.3.1); KIP-932, "Examples with share-group state".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, assert_never

from attrs import define

from sharestate.partition.advance import start_offset_after
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.state import PartitionState, WriteContent, Writer
from sharestate.values.profiles import Amendment, BrokerWritePolicy, KipWritePolicy, WritePolicy
from sharestate.values.records import RecordState
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState, StateBatch
from sharestate.values.snapshot import KipMemoryRow, KipWriteRow

_UNCHANGED: Final = -1
"""The start offset of a write that leaves the persisted one as it is."""

_NOTHING_KNOWN: Final = KipMemoryRow(UNINITIALIZED_START_OFFSET, 0, ())

_CONFIRMED_BELOW_DURABLE_END: Final = frozenset({Amendment.PLAN_ON_CONFIRMED, Amendment.OWN_CHANGES_DURABLE})
"""With these, every change of a write lies below the durable end once that write is confirmed."""

_FIRST_LOOK: Final = 4
"""The number of records of a split batch that are looked at first to see how far all are durable. [records]"""


def writer_for(policy: WritePolicy, memory: KipMemoryRow | None = None) -> Writer:
    """Return the writer that follows *policy*, with the *memory* of the one that it continues."""
    match policy:
        case BrokerWritePolicy():
            return BrokerWrites()
        case KipWritePolicy():
            return KipWrites(policy, memory)
        case _:
            assert_never(policy)


# ---- the broker's


class BrokerWrites(Writer):
    """The policy of brokers, which remembers nothing (rule 15)."""

    def on_initialized(self, state: PartitionState, persisted: PersistedState) -> None:
        """Write nothing: the start offset becomes durable with the first change."""

    def is_written(self, state: PartitionState, last_offset: int) -> bool:  # noqa: ARG002 - as every Writer
        """Return True."""
        return True

    def content(self, state: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:  # noqa: ARG002 - as every Writer
        """Return all of *entries*, with the SPSO as it is."""
        return state.start_offset, entries

    def on_unwritten(self, first_offset: int, last_offset: int) -> None:
        """Remember nothing."""

    def on_confirmed(self, number: int) -> None:
        """Remember nothing."""

    def on_failed(self, number: int) -> None:
        """Remember nothing."""

    def withdraw(self, number: int) -> None:
        """Do nothing: it remembers no write."""

    def snapshot(self) -> None:
        """Return nothing."""


# ---- the KIP's


class KipWrites(Writer):
    """
    The policy of the KIP, which remembers what was confirmed and what is not answered (rule 15).

    Complexity:
        A write is linear in what it carries, in the records that have changed in other ways since the one before it or
        that none has carried yet, and in those that the SPSO could pass; its answer is linear in the ranges of which it
        says that their locks have expired. Neither depends on how many other writes are pending, but for bisection.
    """

    def __init__(self, policy: KipWritePolicy, memory: KipMemoryRow | None = None) -> None:
        """Begin, or go on from *memory*."""
        stored_start, durable_end, pending = memory or _NOTHING_KNOWN
        self._policy = policy
        self._stored_start = stored_start
        """The highest start offset that may be persisted; -1 until one is for sure."""
        self._durable_end = durable_end
        """The first offset from which on nothing is persisted."""
        self._pending: dict[int, KipWriteRow] = {}
        self._pending_starts = 0
        """The number of pending writes that carry a start offset. [writes]"""
        self._expired = ExpiredRecords()
        self._unsure = UnsureRecords()
        for row in pending:
            self._remember(row)

    def snapshot(self) -> KipMemoryRow:
        """Return what it remembers."""
        return KipMemoryRow(self._stored_start, self._durable_end, tuple(self._pending.values()))

    def on_initialized(self, state: PartitionState, persisted: PersistedState) -> WriteContent | None:
        """Write the start offset if none is persisted."""
        self._stored_start = persisted.start_offset
        ends = (batch.last_offset + 1 for batch in persisted.state_batches)
        self._durable_end = max(ends, default=persisted.start_offset)
        if self._is_start_known:
            return None
        self._remember(KipWriteRow(state.next_write, state.start_offset, state.start_offset, ()))
        return state.start_offset, ()

    def is_written(self, state: PartitionState, last_offset: int) -> bool:
        """Return whether the records reach the SPSO: what lies below it is persisted by the SPSO."""
        return last_offset >= state.start_offset

    def content(self, state: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:
        """Return the write of those *entries* that lie at or above the SPSO, of which there is one at least."""
        changed = sorted(
            batch._replace(first_offset=max(batch.first_offset, state.start_offset))
            for batch in entries
            if self.is_written(state, batch.last_offset)
        )
        expired = merged(batch._replace(delivery_state=RecordState.ACQUIRED) for batch in changed) if is_final else ()
        row = KipWriteRow(state.next_write, _UNCHANGED, _UNCHANGED, expired)
        self._expired.add(row)  # from now on they count as before until they are confirmed, but in this write
        start, batches = content = self._content(state, changed)
        end = batches[-1].last_offset + 1 if batches else start
        self._keep(row._replace(start_offset=start, end_offset=end))
        if not self._policy.has(Amendment.PLAN_ON_CONFIRMED):
            self._durable_end = max(self._durable_end, end)
        return content

    def on_unwritten(self, first_offset: int, last_offset: int) -> None:
        """Look at these records again."""
        self._unsure.forget(first_offset, last_offset)

    def on_confirmed(self, number: int) -> None:
        """Forget write *number*, and rely on it from now on."""
        row = self._forget(number)
        self._stored_start = max(self._stored_start, row.start_offset)
        self._durable_end = max(self._durable_end, row.end_offset)

    def on_failed(self, number: int) -> None:
        """Forget write *number*, which may have been applied all the same."""
        row = self._forget(number)
        if self._is_start_known:
            self._stored_start = max(self._stored_start, row.start_offset)
        for expired in row.expired:  # no longer as before the expiry
            self._unsure.forget(expired.first_offset, expired.last_offset)

    def withdraw(self, number: int) -> None:
        """Forget write *number*, which is not issued; do nothing if there is none."""
        if number in self._pending:
            self._forget(number)

    def _forget(self, number: int) -> KipWriteRow:
        row = self._pending.pop(number)
        self._pending_starts -= row.start_offset != _UNCHANGED
        self._expired.remove(row)
        return row

    def _remember(self, row: KipWriteRow) -> None:
        self._expired.add(row)
        self._keep(row)

    def _keep(self, row: KipWriteRow) -> None:
        self._pending[row.number] = row
        self._pending_starts += row.start_offset != _UNCHANGED

    def _content(self, state: PartitionState, changed: Sequence[StateBatch]) -> WriteContent:
        is_confirmed_only = self._policy.has(Amendment.PLAN_ON_CONFIRMED)
        planned = PlannedRecords(state, changed, self._expired if is_confirmed_only else None)
        start = start_offset_after(state, planned)
        durable_end = max(self._durable_end, state.start_offset)
        last = changed[-1].last_offset
        if start > state.start_offset and start >= durable_end and self._may_be_short(start, last):
            return start, ()
        if self._is_overdue(start):
            return start, merged(projected(planned.between(start, max(durable_end - 1, last))))
        below = [
            batch._replace(last_offset=min(batch.last_offset, durable_end - 1))
            for batch in changed
            if batch.first_offset < durable_end
        ]
        if self._policy.amendments >= _CONFIRMED_BELOW_DURABLE_END:
            unsure = self._unsure.between(durable_end, last, planned.before)
            filler = _overlaid(unsure, tuple(projected(changed)))
        else:
            filler = projected(planned.between(durable_end, last))
        needs_start = self._policy.has(Amendment.START_KNOWN_FIRST) and not self._is_start_known
        return state.start_offset if needs_start else _UNCHANGED, merged([*below, *filler])

    def _may_be_short(self, start: int, last: int) -> bool:
        """Return whether *start* alone may be written of a change that ends at *last*."""
        demands = {
            Amendment.OWN_CHANGES_DURABLE: last < start,
            Amendment.START_KNOWN_FIRST: self._is_start_known,
            Amendment.ONE_START_AT_A_TIME: self._pending_starts == 0 and start >= self._stored_start,
        }
        return self._policy.has_short_form and all(
            is_met for amendment, is_met in demands.items() if self._policy.has(amendment)
        )

    def _is_overdue(self, start: int) -> bool:
        """Return whether the persisted start offset lags so far behind *start* that it has to be written."""
        bound = self._policy.bound
        if bound is None or not self._is_start_known or self._pending_starts > 0:
            return False
        return start - self._stored_start >= bound

    @property
    def _is_start_known(self) -> bool:
        return self._stored_start != UNINITIALIZED_START_OFFSET


class PlannedRecords:
    """
    The records of a share partition as a write counts on them.

    The changes that it carries count as if they were confirmed. Records of another pending write count as they were
    before it, and so do those of which a pending write says that their locks have expired.

    Complexity:
        Linear in the records of split batches that are asked for and in the whole ones, logarithmic in what has changed
        or expired elsewhere.
    """

    def __init__(self, state: PartitionState, changed: Sequence[StateBatch], expired: ExpiredRecords | None) -> None:
        """
        Plan a write.

        Args:
            state: Whose records they are.
            changed: What the write carries, in ascending order.
            expired: The records of pending expiries; None if whatever is pending counts as if it were confirmed.
        """
        self._state = state
        self._changed = changed
        self._expired = expired

    def between(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        """Go through the cached records of a range, run by run; what is not cached is left out."""
        return _overlaid(self._counted_between(first_offset, last_offset), self._changed)

    def before(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        """Go through the same without the changes that the write carries, as they are persisted."""
        return projected(self._counted_between(first_offset, last_offset))

    def _counted_between(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        runs = self._cached(first_offset, last_offset)
        return runs if self._expired is None else _overlaid(runs, self._expired.between(first_offset, last_offset))

    def is_durable(self, batch: Batch, offset: int) -> bool:  # noqa: ARG002 - as every Durability
        """Return whether the record at *offset* is durable once the write is."""
        return next(self.between(offset, offset)).delivery_state in TERMINAL

    def durable_last(self, batch: Batch) -> int:
        """Return the last offset of *batch* up to which every record is; first_offset - 1 if the first is not."""
        first = self._first_unsure(batch)
        size = _FIRST_LOOK if batch.is_split else batch.size
        while first <= batch.last_offset:
            last = min(first + size - 1, batch.last_offset)
            for run in self.between(first, last):
                if run.delivery_state not in TERMINAL:
                    return run.first_offset - 1
            first, size = last + 1, 2 * size
        return batch.last_offset

    def _first_unsure(self, batch: Batch) -> int:
        """Return the first offset of *batch* that is not durable yet, or of which that is not confirmed."""
        first, end = batch.first_offset, batch.durable_end()
        expired = None if self._expired is None else self._expired.first_from(first)
        return end if expired is None else min(max(first, expired), end)

    def _cached(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        """Go through a range; neighbors are put together here, so that the many of a full cache are soon few."""
        first = end = first_offset
        counted: Cell | None = None
        for low, high, cell in self._cells(first_offset, last_offset):
            if (
                counted is None
                or low != end
                or cell.state is not counted.state
                or cell.delivery_count != counted.delivery_count
            ):
                if counted is not None:
                    yield StateBatch(first, end - 1, counted.state, counted.delivery_count)
                first, counted = low, cell
            end = high + 1
        if counted is not None:
            yield StateBatch(first, end - 1, counted.state, counted.delivery_count)

    def _cells(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, Cell]]:
        for batch in self._state.in_flight.from_floor(first_offset, last_offset):
            low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
            if low > high:
                continue
            if not batch.is_split:
                yield low, high, self._counted(batch.cell)
                continue
            for cell, run in groupby(map(self._counted, batch.part(low, high))):
                size = len(tuple(run))
                yield low, low + size - 1, cell
                low += size

    def _counted(self, cell: Cell) -> Cell:
        return cell if cell.rollback is None or self._expired is None else cell.rollback


class UnsureRecords:
    """
    The records from the durable end on, as a write carries them that has changed others: as they were confirmed last.

    They are kept from one write to the next. Members that acquire them do not change them, nor does a write that is not
    answered or fails; a write that is confirmed moves the durable end past what it changes.

    Complexity:
        Linear in the runs that are returned and in what is not known; a word is moved for each run behind that.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._runs: list[StateBatch] = []
        """Those of what was looked at, equal neighbors in one."""
        self._begin = self._end = 0
        """What was looked at: the first offset, and the one after the last."""
        self._stale: list[tuple[int, int]] = []
        """The ranges, first and last offset, that have to be looked at again."""

    def between(
        self, first_offset: int, last_offset: int, look: Callable[[int, int], Iterable[StateBatch]]
    ) -> list[StateBatch]:
        """Return the runs of a range from the durable end on; *look* returns those of what is not known."""
        if not self._begin <= first_offset <= self._end:
            self._runs, self._end, self._stale = [], first_offset, []
        self._begin = first_offset
        del self._runs[: self._cut(first_offset)]
        for first, last in self._stale:
            if last >= first_offset:
                self._put(max(first, first_offset), last, look)
        self._stale.clear()
        if last_offset >= self._end:
            self._put(self._end, last_offset, look)
            self._end = last_offset + 1
        found = self._runs[: bisect_right(self._runs, last_offset, key=_FIRST_OFFSET)]
        if found:
            found[-1] = found[-1]._replace(last_offset=min(found[-1].last_offset, last_offset))
        return found

    def forget(self, first_offset: int, last_offset: int) -> None:
        """Look at a range again."""
        if first_offset < self._end:
            self._stale.append((first_offset, min(last_offset, self._end - 1)))

    def _put(self, first_offset: int, last_offset: int, look: Callable[[int, int], Iterable[StateBatch]]) -> None:
        """Replace the runs of a range by what *look* returns, and put equal neighbors together."""
        low, high = self._cut(first_offset), self._cut(last_offset + 1)
        below, above = self._runs[max(low - 1, 0) : low], self._runs[high : high + 1]
        self._runs[low - len(below) : high + len(above)] = merged([*below, *look(first_offset, last_offset), *above])

    def _cut(self, offset: int) -> int:
        """Return the position of the first run at or after *offset*; a run that holds it is cut in two there."""
        index = bisect_left(self._runs, offset, key=_LAST_OFFSET)
        if index < len(self._runs) and self._runs[index].first_offset < offset:
            run = self._runs[index]
            self._runs[index : index + 1] = run._replace(last_offset=offset - 1), run._replace(first_offset=offset)
            index += 1
        return index


class ExpiredRecords:
    """
    The records of which pending writes say that their locks have expired, with their delivery counts before that.

    A record may have expired in several of these writes; until the oldest of them is answered it counts as it was
    before that one.

    Complexity:
        Adding and removing a write is linear in its ranges and in the runs within them, and logarithmic in the others.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._runs: list[_ExpiredRun] = []
        """Runs that do not overlap, in ascending order."""

    def between(self, first_offset: int, last_offset: int) -> Sequence[StateBatch]:
        """Return the runs that reach into a range."""
        low = bisect_left(self._runs, first_offset, key=_LAST_OFFSET)
        high = bisect_right(self._runs, last_offset, key=_FIRST_OFFSET)
        return [run.before for run in self._runs[low:high]]

    def first_from(self, offset: int) -> int | None:
        """Return where the first run begins that reaches beyond *offset*, or to it; None if there is none."""
        index = bisect_left(self._runs, offset, key=_LAST_OFFSET)
        return self._runs[index].first_offset if index < len(self._runs) else None

    def add(self, row: KipWriteRow) -> None:
        """Take in the records that have expired in a write, which is the youngest."""
        for first, last, _, count in row.expired:
            low, high = self._cut(first), self._cut(last + 1)
            runs, expected = [], first
            for run in self._runs[low:high]:
                if expected < run.first_offset:
                    runs.append(_ExpiredRun(expected, run.first_offset - 1, {row.number: count}))
                run.delivery_counts[row.number] = count
                runs.append(run)
                expected = run.last_offset + 1
            if expected <= last:
                runs.append(_ExpiredRun(expected, last, {row.number: count}))
            self._runs[low:high] = runs

    def remove(self, row: KipWriteRow) -> None:
        """Forget the records that have expired in a write."""
        for first, last, *_ in row.expired:
            low, high = self._cut(first), self._cut(last + 1)
            runs = self._runs[low:high]
            for run in runs:
                del run.delivery_counts[row.number]
            self._runs[low:high] = [run for run in runs if run.delivery_counts]

    def _cut(self, offset: int) -> int:
        """Return the position of the first run at or after *offset*; a run that holds it is cut in two there."""
        index = bisect_left(self._runs, offset, key=_LAST_OFFSET)
        if index < len(self._runs) and self._runs[index].first_offset < offset:
            run = self._runs[index]
            self._runs.insert(index, _ExpiredRun(run.first_offset, offset - 1, dict(run.delivery_counts)))
            run.first_offset = offset
            index += 1
        return index


@define
class _ExpiredRun:
    first_offset: int
    last_offset: int
    delivery_counts: dict[int, int]
    """The delivery count before each write that says that the locks have expired; the oldest write comes first."""

    @property
    def before(self) -> StateBatch:
        """The records as they were before the oldest write."""
        count = next(iter(self.delivery_counts.values()))
        return StateBatch(self.first_offset, self.last_offset, RecordState.ACQUIRED, count)


_FIRST_OFFSET: Final = attrgetter("first_offset")
_LAST_OFFSET: Final = attrgetter("last_offset")


def _overlaid(runs: Iterable[StateBatch], layer: Sequence[StateBatch]) -> Iterator[StateBatch]:
    """Go through *runs* with those of *layer*, which ascend, in their place where they have some in common."""
    for run in runs:
        first = run.first_offset
        for index in range(bisect_left(layer, first, key=_LAST_OFFSET), len(layer)):
            over = layer[index]
            if over.first_offset > run.last_offset:
                break
            if over.first_offset > first:
                yield run._replace(first_offset=first, last_offset=over.first_offset - 1)
                first = over.first_offset
            last = min(over.last_offset, run.last_offset)
            yield over._replace(first_offset=first, last_offset=last)
            first = last + 1
        if first <= run.last_offset:
            yield run._replace(first_offset=first)


def projected(runs: Iterable[StateBatch]) -> Iterator[StateBatch]:
    """Return *runs* as they are persisted: what is being delivered was not delivered yet."""
    for run in runs:
        if run.delivery_state == RecordState.ACQUIRED:
            yield run._replace(delivery_state=RecordState.AVAILABLE, delivery_count=run.delivery_count - 1)
        else:
            yield run


def merged(runs: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """Return *runs*, which ascend, with equal neighbors in one."""
    result: list[StateBatch] = []
    for run in runs:
        last = result[-1] if result else None
        if last is not None and last.last_offset + 1 == run.first_offset and last[2:] == run[2:]:
            result[-1] = last._replace(last_offset=run.last_offset)
        else:
            result.append(run)
    return tuple(result)
