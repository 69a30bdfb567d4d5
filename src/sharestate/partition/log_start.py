"""
Spec 13: the log starts later now.

What is offered below the new start is archived. What members hold there stays theirs, but can no longer be
acknowledged: it is archived when its lock runs out or its member leaves. Nothing is persisted and nothing leaves the
cache; the new SPSO becomes durable with the next write of any kind.

Source:
    SharePartition.updateCacheAndOffsets (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.archive import archive_range
from sharestate.partition.transitions import TERMINAL, Input
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger


def advance_log_start(ledger: Ledger, offset: int) -> None:
    """
    Move the SPSO to *offset*, where the log starts now; ignored if that is not past it.

    Complexity:
        Linear in the batches below *offset*, and in the records of split ones.
    """
    old = ledger.start_offset
    if offset <= old:
        return
    if not ledger.in_flight:
        ledger.start_offset = ledger.end_offset = offset
        ledger.delivery_complete_count = 0
        return
    passed = _terminal_count(ledger, old, offset - 1)
    if archive_range(ledger, ledger.in_flight, old, offset - 1, RecordState.AVAILABLE, Input.BELOW_START, counts=False):
        ledger.find_next = True
    ledger.start_offset = offset
    ledger.end_offset = max(ledger.end_offset, offset)
    ledger.delivery_complete_count -= passed


def _terminal_count(ledger: Ledger, first_offset: int, last_offset: int) -> int:
    """Return how many records of a range are terminal, those whose write is in flight included."""
    count = 0
    for batch in ledger.in_flight.from_floor(first_offset, last_offset):
        cells = [cell for cell in dict.fromkeys(batch.cells) if cell.state in TERMINAL]
        count += batch.record_count(first_offset, last_offset, cells)
    return count
