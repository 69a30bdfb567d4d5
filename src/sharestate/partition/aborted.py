"""
Spec 7.10: with read_committed, records of aborted transactions are archived as they are acquired.

The whole fetch is looked at, not only what was acquired, and whoever holds the records. Transaction markers are
acquired like data; the client skips them. Nothing is persisted.

Source:
    SharePartition.maybeFilterAbortedTransactionalAcquiredRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.archive import archive_range
from sharestate.partition.transitions import Input
from sharestate.values.records import NO_PRODUCER_ID, AcquiredRecords, ControlType, IsolationLevel, RecordState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import FetchedRecords, RecordBatch


def without_aborted(
    ledger: Ledger, fetched: FetchedRecords, acquired: Sequence[AcquiredRecords]
) -> tuple[AcquiredRecords, ...]:
    """Archive the records of aborted transactions, and return what is left of *acquired*."""
    if fetched.isolation is not IsolationLevel.READ_COMMITTED or not fetched.aborted_transactions:
        return tuple(acquired)
    aborted = list(_aborted_batches(fetched))
    for batch in aborted:
        cached = ledger.in_flight.from_floor(batch.first_offset, batch.last_offset)
        archive_range(
            ledger, cached, batch.first_offset, batch.last_offset, RecordState.ACQUIRED, Input.ABORTED, counts=True
        )
    return tuple(_subtract(acquired, aborted))


def _aborted_batches(fetched: FetchedRecords) -> Iterator[RecordBatch]:
    """Go through the data batches whose transaction was aborted."""
    listed = sorted(fetched.aborted_transactions, key=lambda transaction: transaction.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in fetched.batches:
        if batch.producer_id <= NO_PRODUCER_ID:
            continue
        while listed and listed[-1].first_offset <= batch.last_offset:
            aborting.add(listed.pop().producer_id)
        if batch.control is ControlType.ABORT:
            aborting.discard(batch.producer_id)
        elif (batch.is_transactional or batch.control is not None) and batch.producer_id in aborting:
            yield batch


def _subtract(acquired: Sequence[AcquiredRecords], aborted: Sequence[RecordBatch]) -> Iterator[AcquiredRecords]:
    """Cut the ranges of *aborted* out of those of *acquired*, both in ascending order."""
    index = 0
    for first, last, count in acquired:
        while index < len(aborted) and aborted[index].last_offset < first:
            index += 1
        begin, cut = first, index
        while cut < len(aborted) and aborted[cut].first_offset <= last:
            if begin < aborted[cut].first_offset:
                yield AcquiredRecords(begin, aborted[cut].first_offset - 1, count)
            begin = aborted[cut].last_offset + 1
            cut += 1
        if begin <= last:
            yield AcquiredRecords(begin, last, count)
