"""
Spec 7.1, 7.2, 7.4 and 7.5: a member fetches.

Source:
    SharePartition.acquire, lastOffsetAndMaxRecordsToAcquire (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.aborted import without_aborted
from sharestate.partition.acquisition import Acquisition
from sharestate.partition.compacted import archive_compacted
from sharestate.partition.gaps import shrink_window
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.natural_gap import is_at_natural_gap, skip_natural_gap
from sharestate.partition.new_batches import plan_new
from sharestate.partition.redelivery import plan_overlap
from sharestate.partition.snapshots import restore_ledger, take_snapshot
from sharestate.values.profiles import Quirk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.partition.acquisition import Step
    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import AcquiredRecords, AcquireMode, FetchedRecords


def acquire(  # noqa: PLR0913 - what a fetch request says
    ledger: Ledger,
    member_id: str,
    fetched: FetchedRecords,
    max_records: int,
    batch_size: int,
    mode: AcquireMode,
) -> tuple[AcquiredRecords, ...]:
    """
    Let *member_id* acquire what it may of what was fetched.

    Complexity:
        O(log n) in the batches, linear in the records that are looked at.
    """
    if max_records <= 0 or not _is_of_use(ledger, fetched):
        return ()
    request = (member_id, fetched, max_records, batch_size, mode)
    if is_at_natural_gap(ledger, fetched):
        if _may_be_refused(ledger, fetched):
            copy = restore_ledger(take_snapshot(ledger), ledger.profile)
            skip_natural_gap(copy, fetched)
            _plan(copy, *request)
        skip_natural_gap(ledger, fetched)
    acquisition, steps = _plan(ledger, *request)
    if acquisition.limit <= 0:
        return ()
    archive_compacted(ledger, fetched.fetch_offset, acquisition.first_offset)
    acquired = [records for step in steps for records in step.take(ledger, acquisition)]
    if not acquired:
        return ()
    shrink_window(ledger, acquired[-1].last_offset + 1)
    return without_aborted(ledger, fetched, acquired)


def _may_be_refused(ledger: Ledger, fetched: FetchedRecords) -> bool:
    """Return whether something is so large that it could have to be split and cannot."""
    span = fetched.batches[-1].last_offset - fetched.batches[0].first_offset + 1
    return max(ledger.in_flight.largest, span) > ledger.split_limit


def _is_of_use(ledger: Ledger, fetched: FetchedRecords) -> bool:
    return (
        ledger.lifecycle is Lifecycle.ACTIVE
        and len(fetched.batches) > 0
        and fetched.batches[-1].last_offset >= ledger.start_offset
    )


def _room(ledger: Ledger, fetched: FetchedRecords, max_records: int) -> tuple[int, int]:
    """Return how many records may be acquired, and up to which offset; in a full window only what is cached already."""
    last_fetched = fetched.batches[-1].last_offset
    room = min(max_records, ledger.config.max_record_locks - ledger.in_flight_count)
    if room > 0 or fetched.fetch_offset > ledger.end_offset:
        return room, last_fetched
    room = min(max_records, ledger.end_offset - fetched.fetch_offset + 1)
    return room, min(last_fetched, ledger.end_offset)


def _plan(  # noqa: PLR0913 - what a fetch request says
    ledger: Ledger, member_id: str, fetched: FetchedRecords, max_records: int, batch_size: int, mode: AcquireMode
) -> tuple[Acquisition, Sequence[Step]]:
    limit, last_offset = _room(ledger, fetched, max_records) if _is_of_use(ledger, fetched) else (0, 0)
    acquisition = Acquisition(member_id, fetched.batches, last_offset, limit, batch_size, mode)
    return acquisition, tuple(_steps(ledger, acquisition)) if limit > 0 else ()


def _steps(ledger: Ledger, acquisition: Acquisition) -> Iterable[Step]:
    base = _base_offset(ledger, acquisition.first_offset)
    first, last = min(acquisition.first_offset, base), acquisition.last_offset
    if first > last:
        return ()
    overlap = ledger.in_flight.beginning_in(first, last)
    if overlap:
        return plan_overlap(ledger, acquisition, base, overlap)
    return (plan_new(ledger, acquisition, base, last, acquisition.limit),)


def _base_offset(ledger: Ledger, first_fetched: int) -> int:
    """Return where the acquisition begins: at the cached batch that holds *first_fetched*, or not below the SPSO."""
    floor = ledger.in_flight.floor(first_fetched)
    if floor is not None and floor.last_offset >= first_fetched:
        return floor.first_offset
    if floor is None or not ledger.profile.has(Quirk.B6):
        return max(first_fetched, ledger.start_offset)
    return first_fetched
