"""
One record batch of a log segment: what its header says, and its records, which are decoded when they are asked for.

Source:
    DefaultRecordBatch, ControlRecordType (Kafka 4.3.1).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from aiokafka.record import MemoryRecords
from attrs import field, frozen

from sharestate.errors import SegmentError, UnknownCompressionError
from sharestate.segments.compression import Compression, Excess, decompressed
from sharestate.values.records import MAX_OFFSET, ControlType, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HEADER: Final = Struct(">qiibIhiqqqhii")
"""A batch up to its records."""

BEFORE_LENGTH: Final = 12
"""The bytes that the length of a batch does not count: its base offset, and itself. [bytes]"""

_COMPRESSION: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
"""The bits of a batch's attributes (DefaultRecordBatch, Kafka 4.3.1)."""

_COMPRESSION_OFFSET: Final = 22
"""Where the lower byte of the attributes is in a batch. [bytes]"""
_CONTROL_KEY: Final = Struct(">hh")
_RECORDS_OF_BYTE: Final = 2
"""The most records for each byte of a batch, in whatever way it is compressed: each has an offset that the others have
not, which takes a byte and more. [records]"""

_CONTROL_TYPES: Final[Mapping[int, ControlType]] = MappingProxyType({0: ControlType.ABORT, 1: ControlType.COMMIT})


class TimestampType(IntEnum):
    """Who has set the timestamps of a batch; the numbers are those of the log."""

    CREATE_TIME = 0
    """The producer, record by record."""

    LOG_APPEND_TIME = 1
    """The broker, for the whole batch."""


class LogRecord(NamedTuple):
    """
    A record of the log.

    Attributes:
        offset: Its offset.
        timestamp_ms: Its timestamp; -1 for none. [ms since 1970]
        key: Its key; None for none.
        value: Its value; None for none.
        headers: Its headers, in order.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@frozen
class LogBatch:
    """
    A record batch of the log, whose checksum is right.

    Attributes:
        file: The segment that it is in.
        byte_offset: Where it begins there. [bytes]
        first_offset: Its base offset.
        last_offset: Its last offset, included; compaction keeps it when it deletes the record there.
        record_count: The number of its records; compaction may have deleted all of them. [records]
        leader_epoch: The epoch of the partition's leader that has written it; -1 for none.
        max_timestamp_ms: The highest timestamp of its records. [ms since 1970]
        timestamp_type: Who has set the timestamps.
        producer_id: The producer's id; -1 for none.
        producer_epoch: The producer's epoch; -1 for none.
        is_transactional: Whether it belongs to a transaction.
        is_control: Whether its record is one that brokers write for themselves.
        control: The kind of a transaction marker; None for data, and for what else brokers write for themselves.
        compression: How its records are compressed.
        data: All of its bytes.
    """

    file: str
    byte_offset: int
    first_offset: int
    last_offset: int
    record_count: int
    leader_epoch: int
    max_timestamp_ms: int
    timestamp_type: TimestampType
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    control: ControlType | None
    compression: Compression
    data: bytes = field(repr=False)
    _excess: Excess = field(repr=False, eq=False)

    @property
    def size(self) -> int:
        """The size in the log, with the header. [bytes]"""
        return len(self.data)

    def records(self) -> Iterator[LogRecord]:
        """
        Yield its records, those of control batches too.

        Raises:
            SegmentError: The bytes are no such records, although the checksum is right; or they are too many once they
                are decompressed: more than 1 MiB, and 64 times what they take in the log; or more than 100 MiB; or, of
                all batches that were decompressed since the reader began, 1 GiB more than 256 times what they take.
        """
        offsets = range(self.first_offset, self.last_offset + 1)
        return _records(self.data, self.file, self.byte_offset, offsets, self._excess)

    def to_record_batch(self) -> RecordBatch:
        """Return what a fetch for a share group has to know of it."""
        return RecordBatch(self.first_offset, self.last_offset, self.producer_id, self.is_transactional, self.control)


def decode_batch(data: bytes, file: str, byte_offset: int, excess: Excess) -> LogBatch:
    """
    Return the batch of format 2 whose bytes are *data*, which begin at *byte_offset* of *file*.

    What it has once it is decompressed, beyond what is common, is taken from *excess*.

    Raises:
        SegmentError: The checksum is wrong, or a number in the header is senseless.
        UnknownCompressionError: The records are compressed in a way that no broker knows.
    """

    def refuse(message: str, kind: type[SegmentError] = SegmentError) -> NoReturn:
        raise kind(message, file, byte_offset=byte_offset)

    base, _, leader_epoch, _, crc, flags, delta, _, max_ms, producer_id, producer_epoch, _, count = HEADER.unpack_from(
        data
    )
    if not MemoryRecords(data).next_batch().validate_crc():
        refuse(f"the checksum of the record batch is not {crc:#010x}")
    if base < 0 or delta < 0 or base + delta > MAX_OFFSET or not 0 <= count <= delta + 1:
        refuse(f"{count} records from offset {base} to {base + delta}")
    if count > _RECORDS_OF_BYTE * len(data):
        refuse(f"{count} records in a batch of {len(data)} bytes")
    compression = flags & _COMPRESSION
    if compression >= len(Compression):
        refuse(f"unknown compression type {compression}", UnknownCompressionError)
    return LogBatch(
        file,
        byte_offset,
        base,
        base + delta,
        count,
        leader_epoch,
        max_ms,
        TimestampType(bool(flags & _LOG_APPEND_TIME)),
        producer_id,
        producer_epoch,
        bool(flags & _TRANSACTIONAL),
        bool(flags & _CONTROL),
        _control(data, file, byte_offset, range(base, base + delta + 1), excess) if flags & _CONTROL else None,
        Compression(compression),
        data,
        excess,
    )


def _records(data: bytes, file: str, byte_offset: int, offsets: range, excess: Excess) -> Iterator[LogRecord]:
    previous = -1
    try:
        for record in MemoryRecords(_uncompressed(data, excess)).next_batch():
            if record.offset not in offsets or record.offset <= previous:
                after = f" after {previous}" if record.offset in offsets else ""
                message = f"offset {record.offset}{after} in a batch from {offsets[0]} to {offsets[-1]}"
                raise ValueError(message)  # noqa: TRY301 - said like what the reader raises
            previous = record.offset
            yield LogRecord(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
    except Exception as error:
        # The reader has several, and so have the codecs.
        message = f"the records cannot be read: {error}"
        raise SegmentError(message, file, byte_offset=byte_offset) from error


def _uncompressed(data: bytes, excess: Excess) -> bytes:
    """Return a batch as it would be without compression, but for the checksum."""
    compression = data[_COMPRESSION_OFFSET] & _COMPRESSION
    if not compression:
        return data
    base, _, leader_epoch, magic, crc, flags, *others = HEADER.unpack_from(data)
    records = decompressed(data[HEADER.size :], Compression(compression))
    excess.take(len(data), len(records))
    length = HEADER.size - BEFORE_LENGTH + len(records)
    header = HEADER.pack(base, length, leader_epoch, magic, crc, flags & ~_COMPRESSION, *others)
    return header + records


def _control(data: bytes, file: str, byte_offset: int, offsets: range, excess: Excess) -> ControlType | None:
    """Return the kind of the transaction marker in a control batch, if there is one: its first record."""
    record = next(_records(data, file, byte_offset, offsets, excess), None)
    if record is None or record.key is None or len(record.key) < _CONTROL_KEY.size:
        return None
    return _CONTROL_TYPES.get(_CONTROL_KEY.unpack_from(record.key)[1])
