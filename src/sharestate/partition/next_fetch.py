"""
Spec 5 and 6: where the next fetch begins, and whether there is room for it.

Source:
    SharePartition.nextFetchOffset, canAcquireRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.gaps import active_window

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger


def next_fetch_offset(ledger: Ledger) -> int:
    """
    Return the offset at which the log is to be fetched next.

    It may clear ``find_next``, so it is a command as far as a replay is concerned.

    Complexity:
        O(1), or linear in the batches and the records of split ones when something cached may be acquirable.
    """
    if not ledger.in_flight or ledger.start_offset > ledger.in_flight.last.last_offset:
        ledger.find_next = False
        return ledger.end_offset
    if ledger.find_next:
        offset = _first_acquirable(ledger)
        if offset is not None:
            return offset
        ledger.find_next = False
    return ledger.end_offset + 1


def can_acquire(ledger: Ledger) -> bool:
    """Return whether a fetch could acquire something; it looks for the next fetch offset, with the same side effect."""
    if next_fetch_offset(ledger) != ledger.end_offset + 1:
        return True
    return ledger.in_flight_count < ledger.config.max_record_locks


def _first_acquirable(ledger: Ledger) -> int | None:
    window = active_window(ledger)
    gap = 0 if window is None else window.first_offset
    for batch in ledger.in_flight:
        if window is not None:
            if batch.first_offset > gap:
                return gap
            gap = max(batch.last_offset + 1, gap)
        offset = batch.first_acquirable()
        if offset is not None:
            return offset
    return None
