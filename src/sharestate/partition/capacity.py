"""
Whether there is room for a fetch, and how much: the limit of records in flight.

Source:
    SharePartition.canAcquireRecords, lastOffsetAndMaxRecordsToAcquire (Kafka 4.3.1).
"""

from __future__ import annotations

from sharestate.partition.next_fetch import next_fetch_offset
from sharestate.partition.state import PartitionState
from sharestate.values.fetched_records import FetchedRecords


def can_acquire(state: PartitionState) -> bool:
    """Return whether a fetch could acquire something; it looks for the next fetch offset, with the same side effect."""
    # rule 6
    if next_fetch_offset(state) != state.end_offset + 1:
        return True
    return state.in_flight_count < state.config.max_record_locks


def capacity(state: PartitionState, fetched: FetchedRecords, max_records: int) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset; in a full window only what is cached already."""
    # rule 7.2
    last_fetched = fetched.batches[-1].last_offset
    limit = min(max_records, state.config.max_record_locks - state.in_flight_count)
    if limit > 0 or fetched.fetch_offset > state.end_offset:
        return limit, last_fetched
    limit = min(max_records, state.end_offset - fetched.fetch_offset + 1)
    return limit, min(last_fetched, state.end_offset)
