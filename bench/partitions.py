"""Share partitions to measure, and the few things that happen to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    Effects,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY: Final = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
CONFIG: Final = ShareConfig(max_record_locks=10**9, delivery_count_limit=10**9)
"""Room for every record and every delivery, so that what is measured never runs into a limit."""

LAPSED_MS: Final = CONFIG.record_lock_duration_ms + 1
"""When locks have lapsed that were taken at 0. [ms]"""

RELEASE: Final = (AcknowledgeType.RELEASE,)
ACCEPT: Final = (AcknowledgeType.ACCEPT,)


def opened(*, tells: bool = False) -> SharePartition:
    """Return a share partition that is loaded and empty."""
    partition = SharePartition(KEY, config=CONFIG, tells_transitions=tells)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))
    return partition


def filled(batches: int, *, size: int = 1) -> SharePartition:
    """Return a share partition with as many in-flight batches of *size* records, each held by its own member."""
    partition = opened()
    for index in range(batches):
        acquire(partition, index * size, size, f"m{index}")
    return partition


def split(size: int) -> SharePartition:
    """Return a share partition with one batch that is kept record by record, all of it held by m0."""
    partition = filled(1, size=size)
    acknowledge(partition, 0, 0, RELEASE)
    acquire(partition, 0, size)
    return partition


def acquire(partition: SharePartition, first_offset: int, size: int, member_id: str = "m0") -> Effects:
    """Fetch one batch of the log, and let *member_id* acquire of it what it may."""
    fetched = FetchedRecords(fetch_offset=first_offset, batches=[RecordBatch(first_offset, first_offset + size - 1)])
    return partition.acquire(member_id, fetched, now_ms=0, max_records=size)


def acknowledge(
    partition: SharePartition, first_offset: int, last_offset: int, types: tuple[int, ...] = ACCEPT, member: str = "m0"
) -> None:
    """Acknowledge one range, and let the write succeed."""
    acknowledge_all(partition, [AcknowledgementBatch(first_offset, last_offset, types)], member)


def acknowledge_all(partition: SharePartition, batches: Iterable[AcknowledgementBatch], member: str = "m0") -> None:
    """Acknowledge in one call, and let the write succeed."""
    for write in partition.acknowledge(member, batches, now_ms=0).writes:
        partition.write_succeeded(write.number)
