"""Record batches as producers send them, made by aiokafka, and with headers that no producer would write."""

from __future__ import annotations

from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from sharestate.broker.node import LogRecord
from sharestate.segments.batches import HEADER

CRC_FROM: Final = 21
"""Where the checksum of a batch begins to count (DefaultRecordBatch). [bytes]"""

FIELDS: Final = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
"""The fields of a batch's header, in their order."""

ONE: Final = LogRecord(b"k", b"v", (), 5)


def batch_bytes(
    *records: LogRecord,
    compression: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
) -> bytes:
    """Return a batch of *records*, or of one; its producer has an id, an epoch and a sequence number."""
    producer_id, epoch, sequence = producer
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=int(is_transactional),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=2**30,
    )
    for offset, record in enumerate(records or (ONE,)):
        builder.append(offset, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def with_header(data: bytes, *, is_sound: bool = True, **values: int) -> bytes:
    """Return a batch with another header, and with the checksum that goes with it if it is to be sound."""
    header = dict(zip(FIELDS, HEADER.unpack_from(data), strict=True)) | values
    changed = HEADER.pack(*header.values()) + data[HEADER.size :]
    if is_sound:
        crc = calc_crc32c(changed[CRC_FROM:])
        changed = changed[: CRC_FROM - 4] + crc.to_bytes(4) + changed[CRC_FROM:]
    return changed


def header_of(data: bytes) -> dict[str, int]:
    """Return the fields of a batch's header."""
    return dict(zip(FIELDS, HEADER.unpack_from(data), strict=True))
