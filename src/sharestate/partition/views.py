"""
What the outside may see of the in-flight batches: read only.

A view is made when it is asked for and does not follow later changes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sharestate.partition.cells import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.batch import Batch


class RecordRun(NamedTuple):
    """Neighbouring records of one batch of which the same is true."""

    first_offset: int
    """The first offset of the run."""

    last_offset: int
    """The last offset of the run, included."""

    cell: Cell
    """What is true of them."""


class BatchView(NamedTuple):
    """An in-flight batch as it stood when it was asked for."""

    first_offset: int
    """The batch's first offset."""

    last_offset: int
    """The batch's last offset, included."""

    is_split: bool
    """Whether it is kept record by record; if not, there is one run."""

    runs: tuple[RecordRun, ...]
    """Its records, in ascending order. Two neighbouring runs may look alike."""


def view(batch: Batch) -> BatchView:
    """Return *batch* as it stands; linear in its records if it is split."""
    first, last = batch.first_offset, batch.last_offset
    runs = tuple(_runs(batch)) if batch.is_split else (RecordRun(first, last, batch.cells[0]),)
    return BatchView(first, last, batch.is_split, runs)


def _runs(batch: Batch) -> Iterator[RecordRun]:
    offset = batch.first_offset
    for cell, run in groupby(batch.cells):
        size = sum(1 for _ in run)
        yield RecordRun(offset, offset + size - 1, cell)
        offset += size
