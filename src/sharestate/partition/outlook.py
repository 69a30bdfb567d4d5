"""What an acquisition would make of a record, by the rules that acquisitions follow."""

from __future__ import annotations

from typing import NamedTuple

from sharestate.partition.next_fetch import first_offered
from sharestate.partition.state import GapWindow, PartitionState
from sharestate.partition.throttling import comes_alone, is_throttled, piece, threshold


class ThrottledRecord(NamedTuple):
    """
    A record that is delivered in a small piece, with nothing after it in the same fetch.

    Attributes:
        offset: The record.
        delivery_count: Its deliveries so far. [deliveries]
    """

    offset: int
    delivery_count: int


class AcquisitionOutlook(NamedTuple):
    """
    What the next acquisition would make of a record, as far as its deliveries decide.

    Attributes:
        throttled_by: The first record before it that is throttled; the fetch that delivers that one ends there.
        threshold: The delivery count from which on records are throttled. [deliveries]
        piece: How many records of its batch come at once if it is throttled itself; None if not. [records]
        is_last_delivery: Whether its next delivery is the last one, which is of this record alone.
        gap_window: The gap window while it is active: gaps in it are fetched.
    """

    throttled_by: ThrottledRecord | None
    threshold: int
    piece: int | None
    is_last_delivery: bool
    gap_window: GapWindow | None


def acquisition_outlook(state: PartitionState, offset: int) -> AcquisitionOutlook:
    """Return what the next acquisition would make of the record at *offset*."""
    # rules 4.4 and 20.3
    limit = state.config.delivery_count_limit
    least = threshold(limit)
    at_once, is_last = None, False
    batch = state.in_flight.floor(offset)
    if batch is not None and offset <= batch.last_offset:
        cell = batch.at(offset)
        if is_throttled(cell, least):
            at_once = piece(batch.size, cell.delivery_count, limit)
        is_last = cell.is_acquirable and comes_alone(cell.delivery_count, limit)
    return AcquisitionOutlook(_throttled_before(state, offset, least), least, at_once, is_last, state.active_gap_window)


def _throttled_before(state: PartitionState, offset: int, least: int) -> ThrottledRecord | None:
    # rule 20.3
    begin = first_offered(state) if state.find_next else None
    if begin is None:
        return None
    for batch in state.in_flight.from_floor(begin, offset - 1):
        low, high = max(batch.first_offset, begin), min(batch.last_offset, offset - 1)
        for first, _, cell in batch.parts(low, high) if low <= high else ():
            if is_throttled(cell, least):
                return ThrottledRecord(first, cell.delivery_count)
    return None
