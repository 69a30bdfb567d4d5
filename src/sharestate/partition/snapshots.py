"""
A share partition to a snapshot, and back.

Cells refer to locks and writes, which refer to batches, which hold the cells: in a snapshot they all do so by number.
How many cells a lock still waits for, and from where on, is counted again when it is restored.
"""

from __future__ import annotations

from itertools import groupby, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from attrs import fields

from sharestate.errors import InvariantError, SnapshotError
from sharestate.partition.batch import Batch
from sharestate.partition.cells import NOBODY, Cell, unowned
from sharestate.partition.gaps import GapWindow
from sharestate.partition.invariants import check
from sharestate.partition.ledger import Ledger
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Lock
from sharestate.partition.pending import PendingWrite
from sharestate.partition.writers import writer_for
from sharestate.values.records import RecordState
from sharestate.values.snapshot import Snapshot
from sharestate.values.snapshot_rows import BatchRow, CellRow, KipMemoryRow, LockRow, RangeRow, RunRow, WriteRow
from sharestate.values.write_policies import KipWritePolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sharestate.partition.chronicle import Chronicle
    from sharestate.partition.writing import Writer
    from sharestate.values.profiles import Profile
    from sharestate.values.requests import StateBatch

_LIFECYCLES: Final = MappingProxyType({lifecycle.value: lifecycle for lifecycle in Lifecycle})

_READ_PENDING: Final[Mapping[Lifecycle, Collection[bool]]] = MappingProxyType(
    {Lifecycle.INITIALIZING: {True}, Lifecycle.FENCED: {True, False}}
)
"""Whether a read may be pending; in the other states it is not."""

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
)
"""The fields that are the same in both."""


_FEWEST_PERSISTED: Final = -(2**15)
"""The smallest delivery count that can be read, on which every delivery adds one. [deliveries]"""


def take_snapshot(ledger: Ledger) -> Snapshot:
    """Return everything about *ledger*; linear in the batches and the records of split ones."""
    rows: dict[CellRow, int] = {}
    batches = tuple(_batch_row(batch, rows) for batch in ledger.in_flight)
    locks = {cell.lock for batch in ledger.in_flight for cell in batch.cells if cell.lock is not None}
    return Snapshot(
        **{name: getattr(ledger, name) for name in _PLAIN},
        profile=ledger.profile,
        lifecycle=ledger.lifecycle.value,
        gap_window=None if ledger.gap_window is None else RangeRow(*ledger.gap_window),
        next_lock=ledger.locks.next_creation,
        locks=tuple(sorted(LockRow(lock.creation, lock.deadline_ms) for lock in locks)),
        writes=tuple(_write_row(number, change) for number, change in sorted(ledger.writes.items())),
        cells=tuple(rows),
        batches=batches,
        kip_memory=ledger.writer.memory(),
    )


def _batch_row(batch: Batch, rows: dict[CellRow, int]) -> BatchRow:
    positions = {cell: _position(cell, rows) for cell in dict.fromkeys(batch.cells)}
    runs = groupby(map(positions.__getitem__, batch.cells))
    return BatchRow(
        batch.first_offset,
        batch.last_offset,
        batch.is_split,
        tuple(RunRow(sum(1 for _ in run), position) for position, run in runs),
    )


def _position(cell: Cell, rows: dict[CellRow, int]) -> int:
    """Return the position of the row of *cell*; cells that look alike share one, so that the snapshots are equal."""
    row = CellRow(
        cell.state,
        cell.delivery_count,
        cell.member_id,
        None if cell.lock is None else cell.lock.creation,
        None if cell.write is None else cell.write.number,
        None if cell.before is None else _position(cell.before, rows),
        cell.has_fired,
    )
    return rows.setdefault(row, len(rows))


def _write_row(number: int, change: PendingWrite | None) -> WriteRow:
    if change is None:
        return WriteRow(number, None, ())
    ranges = tuple(RangeRow(first, last) for _, first, last in change.ranges())
    return WriteRow(number, change.delivery_count_limit, ranges)


def restore_ledger(snapshot: Snapshot, profile: Profile, chronicle: Chronicle | None = None) -> Ledger:
    """
    Return the ledger of which *snapshot* was taken.

    Raises:
        SnapshotError: It was taken under another profile, or it contradicts itself; ``field`` names what was wrong.
    """
    if snapshot.profile != profile:
        message = f"taken under {snapshot.profile.name}, which is not the {profile.name} that was asked for"
        raise SnapshotError(message, "profile")
    window = snapshot.gap_window
    ledger = Ledger(
        **{name: getattr(snapshot, name) for name in _PLAIN},
        profile=profile,
        lifecycle=_LIFECYCLES.get(snapshot.lifecycle) or _refuse("lifecycle", f"unknown: {snapshot.lifecycle}"),
        gap_window=None if window is None else GapWindow(*window),
        chronicle=chronicle,
        writer=_writer(snapshot),
    )
    if chronicle is not None:
        chronicle.at_ms = snapshot.now_ms
    if ledger.is_read_pending not in _READ_PENDING.get(ledger.lifecycle, {False}):
        _refuse("is_read_pending", f"{ledger.is_read_pending} does not go with {snapshot.lifecycle}")
    _Restorer(ledger, snapshot).restore()
    try:
        check(ledger)
    except InvariantError as error:
        raise SnapshotError(error.message, "batches") from error
    _expect_same(snapshot, take_snapshot(ledger))
    return ledger


def _writer(snapshot: Snapshot) -> Writer:
    memory = snapshot.kip_memory
    if (memory is not None) is not isinstance(snapshot.profile.write_policy, KipWritePolicy):
        _refuse("kip_memory", "it goes with the KIP's write policy, and with no other")
    if memory is not None:
        _expect_memory(snapshot, memory)
    return writer_for(snapshot.profile.write_policy, memory)


def _expect_memory(snapshot: Snapshot, memory: KipMemoryRow) -> None:
    if [row.number for row in memory.unanswered] != [row.number for row in snapshot.writes]:
        _refuse("kip_memory[2]", "not the writes that were not answered")
    beyond = max(snapshot.start_offset, snapshot.end_offset, *(row.last_offset for row in snapshot.batches)) + 1
    if not memory.stored_start <= memory.durable_end <= beyond:
        _refuse("kip_memory[1]", f"not within {memory.stored_start}..{beyond}")
    for index, (row, write) in enumerate(zip(memory.unanswered, snapshot.writes, strict=True)):
        where = f"kip_memory[2][{index}]"
        if not row.start_offset <= row.end_offset <= beyond:
            _refuse(f"{where}[2]", f"not within {row.start_offset}..{beyond}")
        _expect_lapsed(row.lapsed, write, f"{where}[3]")


def _expect_lapsed(lapsed: Sequence[StateBatch], write: WriteRow, path: str) -> None:
    if lapsed and write.delivery_count_limit is not None:
        _refuse(path, f"write {write.number} carries a change, so it says nothing of lapsed locks")
    previous = -1
    for index, (first, last, state, count) in enumerate(lapsed):
        if state is not RecordState.ACQUIRED or count <= _FEWEST_PERSISTED:
            _refuse(f"{path}[{index}]", "locks lapse of records that were delivered")
        if not previous < first <= last:
            _refuse(f"{path}[{index}]", f"{first}-{last} does not ascend after {previous}")
        previous = last


def _expect_same(snapshot: Snapshot, again: Snapshot) -> None:
    """Refuse a snapshot that no share partition gives: one that is out of order, or says what nothing refers to."""
    pairs = zip_longest(snapshot.cells, again.cells)
    different = [f"cells[{index}]" for index, (given, expected) in enumerate(pairs) if given != expected]
    different += [
        field.name for field in fields(Snapshot) if getattr(snapshot, field.name) != getattr(again, field.name)
    ]
    if different:
        _refuse(different[0], "not as any share partition would give it")


def _refuse(field: str, message: str) -> NoReturn:
    raise SnapshotError(message, field)


class _Restorer:
    """Puts batches, cells, locks and writes back into a ledger."""

    def __init__(self, ledger: Ledger, snapshot: Snapshot) -> None:
        self._ledger = ledger
        self._snapshot = snapshot
        self._deadlines = dict(snapshot.locks)
        self._locks: dict[int, Lock] = {}

    def restore(self) -> None:
        for index, (number, limit, _) in enumerate(self._snapshot.writes):
            if number >= self._snapshot.next_write:
                _refuse(f"writes[{index}][0]", f"the next write is {self._snapshot.next_write}")
            self._ledger.writes[number] = None if limit is None else PendingWrite.unanswered(number, limit)
        for index, row in enumerate(self._snapshot.batches):
            self._restore_batch(row, f"batches[{index}]")
        for index, write in enumerate(self._snapshot.writes):
            self._restore_ranges(write, f"writes[{index}][2]")
        self._ledger.locks.next_creation = self._snapshot.next_lock

    def _restore_batch(self, row: BatchRow, path: str) -> None:
        first, last, is_split, runs = row
        if sum(size for size, _ in runs) != (last - first + 1 if is_split else 1):
            _refuse(f"{path}[3]", f"the runs do not make up {first}-{last}")
        if is_split and last - first >= self._snapshot.split_limit:
            _refuse(f"{path}[2]", f"larger than what is ever split: {self._snapshot.split_limit}")
        batch = Batch(first, last, [], is_split=is_split)
        cells = {position: self._restore_cell(batch, position, f"{path}[3]") for _, position in runs}
        for size, position in runs:
            self._hold(cells[position], size, first + len(batch.cells))
            batch.cells += [cells[position]] * size
        self._ledger.in_flight.add(batch)

    def _restore_cell(self, batch: Batch, position: int, path: str) -> Cell:
        if position >= len(self._snapshot.cells):
            _refuse(path, f"there is no cell {position}")
        state, count, member_id, lock, write, before, has_fired = self._snapshot.cells[position]
        if (member_id, lock, write) == (NOBODY, None, None):
            return unowned(state, count)
        where = f"cells[{position}]"
        if before is not None and before >= position:
            _refuse(f"{where}[5]", f"cell {before} does not stand before cell {position}")
        return Cell(
            state,
            count,
            member_id,
            None if lock is None else self._restore_lock(batch, lock, f"{where}[3]"),
            None if write is None else self._ledger.writes.get(write) or _refuse(f"{where}[4]", f"no write {write}"),
            None if before is None else self._restore_cell(batch, before, where),
            has_fired,
        )

    def _restore_lock(self, batch: Batch, creation: int, path: str) -> Lock:
        if creation not in self._locks:
            if not creation < self._snapshot.next_lock or creation not in self._deadlines:
                _refuse(path, f"no lock {creation}")
            self._locks[creation] = Lock.idle(self._deadlines[creation], creation, batch)
        return self._locks[creation]

    def _hold(self, cell: Cell, size: int, first_offset: int) -> None:
        if cell.lock is not None and not cell.has_fired:
            self._ledger.locks.hold_again(cell.lock, size, first_offset)

    def _restore_ranges(self, row: WriteRow, path: str) -> None:
        change = self._ledger.writes[row.number]
        if change is None:
            return
        covered: set[int] = set()
        for first, last in row.ranges:
            batch = self._ledger.in_flight.floor(first)
            if batch is None or not first <= last <= batch.last_offset:
                _refuse(path, f"{first}-{last} is not cached")
            change.wait_for(batch, first, last)
            covered |= {id(batch)} if not batch.is_split else set(range(first, last + 1))
        if not covered.issuperset(self._waiting(change)):
            _refuse(path, "not every record that waits for it")

    def _waiting(self, change: PendingWrite) -> Iterator[int]:
        """Go through the records that wait for *change*: the offsets of split batches, and the whole ones."""
        for batch in self._ledger.in_flight:
            for offset, cell in enumerate(batch.cells, batch.first_offset):
                if cell.write is change:
                    yield offset if batch.is_split else id(batch)
