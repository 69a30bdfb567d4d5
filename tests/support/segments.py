"""The records of a log segment, for recordings of a real broker: uncompressed batches of the record format 2."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from sharestate.segments import LogBatch, LogReader

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""A batch up to its records (DefaultRecordBatch, Kafka 4.4.0)."""

BEFORE_LENGTH: Final = 12
"""The bytes that the length of a batch does not count: its base offset, and itself."""


class SegmentRecord(NamedTuple):
    """A record as it stands in the log."""

    offset: int
    attributes: int
    producer_id: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def records(path: Path) -> Iterator[SegmentRecord]:
    """Yield every record of a segment; *attributes* are those of the batch."""
    data = path.read_bytes()
    while data:
        base, length, _, magic, _, attributes, _, base_ms, _, producer_id, _, _, count = HEADER.unpack_from(data)
        assert (magic, attributes & 7) == (2, 0), "an uncompressed batch of format 2"
        reader = BytesIO(data[HEADER.size : BEFORE_LENGTH + length])
        for _ in range(count):
            _varint(reader)  # the record's length
            reader.read(1)  # its attributes, of which there are none
            timestamp = base_ms + _varint(reader)
            offset = base + _varint(reader)
            key, value = _bytes(reader), _bytes(reader)
            headers = tuple((_text(reader), _bytes(reader)) for _ in range(_varint(reader)))
            yield SegmentRecord(offset, attributes, producer_id, timestamp, key, value, headers)
        data = data[BEFORE_LENGTH + length :]


def _varint(reader: BytesIO) -> int:
    raw = shift = 0
    while True:
        (byte,) = reader.read(1)
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1)
        shift += 7


def _bytes(reader: BytesIO) -> bytes | None:
    length = _varint(reader)
    return None if length < 0 else reader.read(length)


def _text(reader: BytesIO) -> str:
    return (_bytes(reader) or b"").decode()


def keep_batches(
    source: Path, target: Path, keeps: Callable[[LogBatch], bool] = lambda _: True, begin: int = 0
) -> None:
    """Write those batches of a partition's log to another directory that are kept, all from an offset on."""
    target.mkdir(parents=True)
    kept = [batch.data for batch in LogReader(source) if batch.first_offset >= begin and keeps(batch)]
    (target / f"{begin:020}.log").write_bytes(b"".join(kept))
