"""Share partitions to measure, and the few things that happen to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sharestate import (
    KAFKA_4_3,
    AcknowledgementBatch,
    AcknowledgeType,
    Effects,
    FetchedRecords,
    PersistedState,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sharestate import WriteShareGroupState

KEY: Final = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
CONFIG: Final = ShareConfig(max_record_locks=10**9, delivery_count_limit=10**9)
"""Room for every record and every delivery, so that what is measured never runs into a limit."""

EXPIRED_MS: Final = CONFIG.record_lock_duration_ms + 1
"""When locks that were taken at 0 have expired. [ms]"""

RELEASE: Final = (AcknowledgeType.RELEASE,)
ACCEPT: Final = (AcknowledgeType.ACCEPT,)


def opened(*, recording: bool = False, profile: Profile = KAFKA_4_3) -> SharePartition:
    """Return a share partition that is loaded and empty."""
    # Only where it is wanted, so that trees can be compared in which the argument has another name.
    made = partial(SharePartition, record_transitions=True) if recording else SharePartition
    partition = made(KEY, config=CONFIG, profile=profile)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))
    return partition


def filled(batches: int, *, size: int = 1, profile: Profile = KAFKA_4_3) -> SharePartition:
    """Return a share partition with as many in-flight batches of *size* records, each held by its own member."""
    partition = opened(profile=profile)
    for index in range(batches):
        acquire(partition, index * size, size, f"m{index}")
    return partition


def split(size: int) -> SharePartition:
    """Return a share partition with one batch that is kept record by record, all of it held by m0."""
    partition = filled(1, size=size)
    acknowledge(partition, 0, 0, RELEASE)
    acquire(partition, 0, size)
    return partition


def fetched(first_offset: int, size: int) -> FetchedRecords:
    """Return what a fetch of one batch of the log has brought."""
    return FetchedRecords(fetch_offset=first_offset, batches=[RecordBatch(first_offset, first_offset + size - 1)])


def acquire(partition: SharePartition, first_offset: int, size: int, member_id: str = "m0") -> Effects:
    """Fetch one batch of the log, and let *member_id* acquire of it what it may."""
    return partition.acquire(member_id, fetched(first_offset, size), now_ms=0, max_records=size)


def acknowledge(
    partition: SharePartition, first_offset: int, last_offset: int, types: tuple[int, ...] = ACCEPT, member: str = "m0"
) -> None:
    """Acknowledge one range, and let the write succeed."""
    acknowledge_all(partition, [AcknowledgementBatch(first_offset, last_offset, types)], member)


def acknowledge_all(
    partition: SharePartition,
    batches: Iterable[AcknowledgementBatch],
    member: str = "m0",
    read: Callable[[WriteShareGroupState], object] | None = None,
) -> None:
    """Acknowledge in one call, *read* the write if something is to be read of it, and let it succeed."""
    for write in partition.acknowledge(member, batches, now_ms=0).writes:
        if read is not None:
            read(write)
        partition.write_succeeded(write.number)
