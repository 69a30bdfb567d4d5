"""B1: in a full window everything up to the end offset may be acquired, fetched or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import FetchedRecords

_room = acquire._room  # noqa: SLF001 - what is planted


def room(ledger: Ledger, fetched: FetchedRecords, max_records: int) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset."""
    limit, last_offset = _room(ledger, fetched, max_records)
    is_full = ledger.config.max_record_locks <= ledger.in_flight_count
    return limit, ledger.end_offset if is_full and fetched.fetch_offset <= ledger.end_offset else last_offset


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "_room", room)
