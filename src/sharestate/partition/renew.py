"""
Spec 20.2: a member asks for more time.

Only the lock moves: no state, no count, no write. A renewal is not undone when a later part of its request is refused.

Source:
    KIP-1222; SharePartition.acknowledge with AcknowledgeType.RENEW (Kafka 4.3.1).
"""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING

from sharestate.partition.chronicle import itself
from sharestate.values.transitions import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.partition.batch import Batch
    from sharestate.partition.ledger import Ledger


def renew(ledger: Ledger, batch: Batch, first_offset: int, is_renewed: Iterable[bool]) -> None:
    """Give a fresh lock to the acquired records from *first_offset* on for which *is_renewed* says so in turn."""
    chosen = tuple(is_renewed)
    last_offset = first_offset + len(chosen) - 1 if batch.is_split else batch.last_offset
    part = batch.part(first_offset, last_offset)
    renewed = Counter(compress(part, chosen))
    if not renewed:
        return
    for cell, references in renewed.items():
        ledger.locks.let_go_of(cell, references)
    lock = ledger.locks.create(ledger.lock_deadline_ms, batch, first_offset, last_offset, renewed.total())
    after = {cell: cell.renewed(lock) for cell in renewed}
    batch.replace(
        first_offset,
        [after[cell] if is_chosen else cell for cell, is_chosen in zip(part, chosen, strict=True)],
    )
    if ledger.chronicle is not None:
        ledger.chronicle.tell_cells(batch, first_offset, last_offset, itself(after.values()), lambda _: Cause.RENEWED)
