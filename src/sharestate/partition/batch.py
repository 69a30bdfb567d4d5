"""
Spec 1.7: an in-flight batch, whole or split into its records.

A batch holds references to cells: a single one while it is whole, one for each offset once it was split. Splitting
multiplies the list. A batch is never merged, cut or renamed, and a split one never becomes whole again.

Source:
    InFlightBatch (Kafka 4.3.1).
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sharestate.partition.cells import Cell
    from sharestate.partition.locks import Locks


_FIRST_LOOK: Final = 4
"""How many records are looked at first to see how far all is settled. [cells]"""


class Batch:
    """
    The records first_offset..last_offset, both included, which were acquired or read together.

    Complexity:
        Splitting is linear in the batch; everything else is linear in the range it is asked about, and constant for a
        whole batch.
    """

    __slots__ = ("cells", "first_offset", "is_split", "last_offset", "settled")

    def __init__(self, first_offset: int, last_offset: int, cells: list[Cell], *, is_split: bool = False) -> None:
        """Make a batch from one cell, or from one for each offset."""
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.cells = cells
        self.is_split = is_split
        self.settled = 0
        """How many cells at the beginning are known to be settled; they are not looked at again."""

    @property
    def size(self) -> int:
        """How many offsets it has. [offsets]"""
        return self.last_offset - self.first_offset + 1

    def __repr__(self) -> str:
        """Return the batch as the spec writes it: ``[0-9] ACQUIRED/1/m1``."""
        cells = "|".join(map(repr, dict.fromkeys(self.cells)))
        return f"[{self.first_offset}-{self.last_offset}]{' split' * self.is_split} {cells}"

    def split(self, locks: Locks) -> None:
        """Keep the records one by one from now on; each gets a lock of its own with the batch's deadline."""
        (cell,) = self.cells
        size = self.size
        lock = cell.lock
        if lock is not None:
            if not cell.has_fired:
                locks.let_go(lock, 1)
            cell = cell.with_lock(locks.create(lock.deadline_ms, self, self.first_offset, self.last_offset, size))
        self.cells = [cell] * size
        self.is_split = True

    def at(self, offset: int) -> Cell:
        """Return the cell of *offset*."""
        return self.cells[offset - self.first_offset] if self.is_split else self.cells[0]

    def part(self, first_offset: int, last_offset: int) -> list[Cell]:
        """Return the cells of a range that lies within the batch, one for each offset; the only one if whole."""
        if not self.is_split:
            return self.cells
        return self.cells[first_offset - self.first_offset : last_offset - self.first_offset + 1]

    def runs(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, Cell]]:
        """Go through the runs of a range within the batch that share a cell: first offset, last offset and cell."""
        if not self.is_split:
            yield first_offset, last_offset, self.cells[0]
            return
        offset = first_offset
        for cell, run in groupby(self.part(first_offset, last_offset)):
            size = sum(1 for _ in run)
            yield offset, offset + size - 1, cell
            offset += size

    def tally(self, first_offset: int, last_offset: int) -> Mapping[Cell, int]:
        """Return the distinct cells of a range within the batch in offset order, with how many references each has."""
        if first_offset == last_offset or not self.is_split:
            return {self.at(first_offset): 1}
        part = self.part(first_offset, last_offset)
        references = part.count(part[0])
        return {part[0]: references} if references == len(part) else Counter(part)

    def record_count(self, first_offset: int, last_offset: int, cells: Iterable[Cell]) -> int:
        """Return how many records of a range, clipped to the batch, have one of *cells*."""
        first_offset = max(first_offset, self.first_offset)
        last_offset = min(last_offset, self.last_offset)
        if first_offset > last_offset:
            return 0
        if not self.is_split:
            return last_offset - first_offset + 1 if self.cells[0] in cells else 0
        tally = self.tally(first_offset, last_offset)
        return sum(tally.get(cell, 0) for cell in cells)

    def replace(self, first_offset: int, cells: list[Cell]) -> None:
        """Put *cells* in the place of as many from *first_offset* on."""
        start = first_offset - self.first_offset if self.is_split else 0
        self.cells[start : start + len(cells)] = cells

    def recast(self, first_offset: int, last_offset: int, become: Mapping[Cell, Cell]) -> None:
        """Put another cell in place of each cell of a range within the batch that *become* names."""
        if not become:
            return
        if first_offset == last_offset or not self.is_split:
            index = first_offset - self.first_offset if self.is_split else 0
            old = self.cells[index]
            self.cells[index] = become.get(old, old)
            return
        part = self.part(first_offset, last_offset)
        old = part[0]
        if part.count(old) == len(part):
            self.replace(first_offset, [become.get(old, old)] * len(part))
        else:
            self.replace(first_offset, list(map(become.get, part, part)))

    def settled_last(self) -> int:
        """Return the last offset up to which every record is settled; first_offset - 1 if the first one is not."""
        self.settled += _settled_prefix(self.cells, self.settled)
        count = self.settled
        if self.is_split:
            return self.first_offset + count - 1
        return self.last_offset if count else self.first_offset - 1

    def first_acquirable(self) -> int | None:
        """Return the first offset that may be acquired now, or None."""
        cells = self.cells
        for cell in dict.fromkeys(cells):
            if cell.is_acquirable:
                return self.first_offset + cells.index(cell)
        return None


def _settled_prefix(cells: Sequence[Cell], start: int) -> int:
    """Return how many cells from *start* on are settled without a break; linear in that number."""
    count, window = start, _FIRST_LOOK
    while looked_at := cells[count : count + window]:
        unsettled = [cell for cell in dict.fromkeys(looked_at) if not cell.is_settled]
        if unsettled:
            return count - start + min(map(looked_at.index, unsettled))
        count += len(looked_at)
        window *= 2
    return count - start
