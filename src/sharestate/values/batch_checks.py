"""
Checks of record batches as users pass them.

They are functions alone, which the compiled library has compiled. What a user may get wrong has no type here: compiled
code takes what is annotated for true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sharestate.values.checks import MAX_INT64, MIN_INT64, a_tuple, expect, integer, refuse, rows
from sharestate.values.list_slices import CheckedBatches
from sharestate.values.records import MAX_OFFSET, ControlType, RecordBatch

_LAST: Final = MAX_OFFSET  # names of this module: compiled code looks up those of others each time
_LOW: Final = MIN_INT64
_HIGH: Final = MAX_INT64
_BATCH: Final = RecordBatch
_CONTROL: Final = ControlType
_FIELDS: Final = len(RecordBatch._fields)


def record_batches(batches: Iterable[RecordBatch]) -> Sequence[RecordBatch]:
    """
    Return *batches*, the record batches of a log.

    Raises:
        MalformedInputError: One is of the wrong type, or they do not ascend, overlap, or reach beyond 2^63 - 2.
    """
    if type(batches) is CheckedBatches:  # fetches of one record after the other share them; an isinstance takes long
        return batches
    items: tuple[Any, ...] = tuple(batches) if type(batches) is list else a_tuple(batches, RecordBatch, "batches")
    previous = -1
    for batch in items:  # one by one: there is usually one
        if type(batch) is not _BATCH or len(batch) != _FIELDS or not is_batch_after(batch, previous):
            return _looked_at(items)
        previous = batch[1]
    return items


def _looked_at(items: tuple[Any, ...]) -> tuple[RecordBatch, ...]:
    """Return *items*, or name the first that is wrong: usually there is one."""
    rows(items, RecordBatch, "batches")
    previous = -1
    for index, batch in enumerate(items):
        if not is_batch_after(batch, previous):
            refuse_batch(batch, previous, f"batches[{index}]")
        previous = batch.last_offset
    return items


def is_batch_after(batch: tuple[Any, Any, Any, Any, Any], previous: int) -> bool:
    """Return whether *batch* is well-formed and may follow a batch that ends at *previous*."""
    first, last, producer_id, is_transactional, control = batch
    return (
        type(first) is int
        and type(last) is int
        and type(producer_id) is int
        and previous < first <= last <= _LAST
        and _LOW <= producer_id <= _HIGH
        and type(is_transactional) is bool
        and (control is None or type(control) is _CONTROL)
    )


def refuse_batch(batch: Any, previous: int, field: str) -> None:  # noqa: ANN401 - whatever the caller has put into it
    """Raise the error for *batch*; nothing is raised for a number of a subclass of int."""
    integer(batch.first_offset, f"{field}.first_offset", 0, MAX_OFFSET)
    integer(batch.last_offset, f"{field}.last_offset", 0, MAX_OFFSET)
    integer(batch.producer_id, f"{field}.producer_id")
    expect(batch.is_transactional, bool, f"{field}.is_transactional")
    if batch.control is not None:
        expect(batch.control, ControlType, f"{field}.control")
    if not previous < batch.first_offset <= batch.last_offset:
        refuse(f"log batches ascend without overlap: {batch.first_offset}-{batch.last_offset} after {previous}", field)
