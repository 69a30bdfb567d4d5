"""The picture of a share partition that the README begins with, drawn by ``sharestate.plots``."""

from __future__ import annotations

from io import StringIO
from typing import Final

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
)
from sharestate.plots import offset_line

KEY: Final = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)

WIDTH: Final = 690
"""The width of the line, so that the picture is as wide as a page of docs. [px]"""

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def picture() -> str:
    """Return the picture as SVG: every state of records that a group without a dead-letter queue has."""
    file = StringIO()
    offset_line(share_partition(), width=WIDTH).save(file, format="svg")
    return file.getvalue() + "\n"


def share_partition() -> SharePartition:
    """Return a share partition in the middle of its work: three members have acquired three log batches."""
    partition = SharePartition(KEY)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=100))
    for member, first in (("m1", 100), ("m2", 110), ("m3", 120)):
        fetched = FetchedRecords(fetch_offset=first, batches=[RecordBatch(first, first + 9)])
        partition.acquire(member, fetched, now_ms=first)
    _acknowledge(partition, "m1", 100, 103, ACCEPT)  # the SPSO passes them
    _acknowledge(partition, "m1", 106, 109, ACCEPT)
    _acknowledge(partition, "m2", 110, 113, RELEASE)
    _acknowledge(partition, "m2", 114, 115, REJECT)
    _acknowledge(partition, "m3", 120, 123, ACCEPT)
    again = FetchedRecords(fetch_offset=110, batches=[RecordBatch(110, 119)])
    partition.acquire("m4", again, now_ms=300, max_records=2, mode=AcquireMode.RECORD_LIMIT)
    return partition


def _acknowledge(partition: SharePartition, member: str, first: int, last: int, type_: AcknowledgeType) -> None:
    for write in partition.acknowledge(member, [AcknowledgementBatch(first, last, (type_,))], now_ms=200).writes:
        partition.write_succeeded(write.number)
