"""
In-flight batches, whole or split into their records, in the order of their first offsets.

A batch holds references to cells: a single one while it is whole, a list with one for each offset once it is split. A
batch is never merged, cut or renamed, and a split one never becomes whole again.

Source:
    InFlightBatch; SharePartition.cachedState, a ConcurrentSkipListMap (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeVar

from sharestate.partition.cells import Cell
from sharestate.partition.locks import Lock, LockedRecords, Locks

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_FEW: Final = 4
"""As many cells are looked at one by one. [cells]"""

_FIRST_SLICE: Final = 32
"""As many cells are looked at first where a walk usually ends soon. [cells]"""


def as_range(offsets: tuple[int, ...]) -> Sequence[int]:
    """Return *offsets* as a range if they ascend in equal steps: C code then goes through them in one slice."""
    if len(offsets) == 1 or offsets[0] >= offsets[1]:
        return offsets
    steps = range(offsets[0], offsets[-1] + 1, offsets[1] - offsets[0])
    return steps if len(steps) == len(offsets) and tuple(steps) == offsets else offsets


def is_uniform(cells: Sequence[Cell]) -> bool:
    """Return whether *cells*, of which there is at least one, are all the same."""
    # The last one first: counting compares those that differ, which takes ten times as long as where they do not.
    return cells[0] is cells[-1] and cells.count(cells[0]) == len(cells)


def distinct(cells: Sequence[Cell]) -> Iterable[Cell]:
    """Return the distinct ones of *cells*, of which there is at least one, in their order."""
    # Usually there is one: counting it is four times as quick as putting all of them into a dict.
    return cells[:1] if is_uniform(cells) else dict.fromkeys(cells)


def distinct_unordered(cells: Sequence[Cell]) -> Collection[Cell]:
    """Return the distinct ones of *cells*, of which there is at least one, in any order: in half the time."""
    return cells[:1] if is_uniform(cells) else set(cells)


def values_of(table: Mapping[_Key, _Value], keys: Sequence[_Key]) -> tuple[_Value, ...]:
    """
    Return the value that *table* has for each of *keys*, of which there are at least two.

    Raises:
        KeyError: It has none for one of them.
    """
    values: tuple[_Value, ...] = itemgetter(*keys)(table)  # takes half the time of a map
    return values


def replaced(cells: Sequence[Cell], replacements: Mapping[Cell, Cell]) -> Iterable[Cell]:
    """Return *cells*, of which there are at least two, with what *replacements* has in their place."""
    if is_uniform(cells):
        return [replacements.get(cells[0], cells[0])] * len(cells)
    try:
        return values_of(replacements, cells)
    except KeyError:  # cells without a replacement stay: the second argument of get is its default
        return map(replacements.get, cells, cells)


class Batch:
    """
    The records first_offset..last_offset, both included, which were acquired or read together (rule 1).

    Complexity:
        Splitting is linear in the batch; everything else is linear in the range it is asked about, and constant for a
        whole batch.
    """

    __deletable__ = ("cell",)  # for mypyc, whose attributes cannot be deleted else
    __slots__ = ("cell", "cells", "durable_prefix", "first_offset", "is_split", "last_offset")

    cell: Cell
    """Its cell while it is whole; there is none once it is split."""

    cells: list[Cell]
    """The cell of each offset once it is split; there is no list while it is whole."""

    def __init__(self, first_offset: int, last_offset: int, cells: Cell | list[Cell]) -> None:
        """Make a whole batch from its cell, or a split one from a cell for each offset."""
        self.first_offset: Final = first_offset
        # A batch of one record keeps one number: the caller's may be two objects.
        self.last_offset: Final = first_offset if last_offset == first_offset else last_offset
        self.durable_prefix = 0
        """The number of cells at the beginning that are known to be durable; they are not looked at again."""
        if isinstance(cells, Cell):
            self.is_split = False
            self.cell = cells
        else:
            self.is_split = True
            self.cells = cells

    @property
    def size(self) -> int:
        """The number of its offsets. [offsets]"""
        return self.last_offset - self.first_offset + 1

    def __repr__(self) -> str:
        """Return the batch as the rules write it: ``[0-9] ACQUIRED/1/m1``."""
        cells = "|".join(map(repr, self.distinct()))
        return f"[{self.first_offset}-{self.last_offset}]{' split' * self.is_split} {cells}"

    def split(self, locks: Locks) -> None:
        """Keep the records one by one from now on; each gets a lock of its own with the batch's deadline."""
        # rules 1.7 and 24.2
        cell, size, first = self.cell, self.size, self.first_offset
        lock = cell.lock
        if lock is None:
            self.cells = [cell] * size
        else:
            records = LockedRecords(first, size)
            each = Lock(lock.deadline_ms, locks.next_creation, lock.member_id, first, records)
            cells = [cell.with_lock(each)] * size  # before any lock changes: there may not be enough memory
            if not cell.lock_expired:
                locks.release(lock, 1)
            locks.add(each)
            self.cells = cells
        self.is_split = True
        del self.cell

    def at(self, offset: int) -> Cell:
        """Return the cell of *offset*."""
        return self.cells[offset - self.first_offset] if self.is_split else self.cell

    def part(self, first_offset: int, last_offset: int) -> list[Cell]:
        """Return the cells of a range within the batch, one for each offset; the only one if it is whole."""
        if not self.is_split:
            return [self.cell]
        return self.cells[first_offset - self.first_offset : last_offset - self.first_offset + 1]

    def distinct(self) -> Iterable[Cell]:
        """Return the distinct cells of the batch, in their order."""
        return distinct(self.cells) if self.is_split else (self.cell,)

    def runs(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, Cell]]:
        """Go through the runs of a range within the batch that share a cell: first offset, last offset and cell."""
        if not self.is_split:
            yield first_offset, last_offset, self.cell
            return
        offset = first_offset
        for cell, run in groupby(self.part(first_offset, last_offset)):
            size = len(list(run))
            yield offset, offset + size - 1, cell
            offset += size

    def parts(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, Cell]]:
        """Go through the same runs; a long one may come in several parts, so that who takes few looks at few."""
        if not self.is_split:
            yield first_offset, last_offset, self.cell
            return
        offset = first_offset
        for cells in self._slices(first_offset, last_offset):
            for cell, run in groupby(cells):
                size = len(list(run))
                yield offset, offset + size - 1, cell
                offset += size

    def tally(self, first_offset: int, last_offset: int) -> Mapping[Cell, int]:
        """Return the distinct cells of a range within the batch in offset order, with how many references each has."""
        if first_offset == last_offset or not self.is_split:
            return {self.at(first_offset): 1}
        part = self.part(first_offset, last_offset)
        return {part[0]: len(part)} if is_uniform(part) else Counter(part)

    def record_count(self, first_offset: int, last_offset: int, cells: Iterable[Cell]) -> int:
        """Return how many records of a range, clipped to the batch, have one of *cells*."""
        first_offset = max(first_offset, self.first_offset)
        last_offset = min(last_offset, self.last_offset)
        if first_offset > last_offset:
            return 0
        if not self.is_split:
            return last_offset - first_offset + 1 if self.cell in cells else 0
        tally = self.tally(first_offset, last_offset)
        return sum(tally.get(cell, 0) for cell in cells)

    def pick(self, offsets: Sequence[int]) -> list[Cell]:
        """Return the cells of *offsets*, each within the batch, which is split; quicker if they are a range."""
        base, cells = self.first_offset, self.cells
        if isinstance(offsets, range):
            return cells[offsets[0] - base : offsets[-1] - base + 1 : offsets.step]
        return [cells[offset - base] for offset in offsets]

    def durable_end(self) -> int:
        """Return the offset up to which, itself excluded, every record is durable."""
        if not self.is_split:
            return self.last_offset + 1 if self.cell.is_durable else self.first_offset
        cells, count = self.cells, self.durable_prefix
        size, few = len(cells), count + _FEW
        while count < size and cells[count].is_durable:  # usually one record has become so, and a loop is quickest
            count += 1
            if count == few:
                count = _durable_prefix(cells, count)
        self.durable_prefix = count
        return self.first_offset + count

    def first_acquirable(self, from_offset: int) -> int | None:
        """Return the first offset from *from_offset* on that may be acquired now, or None; a whole batch is one."""
        if not self.is_split:
            return self.first_offset if self.cell.is_acquirable else None
        low = max(from_offset, self.first_offset)
        for part in self._slices(low, self.last_offset):
            for cell in distinct(part):
                if cell.is_acquirable:
                    return low + part.index(cell)
            low += len(part)
        return None

    def _slices(self, first_offset: int, last_offset: int) -> Iterator[list[Cell]]:
        """Go through the cells of a range of a split batch in ever larger slices."""
        low, high = first_offset - self.first_offset, last_offset - self.first_offset + 1
        size = _FIRST_SLICE
        while low < high:
            yield self.cells[low : min(low + size, high)]
            low += size
            size *= 4


def _durable_prefix(cells: Sequence[Cell], count: int) -> int:
    """Return how many cells are durable without a break, of which the first *count* are; linear in those after them."""
    window = 2 * _FEW  # C code looks at ever larger slices
    while looked_at := cells[count : count + window]:
        others = [cell for cell in distinct_unordered(looked_at) if not cell.is_durable]
        if others:
            return count + min(map(looked_at.index, others))
        count += len(looked_at)
        window *= 4
    return count


class InFlight:
    """
    The in-flight batches: they do not overlap, and there may be gaps between them.

    Two lists side by side and not a SortedDict: nearly every batch is added at the end and removed at the front, and
    bisection is quickest in a list of plain numbers. With a SortedDict, acquiring and acknowledging a whole batch took
    32.7 us in place of 27.6, and 500 single acknowledgements 4.76 ms in place of 4.52 (Python 3.11).

    Complexity:
        Finding a batch: O(log n), n the batches. Adding one at the end: O(1). Adding one elsewhere, and removing some
        at the front, moves what lies behind, a word for each batch.
    """

    __slots__ = ("_batches", "_firsts", "_split_limit", "oversized_count", "splittable_count")

    def __init__(self, split_limit: int) -> None:
        """Begin without batches."""
        self._firsts: list[int] = []
        self._batches: list[Batch] = []
        self._split_limit = split_limit
        self.oversized_count = 0
        """The number of batches that are too large to be split."""
        self.splittable_count = 0
        """The number of offsets of the others: those of split ones, and of whole ones that may be split. [offsets]"""

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        """Go through the batches in ascending order."""
        return iter(self._batches)

    def __getitem__(self, first_offset: int) -> Batch:
        """Return the batch that begins at *first_offset*."""
        return self._batches[bisect_left(self._firsts, first_offset)]

    def is_empty(self) -> bool:
        """Return whether there is no batch: what ``not`` says, in half the time."""
        return not self._batches

    @property
    def first(self) -> Batch:
        """The lowest batch."""
        return self._batches[0]

    def first_at(self, offset: int) -> Batch | None:
        """Return the lowest batch if *offset* lies within it, else None."""
        if self._batches:
            batch = self._batches[0]
            if batch.first_offset <= offset <= batch.last_offset:
                return batch
        return None

    @property
    def last(self) -> Batch:
        """The highest batch."""
        return self._batches[-1]

    def is_oversized(self, batch: Batch) -> bool:
        """Return whether *batch* is too large to be split (rule 24.5)."""
        return batch.last_offset - batch.first_offset >= self._split_limit

    def add(self, batch: Batch) -> None:
        """Add *batch*."""
        first, firsts = batch.first_offset, self._firsts
        if not firsts or first > firsts[-1]:  # nearly always
            firsts.append(first)
            self._batches.append(batch)
        else:
            index = bisect_left(firsts, first)
            firsts.insert(index, first)
            self._batches.insert(index, batch)
        self._count(batch, 1)

    def extend(self, batches: Iterable[Batch]) -> None:
        """Add *batches*, which ascend and lie behind all others."""
        for batch in batches:
            self._firsts.append(batch.first_offset)
            self._batches.append(batch)
            self._count(batch, 1)

    def floor(self, offset: int) -> Batch | None:
        """Return the highest batch that begins at or before *offset* (rule 1)."""
        index = bisect_right(self._firsts, offset)
        return self._batches[index - 1] if index else None

    def higher(self, offset: int) -> Batch | None:
        """Return the lowest batch that begins after *offset*."""
        index = bisect_right(self._firsts, offset)
        return self._batches[index] if index < len(self._batches) else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches whose first offset lies in the range, in ascending order."""
        firsts = self._firsts
        return self._batches[bisect_left(firsts, first_offset) : bisect_right(firsts, last_offset)]

    def from_floor(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches that begin in the range, and before them the floor of *first_offset* if there is one."""
        firsts = self._firsts
        low = bisect_right(firsts, first_offset) - 1
        return self._batches[max(low, 0) : bisect_right(firsts, last_offset)]

    def remove_up_to(self, last_offset: int) -> list[Batch]:
        """Remove the batches that end at or before *last_offset*, and return them."""
        count = bisect_right(self._firsts, last_offset)
        if count and self._batches[count - 1].last_offset > last_offset:
            count -= 1
        removed = self._batches[:count]
        del self._firsts[:count], self._batches[:count]
        for batch in removed:
            self._count(batch, -1)
        return removed

    def remove_all(self) -> list[Batch]:
        """Remove all batches, and return them."""
        removed = self._batches
        self._firsts, self._batches = [], []
        self.oversized_count = self.splittable_count = 0
        return removed

    def _count(self, batch: Batch, sign: int) -> None:
        """Count *batch*, which comes (1) or goes (-1)."""
        size = batch.last_offset - batch.first_offset + 1
        if size > self._split_limit:  # rule 24.5
            self.oversized_count += sign
        else:
            self.splittable_count += sign * size
