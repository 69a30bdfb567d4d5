"""
Records of aborted transactions are filtered out of what is acquired, and archived.

Source:
    SharePartition.maybeFilterAbortedTransactionalAcquiredRecords (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sharestate.partition.archive import archive_range
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.profiles import Quirk
from sharestate.values.records import NO_PRODUCER_ID, AcquiredRecords, ControlType, RecordBatch, RecordState


def aborted_batches(fetched: FetchedRecords) -> Sequence[RecordBatch]:
    """
    Return the data batches whose transaction was aborted, if the group reads committed records only.

    The whole fetch is looked at, not only what is acquired. Transaction markers are not among them: they are acquired
    like data, and the client skips them.
    """
    # rule 7.10
    if not fetched.aborted_transactions or fetched.isolation is not IsolationLevel.READ_COMMITTED:
        return ()
    return tuple(_aborted_batches(fetched))


def archive_aborted(state: PartitionState, aborted: Iterable[RecordBatch]) -> bool:
    """Archive what is acquired of *aborted*, no matter who holds it; return whether the SPSO has to advance now."""
    # rules 7.10 and 20.4
    is_archived = False
    for batch in aborted:
        first, last = batch.first_offset, batch.last_offset
        cached = state.in_flight.from_floor(first, last)  # rule 24.2, B8: there may be no floor batch
        completed = archive_range(state, cached, first, last, RecordState.ACQUIRED, Input.ABORTED)
        state.count_completed(max(completed, 0))
        is_archived |= completed >= 0
    return is_archived and not state.profile.has(Quirk.STALLS_AFTER_ABORT)  # rule 24.1


def _aborted_batches(fetched: FetchedRecords) -> Iterator[RecordBatch]:
    """Go through the data batches whose transaction was aborted (rule 7.10, step 1)."""
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


def without(acquired: Iterable[AcquiredRecords], aborted: Sequence[RecordBatch]) -> Iterator[AcquiredRecords]:
    """Cut the ranges of *aborted* out of those of *acquired*, both in ascending order (rule 7.10, step 3)."""
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
