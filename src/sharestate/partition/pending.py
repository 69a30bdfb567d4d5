"""
What one write carries, from the change that it persists to its outcome (spec 11).

Source:
    SharePartition.PersisterBatch and rollbackOrProcessStateUpdates (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition.chronicle import Chronicle, cause_of, itself
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch, state_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.transitions import Input

_NEAR: Final = 32
"""Ranges closer than this are remembered as one: walking over the gap costs less than another range. [records]"""


class PendingWrite:
    """
    A change that has begun and is not confirmed yet.

    Complexity:
        Beginning a change is linear in the records that it touches, and so is walking over them at the outcome.
    """

    __slots__ = (
        "_begun",
        "_fired",
        "_touched",
        "completed_count",
        "delivery_count_limit",
        "entries",
        "number",
        "start_offset",
    )

    def __init__(self, start_offset: int, delivery_count_limit: int) -> None:
        """Begin an empty change."""
        self.number: int | None = None
        """The number of the request that carries it; None until it is issued."""
        self.start_offset: Final = start_offset
        """The SPSO as the change began."""
        self.delivery_count_limit: Final = delivery_count_limit
        """The limit in force as the change began; a roll-back still asks for it."""
        self.entries: list[StateBatch] = []
        """What is persisted."""
        self.completed_count = 0
        """How many records at or above the SPSO have become terminal. [records]"""
        self._begun: dict[tuple[Cell, Input], Cell] = {}
        self._fired: dict[Cell, Cell] = {}
        self._touched: dict[Batch, list[tuple[int, int]]] = {}

    @classmethod
    def unanswered(cls, number: int, delivery_count_limit: int) -> PendingWrite:
        """Return what write *number* carries, without its records; ``touch`` names them."""
        change = cls(0, delivery_count_limit)
        change.number = number
        return change

    def begin_whole(self, batch: Batch, input_: Input) -> None:
        """Begin *input_* for all of a whole batch."""
        cell = self.begun(batch.cells[0], input_)
        batch.cells[0] = cell
        first, last = batch.first_offset, batch.last_offset
        self.entries.append(StateBatch(first, last, cell.state, cell.delivery_count))
        self.touch(batch, first, last)
        if cell.state is not RecordState.AVAILABLE:
            self.completed_count += max(0, last - max(first, self.start_offset) + 1)

    def begin_record(self, batch: Batch, offset: int, input_: Input) -> None:
        """Begin *input_* for one record of a split batch that lies at or above the SPSO."""
        index = offset - batch.first_offset
        cell = batch.cells[index] = self.begun(batch.cells[index], input_)
        self.entries.append(StateBatch(offset, offset, cell.state, cell.delivery_count))
        self.touch(batch, offset, offset)
        if cell.state is not RecordState.AVAILABLE:
            self.completed_count += 1

    def begin(self, batch: Batch, first_offset: int, last_offset: int, input_: Input, cells: Iterable[Cell]) -> None:
        """Begin *input_* for *cells* in a range of a split batch that lies wholly below or wholly above the SPSO."""
        become = {cell: self.begun(cell, input_) for cell in cells}
        part = batch.part(first_offset, last_offset)
        size = len(part)
        if len(become) == 1 and part.count(next(iter(become))) == size:
            (cell,) = become.values()
            batch.replace(first_offset, [cell] * size)
            self._note(range(first_offset, last_offset + 1), [cell.state] * size, [cell.delivery_count] * size)
            self.touch(batch, first_offset, last_offset)
        else:
            chosen = [(offset, cell) for offset, cell in enumerate(part, first_offset) if cell in become]
            self._put(batch, [offset for offset, _ in chosen], [become[cell] for _, cell in chosen])

    def begin_each(self, batch: Batch, offsets: Sequence[int], inputs: Sequence[Input]) -> None:
        """Begin an input for each of some records of a split batch, all of which lie at or above the SPSO."""
        is_run = isinstance(offsets, range)
        base = batch.first_offset
        part = batch.part(offsets[0], offsets[-1]) if is_run else [batch.cells[offset - base] for offset in offsets]
        if part.count(part[0]) == len(part):
            begun = {input_: self.begun(part[0], input_) for input_ in dict.fromkeys(inputs)}
            after = list(map(begun.__getitem__, inputs))
        else:
            after = list(map(self.begun, part, inputs))
        if is_run:
            batch.replace(offsets[0], after)
            self._note_cells(offsets, after)
            self.touch(batch, offsets[0], offsets[-1])
        else:
            self._put(batch, offsets, after)

    def _put(self, batch: Batch, offsets: Sequence[int], after: Sequence[Cell]) -> None:
        cells, base = batch.cells, batch.first_offset
        for offset, cell in zip(offsets, after, strict=True):
            cells[offset - base] = cell
        self._note_cells(offsets, after)
        low, high = min(offsets), max(offsets)
        for first, last in [(low, high)] if high - low < _NEAR * len(offsets) else zip(offsets, offsets, strict=True):
            self.touch(batch, first, last)

    def _note_cells(self, offsets: Sequence[int], after: Sequence[Cell]) -> None:
        self._note(offsets, [cell.state for cell in after], [cell.delivery_count for cell in after])

    def _note(self, offsets: Sequence[int], states: Sequence[RecordState], delivery_counts: Sequence[int]) -> None:
        """Remember what is persisted, and how much of it has become terminal."""
        self.entries += state_batches(offsets, states, delivery_counts)
        if offsets[0] >= self.start_offset:
            self.completed_count += len(states) - states.count(RecordState.AVAILABLE)

    def begun(self, cell: Cell, input_: Input) -> Cell:
        """Return what *cell* becomes; the same one every time, so that equal changes go on sharing a cell."""
        begun = self._begun.get((cell, input_))
        if begun is None:
            begun = self._begun[cell, input_] = cell.begun(input_, self)
        return begun

    def fired(self, cell: Cell) -> Cell:
        """Return *cell*, which this change has begun, with its lock run out; the same one every time."""
        fired = self._fired.get(cell)
        if fired is None:
            fired = self._fired[cell] = cell.fired()
        return fired

    def issued(self, number: int | None, chronicle: Chronicle | None) -> None:
        """Wait for the outcome of write *number*, None if there is none, and forget what is not needed for that."""
        self.number = number
        for ranges in self._touched.values():
            if len(ranges) > 1:
                ranges[:] = _apart(ranges)
        if chronicle is not None:
            self._tell(chronicle)
        self._begun.clear()
        self.entries.clear()

    def _tell(self, chronicle: Chronicle) -> None:
        inputs = {cell: input_ for (_, input_), cell in self._begun.items()}
        for batch, first_offset, last_offset in self.ranges():
            chronicle.tell_cells(
                batch, first_offset, last_offset, itself(inputs), lambda cell: cause_of(inputs[cell], cell), self.number
            )

    def ranges(self) -> list[tuple[Batch, int, int]]:
        """Return the ranges that hold every record of the change, and perhaps others between them."""
        return [(batch, first, last) for batch, ranges in self._touched.items() for first, last in ranges]

    def wait_for(self, batch: Batch, first_offset: int, last_offset: int) -> None:
        """Remember one more range of *batch*, apart from the others: as a snapshot has it."""
        self._touched.setdefault(batch, []).append((first_offset, last_offset))

    def touch(self, batch: Batch, first_offset: int, last_offset: int) -> None:
        """Remember that a range of *batch* waits for the outcome."""
        ranges = self._touched.get(batch)
        if ranges is None:
            self._touched[batch] = [(first_offset, last_offset)]
            return
        first, last = ranges[-1]
        if first - _NEAR <= last_offset and first_offset <= last + _NEAR:
            ranges[-1] = (min(first, first_offset), max(last, last_offset))
        else:
            ranges.append((first_offset, last_offset))


def _apart(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what *ranges* cover, in ascending order and without overlap."""
    apart: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if apart and first <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(apart[-1][1], last))
        else:
            apart.append((first, last))
    return apart
