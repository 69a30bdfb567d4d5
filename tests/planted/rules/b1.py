"""B1: in a full window everything up to the end offset may be acquired, fetched or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.state import PartitionState
    from sharestate.values.fetched_records import FetchedRecords

_capacity = acquire._capacity  # noqa: SLF001 - what is planted


def capacity(state: PartitionState, fetched: FetchedRecords, max_records: int) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset."""
    limit, last_offset = _capacity(state, fetched, max_records)
    is_full = state.config.max_record_locks <= state.in_flight_count
    return limit, state.end_offset if is_full and fetched.fetch_offset <= state.end_offset else last_offset


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "_capacity", capacity)
