"""
Spec 14: records are taken out of the queue, whoever holds them.

Source:
    SharePartition.archiveRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sharestate.partition.chronicle import cause_of
from sharestate.partition.transitions import Input
from sharestate.values.profiles import Quirk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.partition.batch import Batch
    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import RecordState


def archive_range(  # noqa: PLR0913 - a range of batches, and what happens to it
    ledger: Ledger,
    batches: Iterable[Batch],
    first_offset: int,
    last_offset: int,
    state: RecordState,
    input_: Input,
    *,
    counts: bool,
) -> bool:
    """
    Archive the records of *batches* within a range that are in *state*; a write in flight goes on, and decides nothing.

    Args:
        ledger: Whose batches they are.
        batches: The batches to look at, in ascending order. One in *state* is split if the range does not cover it,
            even if it does not touch it.
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        state: The state that the records are taken from.
        input_: Why.
        counts: Whether they count as complete from now on.

    Returns:
        Whether there were any.
    """
    archived = 0
    for batch in batches:
        if batch.first_offset > last_offset:
            break
        if not batch.is_split and not (first_offset <= batch.first_offset and batch.last_offset <= last_offset):
            if batch.cells[0].state is not state:
                continue
            if batch.size <= ledger.split_limit:
                batch.split(ledger.locks)
            elif input_ is not Input.BELOW_START or batch.last_offset > last_offset:
                continue
        low, high = max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)
        if not batch.is_split:
            low = batch.first_offset
        if low <= high:
            archived += _archive(ledger, batch, low, high, state, input_, counts=counts)
    return archived > 0


def _archive(  # noqa: PLR0913 - as above, for one batch
    ledger: Ledger, batch: Batch, low: int, high: int, state: RecordState, input_: Input, *, counts: bool
) -> int:
    become = {}
    for cell, references in batch.tally(low, high).items():
        if cell.state is state:
            become[cell] = cell.archived(input_)
            ledger.locks.let_go_of(cell, references)
    if counts:
        from_offset = low if ledger.profile.has(Quirk.B22) else max(low, ledger.start_offset)
        ledger.delivery_complete_count += batch.record_count(from_offset, high, become)
    ledger.recast(batch, low, high, become, partial(cause_of, input_))
    return len(become)
