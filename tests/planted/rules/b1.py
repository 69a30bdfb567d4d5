"""B1: in a full window everything up to the end offset may be acquired, fetched or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire, capacity
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.state import PartitionState
    from sharestate.values.fetched_records import FetchedRecords


def in_full_window(state: PartitionState, fetched: FetchedRecords, max_records: int) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset."""
    limit, last_offset = capacity.capacity(state, fetched, max_records)
    is_full = state.config.max_record_locks <= state.in_flight_count
    return limit, state.end_offset if is_full and fetched.fetch_offset <= state.end_offset else last_offset


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "capacity", in_full_window)
