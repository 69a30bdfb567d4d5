"""
Defects of Kafka that the library does not copy, imitated so that what comes after them can be checked.

Source:
    docs/kafka-bugs.md: B7 and B8 (Kafka 4.2.1, 4.2.2, 4.3.1 and 4.4.0).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from attrs import evolve

from sharestate.errors import SnapshotError
from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.snapshot import Snapshot

REASONS: Final = MappingProxyType(
    {
        "B7": "the advance throws when the SPSO lies past a split batch; it stays where it is",
        "B8": "acquire throws when an aborted log batch begins before the first batch in flight; the member is answered"
        " with an error, and its records stay locked",
    }
)
"""What each of them is."""


def does_advance_throw(snapshot: Snapshot) -> bool:
    """Return whether an advance throws (B7): the SPSO lies past the end of its floor batch, which is split."""
    floor = None
    for batch in snapshot.batches:
        if batch.first_offset > snapshot.start_offset:
            break
        floor = batch
    return floor is not None and floor.is_split and floor.last_offset < snapshot.start_offset


def write_succeeded_without_advance(
    snapshot: Snapshot, number: int, *, record_transitions: bool = False
) -> tuple[SharePartition, Effects] | None:
    """
    Return the share partition after a write has succeeded, where the advance throws; None if it cannot be made.

    Args:
        snapshot: The share partition before.
        number: The write.
        record_transitions: As for ``SharePartition``.
    """
    below = evolve(snapshot, start_offset=snapshot.batches[0].first_offset - 1)
    try:
        partition = SharePartition.restore(below, record_transitions=True)  # nothing is cached at its SPSO
        effects = partition.write_succeeded(number)
        after = evolve(partition.snapshot(), start_offset=snapshot.start_offset)
        return SharePartition.restore(after, record_transitions=record_transitions), effects
    except SnapshotError:
        return None


def does_acquire_throw(fetched: FetchedRecords, first_cached: int) -> bool:
    """Return whether acquire throws (B8) on an aborted log batch that begins before *first_cached*."""
    producers = {transaction.producer_id for transaction in fetched.aborted_transactions}
    return any(
        batch.first_offset < first_cached and batch.is_transactional and batch.producer_id in producers
        for batch in fetched.batches
    )
