"""
Spec 7.3: a fetch that begins after the offset it asked for shows that the log was compacted in between.

Only that leading hole is seen; a hole between two batches of the fetch is not.

Source:
    SharePartition.maybeArchiveStaleBatches (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.archive import archive_range
from sharestate.partition.transitions import Input
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger


def archive_compacted(ledger: Ledger, fetch_offset: int, first_fetched: int) -> None:
    """Archive what is available from *fetch_offset* to before *first_fetched*; nothing is persisted."""
    if fetch_offset >= first_fetched:
        return
    floor = ledger.in_flight.floor(fetch_offset)
    from_offset = floor.first_offset if floor is not None and floor.last_offset >= fetch_offset else fetch_offset
    batches = ledger.in_flight.beginning_in(from_offset, first_fetched - 1)
    if archive_range(
        ledger, batches, fetch_offset, first_fetched - 1, RecordState.AVAILABLE, Input.COMPACTED_AWAY, counts=True
    ):
        ledger.find_next = True
