"""
What a leader may count on while writes are unanswered: the records as they are, with ranges laid over them.

Records of an unanswered change count as they were before it. Ranges that are laid over say what counts instead: what
locks that ran out took away while the write that says so is unanswered, and what the write says that is being formed.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING

from sharestate.partition.transitions import TERMINAL
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.ledger import Ledger


class KnownRecords:
    """
    The records of a share partition as they count for a write.

    Complexity:
        Linear in the runs of records that are asked for, logarithmic in the ranges that are laid over.
    """

    def __init__(self, ledger: Ledger, layers: Sequence[Sequence[StateBatch]], *, counts_pending: bool) -> None:
        """
        Lay *layers* over the records of *ledger*, the last one on top.

        Args:
            ledger: Whose records they are.
            layers: Ranges that do not overlap, each layer in ascending order.
            counts_pending: Whether unanswered changes count as if they were confirmed.
        """
        self._ledger = ledger
        self._layers = layers
        self._counts_pending = counts_pending

    def between(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        """Go through the cached records of a range, run by run; what is not cached is left out."""
        for batch in self._ledger.in_flight.from_floor(first_offset, last_offset):
            low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
            if low <= high:
                yield from self._of(batch, low, high)

    def is_settled(self, batch: Batch, offset: int) -> bool:
        """Return whether the record at *offset* is done."""
        return next(self._of(batch, offset, offset)).state in TERMINAL

    def settled_last(self, batch: Batch) -> int:
        """Return the last offset of *batch* up to which every record is done; first_offset - 1 if the first is not."""
        last = batch.first_offset - 1
        for run in self._of(batch, batch.first_offset, batch.last_offset):
            if run.state not in TERMINAL:
                break
            last = run.last_offset
        return last

    def _of(self, batch: Batch, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        runs = self._live(batch, first_offset, last_offset)
        for layer in self._layers:
            runs = _laid_over(runs, layer)
        return runs

    def _live(self, batch: Batch, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        for first, last, cell in batch.runs(first_offset, last_offset):
            counted = self._counted(cell)
            yield StateBatch(first, last, counted.state, counted.delivery_count)

    def _counted(self, cell: Cell) -> Cell:
        return cell if self._counts_pending or cell.before is None else cell.before


def _laid_over(runs: Iterable[StateBatch], layer: Sequence[StateBatch]) -> Iterator[StateBatch]:
    for run in runs:
        first = run.first_offset
        for index in range(bisect_left(layer, first, key=itemgetter(1)), len(layer)):
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
        if run.state == RecordState.ACQUIRED:
            yield run._replace(state=RecordState.AVAILABLE, delivery_count=run.delivery_count - 1)
        else:
            yield run


def merged(runs: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """Return *runs*, which ascend, with equal neighbours in one."""
    result: list[StateBatch] = []
    for run in runs:
        last = result[-1] if result else None
        if last is not None and last.last_offset + 1 == run.first_offset and last[2:] == run[2:]:
            result[-1] = last._replace(last_offset=run.last_offset)
        else:
            result.append(run)
    return tuple(result)
