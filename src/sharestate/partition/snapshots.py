"""
A share partition to a snapshot, and back.

In a snapshot cells refer to locks, writes and each other by number. How many cells wait for a lock, and from which
offset on, is counted again when it is restored.

A snapshot may come from anywhere: it is bounded before anything is made of it, and refused if no share partition would
have given it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NoReturn

from sharestate.errors import InvariantError, MalformedInputError, SnapshotError
from sharestate.partition.batches import Batch
from sharestate.partition.cells import NO_MEMBER, Cell, PendingCell, unowned
from sharestate.partition.invariants import check
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Lock, LockedRecords
from sharestate.partition.recorder import TransitionRecorder
from sharestate.partition.state import FinalWrite, GapWindow, PartitionState, PendingWrite, Writer
from sharestate.partition.write_policies import writer_for
from sharestate.values.checks import MAX_INT64, expect
from sharestate.values.config import ShareConfig
from sharestate.values.named_tuples import new_tuple
from sharestate.values.profiles import KipWritePolicy, Profile
from sharestate.values.records import RecordState, SharePartitionKey
from sharestate.values.requests import StateBatch
from sharestate.values.snapshot import (
    BatchRow,
    CellRow,
    DeadLetterRow,
    KipMemoryRow,
    LockRow,
    RangeRow,
    RunRow,
    Snapshot,
    WriteRow,
)

_LIFECYCLES: Final = MappingProxyType({lifecycle.value: lifecycle for lifecycle in Lifecycle})

_READ_PENDING: Final[Mapping[Lifecycle, Collection[bool]]] = MappingProxyType(
    {Lifecycle.INITIALIZING: {True}, Lifecycle.FENCED: {True, False}}
)
"""The values that ``is_read_pending`` may have, by state; it is False in the others."""

_PLAIN: Final = (
    "key",
    "leader_epoch",
    "config",
    "split_limit",
    "is_read_pending",
    "state_epoch",
    "start_offset",
    "end_offset",
    "delivery_complete_count",
    "find_next",
    "now_ms",
    "next_write",
    "next_dead_letter",
)
"""The fields that are the same in both."""

_FEWEST_PERSISTED: Final = -(2**15)
"""The smallest delivery count that can be read, on which every delivery adds one. [deliveries]"""

_CLASSES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "key": SharePartitionKey,
        "config": ShareConfig,
        "lifecycle": str,
        **dict.fromkeys(("is_read_pending", "find_next"), bool),
        **dict.fromkeys(("leader_epoch", "state_epoch", "now_ms", "split_limit"), int),
        **dict.fromkeys(("next_write", "next_lock", "next_dead_letter"), int),
        **dict.fromkeys(("start_offset", "end_offset", "delivery_complete_count"), int),
    }
)
"""The classes of the fields that are not made of rows."""

_CELL_CLASSES: Final = (RecordState, int, str, bool)
"""The classes of a cell's state, delivery count, owner and whether its lock has expired."""

_BATCH_CLASSES: Final = (bool, tuple)
"""The classes of whether a batch is split, and of its runs."""

_HEAD_ROOM: Final = 2**62
"""Numbers that only grow must lie below this, so that commands to come stay within 64 bits."""


_NOT_GIVEN: Final = "not as any share partition would give it"


def take_snapshot(state: PartitionState) -> Snapshot:
    """Return everything about *state*; linear in the batches and the records of split ones."""
    rows: dict[CellRow, int] = {}
    batches = tuple([_batch_row(batch, rows) for batch in state.in_flight])
    locks = {cell.lock for batch in state.in_flight for cell in batch.distinct() if cell.lock is not None}
    return Snapshot(
        **_others(state),
        locks=tuple(sorted(LockRow(lock.creation, lock.deadline_ms) for lock in locks)),
        cells=tuple(rows),
        batches=batches,
    )


def _others(state: PartitionState) -> dict[str, Any]:
    """Return all fields of a snapshot but those that grow with the batches: locks, cells and batches."""
    return {
        **{name: getattr(state, name) for name in _PLAIN},
        "profile": state.profile,
        "lifecycle": state.lifecycle.value,
        "gap_window": None if state.gap_window is None else RangeRow(*state.gap_window),
        "next_lock": state.locks.next_creation,
        "writes": tuple(_write_row(number, pending) for number, pending in sorted(state.writes.items())),
        "dead_letters": tuple(DeadLetterRow(number, letter) for number, letter in sorted(state.dead_letters.items())),
        "kip_memory": state.writer.snapshot(),
    }


def _batch_row(batch: Batch, rows: dict[CellRow, int]) -> BatchRow:
    first, last = batch.first_offset, batch.last_offset
    if not batch.is_split:
        return new_tuple(BatchRow, (first, last, False, (new_tuple(RunRow, (1, _position(batch.cell, rows))),)))
    positions = {cell: _position(cell, rows) for cell in batch.distinct()}
    runs = groupby(map(positions.__getitem__, batch.cells))
    sizes = [new_tuple(RunRow, (len(list(run)), position)) for position, run in runs]
    return new_tuple(BatchRow, (first, last, True, tuple(sizes)))


def _position(cell: Cell, rows: dict[CellRow, int]) -> int:
    """Return the position of the row of *cell*; equal cells share one, so that equal snapshots have equal rows."""
    row = new_tuple(
        CellRow,
        (
            cell.state,
            cell.delivery_count,
            cell.member_id,
            None if cell.lock is None else cell.lock.creation,
            cell.write,
            None if cell.rollback is None else _position(cell.rollback, rows),
            cell.lock_expired,
        ),
    )
    return rows.setdefault(row, len(rows))


def _write_row(number: int, pending: PendingWrite | FinalWrite) -> WriteRow:
    if isinstance(pending, FinalWrite):
        return WriteRow(number, None, (), pending.dead_letters, pending.wakes)
    ranges = tuple(RangeRow(first, last) for _, first, last in pending.ranges)
    return WriteRow(number, pending.delivery_count_limit, ranges, pending.dead_letters, wakes=False)


def restore_state(
    snapshot: Snapshot, profile: Profile, *, max_records: int, recorder: TransitionRecorder | None = None
) -> PartitionState:
    """
    Return the state of which *snapshot* was taken.

    Args:
        snapshot: The snapshot.
        profile: The profile under which it must have been taken.
        max_records: How many records its split batches may have in all, and the largest that may be split. [records]
        recorder: Records transitions from now on, if it is given.

    Raises:
        SnapshotError: It was taken under another profile, is too large, or contradicts itself.
    """
    try:
        return _restored(snapshot, profile, max_records, recorder)
    except SnapshotError:
        raise
    except MalformedInputError as error:
        raise SnapshotError(error.message, error.field) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A snapshot that was made by hand, not read or taken, may hold anything anywhere.
        message = f"parts of the wrong type: {error}"
        raise SnapshotError(message, "snapshot") from error


def _restored(
    snapshot: Snapshot, profile: Profile, max_records: int, recorder: TransitionRecorder | None
) -> PartitionState:
    if snapshot.profile != profile:
        message = f"taken under {snapshot.profile.name}, which is not the {profile.name} that was asked for"
        raise SnapshotError(message, "profile")
    _expect_bounds(snapshot, max_records)
    window = snapshot.gap_window
    state = PartitionState(
        **{name: getattr(snapshot, name) for name in _PLAIN},
        profile=profile,
        lifecycle=_LIFECYCLES.get(snapshot.lifecycle) or _refuse("lifecycle", f"unknown: {snapshot.lifecycle}"),
        gap_window=None if window is None else GapWindow(*window),
        recorder=recorder,
        writer=_writer(snapshot),
        most_delivered=MAX_INT64,  # nobody has looked yet
    )
    if recorder is not None:
        recorder.at_ms = snapshot.now_ms
    if window is not None and not 0 <= window.first_offset <= window.last_offset:
        _refuse("gap_window", f"{window.first_offset}-{window.last_offset} is no range of offsets")
    if state.config.dead_letter_queue and not profile.has_dead_letter_queue:
        _refuse("config.dead_letter_queue", f"{profile.name} has none")
    if state.is_read_pending not in _READ_PENDING.get(state.lifecycle, {False}):
        _refuse("is_read_pending", f"{state.is_read_pending} does not go with {snapshot.lifecycle}")
    restorer = _Restorer(state, snapshot)
    restorer.restore()
    try:
        check(state)
    except InvariantError as error:
        raise SnapshotError(error.message, "batches") from error
    # With Kafka's bugs it may be too large, and too small or negative after the SPSO has moved back (B9b, B22).
    if not -_HEAD_ROOM < state.delivery_complete_count < _HEAD_ROOM:
        _refuse("delivery_complete_count", f"not within -{_HEAD_ROOM}..{_HEAD_ROOM}")
    restorer.expect_given()
    return state


def _expect_bounds(snapshot: Snapshot, max_records: int) -> None:
    """Refuse a snapshot of which too much would be made, before anything is."""
    for name, class_ in _CLASSES.items():
        expect(getattr(snapshot, name), class_, name)
    for name in ("next_write", "next_lock", "next_dead_letter"):
        if getattr(snapshot, name) >= _HEAD_ROOM:
            _refuse(name, f"not below {_HEAD_ROOM}")
    records = 0
    for index, (first, last, is_split, _) in enumerate(snapshot.batches):
        size = last - first + 1
        if is_split and size > snapshot.split_limit:
            _refuse(f"batches[{index}][2]", f"larger than what is ever split: {snapshot.split_limit}")
        records += size if is_split else 1
        if records > max_records:
            _refuse(
                f"batches[{index}]", f"the batches have more than {max_records} records; raise max_records to allow it"
            )
        if max_records < size <= snapshot.split_limit:
            _refuse(f"batches[{index}]", f"more than {max_records} records may be split; raise max_records to allow it")
    _expect_no_chains(snapshot.cells)


def _expect_no_chains(cells: Sequence[CellRow]) -> None:
    for index, row in enumerate(cells):
        if row.rollback is not None and row.rollback >= index:
            _refuse(f"cells[{index}][5]", f"cell {row.rollback} does not stand before cell {index}")
        if row.rollback is not None and cells[row.rollback].rollback is not None:
            _refuse(f"cells[{index}][5]", f"cell {row.rollback} has a pending write itself")


_MOST_EXPIRIES: Final = 2**20
"""What a policy may have to remember: each takes some 80 bytes, and nested ranges have the square of their number."""


def _writer(snapshot: Snapshot) -> Writer:
    memory = snapshot.kip_memory
    if (memory is not None) is not isinstance(snapshot.profile.write_policy, KipWritePolicy):
        _refuse("kip_memory", "it goes with the KIP's write policy, and with no other")
    if memory is not None:
        _expect_memory(snapshot, memory)
    return writer_for(snapshot.profile.write_policy, memory)


def _expect_memory(snapshot: Snapshot, memory: KipMemoryRow) -> None:
    if [row.number for row in memory.pending] != [row.number for row in snapshot.writes]:
        _refuse("kip_memory[2]", "not the writes that were not answered")
    beyond = max(snapshot.start_offset, snapshot.end_offset, *(row.last_offset for row in snapshot.batches)) + 1
    for index, offset in enumerate((memory.stored_start, memory.durable_end)):
        if offset > beyond:
            _refuse(f"kip_memory[{index}]", f"beyond {beyond}")
    for index, (row, write) in enumerate(zip(memory.pending, snapshot.writes, strict=True)):
        where = f"kip_memory[2][{index}]"
        if not row.start_offset <= row.end_offset <= beyond:
            _refuse(f"{where}[2]", f"not within {row.start_offset}..{beyond}")
        _expect_expired(row.expired, write, f"{where}[3]")
    if _expiries(memory) > _MOST_EXPIRIES:
        _refuse("kip_memory[2]", f"more than {_MOST_EXPIRIES} expiries of records that overlap")


def _expiries(memory: KipMemoryRow) -> int:
    """Return in how many writes the records have expired, for all their runs together."""
    starts: Counter[int] = Counter()
    for row in memory.pending:
        for first, last, *_ in row.expired:
            starts[first] += 1
            starts[last + 1] -= 1
    return sum(accumulate(count for _, count in sorted(starts.items())))


def _expect_expired(expired: Sequence[StateBatch], write: WriteRow, path: str) -> None:
    if expired and write.delivery_count_limit is not None:
        _refuse(path, f"write {write.number} carries a change, so it names no expired locks")
    previous = -1
    for index, (first, last, state, count) in enumerate(expired):
        if state is not RecordState.ACQUIRED or count <= _FEWEST_PERSISTED:
            _refuse(f"{path}[{index}]", "locks expire of records that were delivered")
        if not previous < first <= last:
            _refuse(f"{path}[{index}]", f"{first}-{last} does not ascend after {previous}")
        previous = last


def _expect_order(snapshot: Snapshot) -> None:
    """Refuse rows of cells that do not stand where they are first referred to, and neighbors that share one."""
    cells, seen = snapshot.cells, 0
    for index, row in enumerate(snapshot.batches):
        previous = None
        for _, position in row.runs:
            if position == previous:
                _refuse(f"batches[{index}][3]", _NOT_GIVEN)
            previous = position
            if position >= seen:
                seen += cells[position].rollback == seen
                if position != seen:
                    _refuse(f"cells[{seen}]", _NOT_GIVEN)
                seen += 1
    if seen < len(cells):
        _refuse(f"cells[{seen}]", _NOT_GIVEN)
    if len(set(cells)) < seen:
        _refuse("cells", f"one of them twice, {_NOT_GIVEN}")


def _refuse(field: str, message: str) -> NoReturn:
    raise SnapshotError(message, field)


class _Restorer:
    """Puts batches, cells, locks and writes back into a state."""

    def __init__(self, state: PartitionState, snapshot: Snapshot) -> None:
        self._state = state
        self._snapshot = snapshot
        self._deadlines = dict(snapshot.locks)
        self._locks: dict[int, Lock] = {}
        self._waiting: list[Lock] = []
        self._pending = {row.number for row in snapshot.writes if row.delivery_count_limit is not None}

    def restore(self) -> None:
        state, snapshot = self._state, self._snapshot
        state.in_flight.extend(self._batches())
        state.locks.restore(self._waiting, snapshot.next_lock)
        for index, write in enumerate(snapshot.writes):
            self._restore_write(write, f"writes[{index}]")
        for index, (number, letter) in enumerate(snapshot.dead_letters):
            if number >= snapshot.next_dead_letter:
                _refuse(f"dead_letters[{index}][0]", f"the next request is {snapshot.next_dead_letter}")
            state.dead_letters[number] = letter
        self._expect_reached()

    def expect_given(self) -> None:
        """Refuse what no share partition gives: rows out of order, twice, or that nothing refers to."""
        for name in ("locks", "cells", "batches"):
            expect(getattr(self._snapshot, name), tuple, name)
        _expect_order(self._snapshot)
        if sorted(self._locks) != [creation for creation, _ in self._snapshot.locks]:
            _refuse("locks", _NOT_GIVEN)
        for name, value in _others(self._state).items():
            if getattr(self._snapshot, name) != value:
                _refuse(name, _NOT_GIVEN)

    def _batches(self) -> Iterator[Batch]:
        end = None
        for index, row in enumerate(self._snapshot.batches):
            first, last, is_split, runs = row
            if (type(is_split), type(runs)) != _BATCH_CLASSES:
                _refuse(f"batches[{index}]", "parts of the wrong type")
            if last < first or (end is not None and first < end):
                _refuse(f"batches[{index}]", f"{first}-{last} is reversed, or does not lie behind the batch before it")
            end = last + 1
            yield Batch(first, last, self._records(index, row) if is_split else self._whole(index, row))

    def _whole(self, index: int, row: BatchRow) -> Cell:
        runs = row.runs
        if len(runs) != 1 or runs[0].size != 1:
            _refuse(f"batches[{index}][3]", "a whole batch has one cell")
        cell = self._cell(index, row, runs[0].cell)
        if cell.lock is not None and not cell.lock_expired:
            self._waiting.append(cell.lock)
        return cell

    def _records(self, index: int, row: BatchRow) -> list[Cell]:
        first, last, _, runs = row
        sizes = [size for size, _ in runs]
        if sum(sizes) != last - first + 1 or min(sizes) < 1:
            _refuse(f"batches[{index}][3]", f"the runs do not make up {first}-{last}")
        made = {position: self._cell(index, row, position) for _, position in runs}
        cells: list[Cell] = []
        for size, position in runs:
            cell = made[position]
            if cell.lock is not None and not cell.lock_expired and (records := cell.lock.records) is not None:
                if not records.holders:
                    records.cursor = first + len(cells)
                    self._waiting.append(cell.lock)
                records.holders += size
            cells += [cell] * size
        return cells

    def _cell(self, index: int, batch: BatchRow, position: int) -> Cell:
        """Return the cell of a row, which lies in ``batches[index]``."""
        if not 0 <= position < len(self._snapshot.cells):
            _refuse(f"batches[{index}][3]", f"there is no cell {position}")
        state, count, member_id, lock, write, rollback, lock_expired = self._snapshot.cells[position]
        if (type(state), type(count), type(member_id), type(lock_expired)) != _CELL_CLASSES:
            _refuse(f"cells[{position}]", "parts of the wrong type")
        if write is None:
            if rollback is not None or lock_expired:
                _refuse(f"cells[{position}]", "no write is pending, and it rolls back")
            if lock is None and member_id == NO_MEMBER:
                return unowned(state, count)
            return Cell(state, count, member_id, self._lock(batch, position, lock, member_id))
        if write not in self._pending:
            _refuse(f"cells[{position}][4]", f"no write {write}")
        if member_id != NO_MEMBER:
            _refuse(f"cells[{position}]", "a pending transition takes a record from its owner")
        before = None if rollback is None else self._cell(index, batch, rollback)
        held = self._lock(batch, position, lock, NO_MEMBER if before is None else before.member_id)
        return PendingCell(state, count, held, write, before, lock_expired)

    def _lock(self, batch: BatchRow, position: int, creation: int | None, member_id: str) -> Lock | None:
        if creation is None:
            return None
        lock = self._locks.get(creation)
        if lock is None:
            if not creation < self._snapshot.next_lock or creation not in self._deadlines:
                _refuse(f"cells[{position}][3]", f"no lock {creation}")
            first = batch.first_offset
            records = LockedRecords(first, 0) if batch.is_split else None
            lock = self._locks[creation] = Lock(self._deadlines[creation], creation, member_id, first, records)
        return lock

    def _restore_write(self, row: WriteRow, path: str) -> None:
        number, limit, ranges, dead_letters, wakes = row
        if number >= self._snapshot.next_write:
            _refuse(f"{path}[0]", f"the next write is {self._snapshot.next_write}")
        if wakes and (limit is not None or dead_letters):
            _refuse(f"{path}[4]", "only the second write of dead letters wakes fetches")
        if limit is None:
            self._state.writes[number] = FinalWrite(dead_letters, wakes)
            return
        for (_, last), (first, _) in pairwise(sorted(ranges)):
            if first <= last:
                _refuse(f"{path}[2]", f"two of its ranges hold {first}")
        restored = tuple((self._batch_of(first, last, f"{path}[2]"), first, last) for first, last in ranges)
        self._state.writes[number] = PendingWrite(number, limit, restored, dead_letters)

    def _batch_of(self, first: int, last: int, path: str) -> Batch:
        """Return the batch that holds a range of a write; a whole one is answered as a whole."""
        batch = self._state.in_flight.floor(first)
        if batch is None or not first <= last <= batch.last_offset:
            _refuse(path, f"{first}-{last} is not cached")
        if not batch.is_split and (first, last) != (batch.first_offset, batch.last_offset):
            _refuse(path, f"{first}-{last} is a part of {batch}, which is whole")
        return batch

    def _expect_reached(self) -> None:
        """
        Refuse records that wait for a write and are in none of its ranges, and writes for which none waits.

        Complexity:
            Linear in the runs and ranges of the snapshot, logarithmic in the ranges of one write; many ranges may hold
            the same record of a large batch, so records are not counted one by one.
        """
        writes = {
            row.number: (f"writes[{index}][2]", sorted(row.ranges)) for index, row in enumerate(self._snapshot.writes)
        }
        reached = set()
        for first, last, is_split, runs in self._snapshot.batches:
            offset = first
            for size, position in runs:
                low, offset = offset, offset + size if is_split else last + 1
                write = self._snapshot.cells[position].write
                if write is not None:
                    path, ranges = writes[write]
                    if not _covers(ranges, low, offset - 1):
                        _refuse(path, "not every record that waits for it")
                    reached.add(write)
        if lost := self._pending - reached:
            _refuse(writes[min(lost)][0], "no record waits for it")


def _covers(ranges: Sequence[RangeRow], first_offset: int, last_offset: int) -> bool:
    """Return whether *ranges*, which ascend without overlap, hold every offset from *first_offset* to *last_offset*."""
    for index in range(bisect_left(ranges, first_offset, key=itemgetter(1)), len(ranges)):
        first, last = ranges[index]
        if first_offset < first or last_offset <= last:
            return first <= first_offset
        first_offset = last + 1
    return False
