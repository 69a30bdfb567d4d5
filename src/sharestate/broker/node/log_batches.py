"""The record batches that a node's log is made of, and what a read of it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from attrs import Factory, field, frozen

from sharestate.values.checks import brief_repr, expect, instance, integer, number, refuse, rows, text
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.records import NO_PRODUCER_ID, RecordBatch

NO_TIMESTAMP: Final = -1
"""The timestamp of a record without one (RecordBatch.NO_TIMESTAMP, Kafka 4.4)."""

NO_EPOCH: Final = -1
"""The producer epoch of a batch that was written without a producer id (RecordBatch, Kafka 4.4)."""

NO_SEQUENCE: Final = -1
"""The sequence number of a batch that was written without a producer id, and of markers (RecordBatch, Kafka 4.4)."""

MAX_INT16: Final = 2**15 - 1
MAX_INT32: Final = 2**31 - 1

BATCH_OVERHEAD: Final = 61
"""What a batch takes beside its records (DefaultRecordBatch.RECORD_BATCH_OVERHEAD, Kafka 4.4). [bytes]"""


COMPRESSION_OFFSET: Final = 22
"""Where the lower byte of a batch's attributes is (DefaultRecordBatch, Kafka 4.4). [bytes]"""

COMPRESSION: Final = 0x07
"""The bits of it that say how the records are compressed; 0 for not at all (DefaultRecordBatch, Kafka 4.4)."""


class LogRecord(NamedTuple):
    """
    A record of a log; its offset is that of its batch and its place there.

    Attributes:
        key: Its key; None for none.
        value: Its value; None for none, which makes it a tombstone in a compacted log.
        headers: Its headers, in order: names and values.
        timestamp_ms: Its timestamp; -1 for none. [ms since 1970]
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = NO_TIMESTAMP


LogRecords: TypeAlias = tuple[LogRecord | None, ...]
"""The records of a batch, one for each of its offsets; None where compaction has deleted it."""

Decoder: TypeAlias = Callable[[bytes], Iterable[LogRecord | None]]
"""
Returns the records of a batch that a log keeps as the bytes of the wire, at once or one after the other.

For bytes that have none it raises a ``NodeError``, which a producer gets for its answer.
"""


class LogBatch(NamedTuple):
    """
    A record batch of a log.

    Attributes:
        batch: Its offsets, its producer, and whether it is a marker: what share partitions have to know of it.
        max_timestamp_ms: The highest timestamp of its records; -1 if none has one. [ms since 1970]
        size_in_bytes: What it takes on the wire. [bytes]
        records: Its records, one for each offset, None where compaction has deleted it; or its bytes on the wire, whose
            base offset and leader epoch are not looked at.
        producer_epoch: The producer's epoch; -1 without a producer.
        base_sequence: The sequence number of its first record; -1 without a producer, and for markers.
        has_append_time: Whether all its records have the time at which the node has appended it, ``max_timestamp_ms``.
        delete_horizon_ms: When its tombstones, or the marker that it is, may be deleted; None until a compaction has
            found that nothing else needs them. [ms since 1970]
    """

    batch: RecordBatch
    max_timestamp_ms: int
    size_in_bytes: int
    records: LogRecords | bytes
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    has_append_time: bool = False
    delete_horizon_ms: int | None = None


def _produced_records(records: Iterable[LogRecord] | bytes) -> tuple[LogRecord, ...] | bytes:
    if isinstance(records, bytes):
        return records
    checked = rows(records, LogRecord, "records")
    for index, record in enumerate(checked):
        where = f"records[{index}]"
        for name, part in (("key", record.key), ("value", record.value)):
            if part is not None:
                expect(part, bytes, f"{where}.{name}")
        integer(record.timestamp_ms, f"{where}.timestamp_ms", NO_TIMESTAMP)
        _check_headers(record.headers, f"{where}.headers")
    return checked or refuse("expected at least one record", "records")


def _check_headers(headers: object, name: str) -> None:
    for index, header in enumerate(expect(headers, tuple, name)):
        where = f"{name}[{index}]"
        if not isinstance(header, tuple) or len(header) != 2:  # noqa: PLR2004 - name and value
            refuse(f"expected a name and a value, got {brief_repr(header)}", where)
        text(header[0], where)
        if header[1] is not None:
            expect(header[1], bytes, where)


def _varint_size(number: int) -> int:
    """Return how many bytes a number takes in zigzag encoding, seven bits in each. [bytes]"""
    zigzag = number << 1 if number >= 0 else ~(number << 1)
    return max(1, -(-zigzag.bit_length() // 7))


def _sized(data: bytes | None) -> int:
    return _varint_size(-1) if data is None else _varint_size(len(data)) + len(data)


def _count(batch: ProducedBatch) -> int:
    return len(batch.records)


def _latest(batch: ProducedBatch) -> int:
    return NO_TIMESTAMP if isinstance(batch.records, bytes) else latest_of(batch.records)


def latest_of(records: LogRecords) -> int:
    """Return the highest timestamp of *records*; -1 if none has one. [ms since 1970]"""
    return max((record.timestamp_ms for record in records if record is not None), default=NO_TIMESTAMP)


def size_of(records: LogRecords, delete_horizon_ms: int | None = None) -> int:
    """
    Return what *records* take as a batch on the wire, without compression. [bytes]

    Their timestamps are differences: from the delete horizon if the batch has one, else from that of the first record.

    Complexity:
        O(n) in the records.

    Source:
        DefaultRecord.sizeInBytes, DefaultRecordBatch.sizeInBytes (Kafka 4.4).

    >>> size_of((LogRecord(b"key", b"value", timestamp_ms=5),))
    76
    """
    base_ms = base_timestamp_of(records, delete_horizon_ms)
    sizes = (record_size(record, delta, base_ms) for delta, record in enumerate(records) if record is not None)
    return BATCH_OVERHEAD + sum(sizes)


def base_timestamp_of(records: LogRecords, delete_horizon_ms: int | None = None) -> int:
    """Return the timestamp from which those of *records* are counted on the wire. [ms since 1970]"""
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    return next((record.timestamp_ms for record in records if record is not None), 0)


def record_size(record: LogRecord, delta: int, base_ms: int) -> int:
    """
    Return what *record* takes on the wire, without compression. [bytes]

    Args:
        record: The record.
        delta: Its offset in the batch.
        base_ms: The timestamp from which those of the batch are counted. [ms since 1970]

    Source:
        DefaultRecord.sizeInBytes (Kafka 4.4).
    """
    body = 1 + _varint_size(record.timestamp_ms - base_ms) + _varint_size(delta)
    body += _sized(record.key) + _sized(record.value) + _varint_size(len(record.headers))
    body += sum(_sized(name.encode("utf-8", "replace")) + _sized(value) for name, value in record.headers)
    return _varint_size(body) + body


@frozen(kw_only=True)
class ProducedBatch:
    """
    A record batch that is to be appended to a log, which gives it its offsets.

    Attributes:
        records: Its records, at least one; or its bytes on the wire, which are kept as they are.
        record_count: How many records it has, by default as many as *records*, where they are no bytes. [records]
        max_timestamp_ms: The highest timestamp of its records, by default that of *records*. [ms since 1970]
        producer_id: The producer's id; -1 for none.
        producer_epoch: The producer's epoch; -1 without a producer.
        base_sequence: The sequence number of its first record; -1 without a producer.
        is_transactional: Whether it belongs to a transaction.

    Raises:
        MalformedInputError: A part is of the wrong type or out of bounds, or there are no records.

    >>> batch = ProducedBatch(records=[LogRecord(b"k", b"v", timestamp_ms=7), LogRecord(b"k", timestamp_ms=5)])
    >>> batch.record_count, batch.max_timestamp_ms, batch.size_in_bytes
    (2, 7, 78)
    """

    records: tuple[LogRecord, ...] | bytes = field(converter=_produced_records)
    record_count: int = field(default=Factory(_count, takes_self=True), validator=number(1, MAX_INT32))
    max_timestamp_ms: int = field(default=Factory(_latest, takes_self=True), validator=number(NO_TIMESTAMP))
    producer_id: int = field(default=NO_PRODUCER_ID, validator=number(NO_PRODUCER_ID))
    producer_epoch: int = field(default=NO_EPOCH, validator=number(NO_EPOCH, MAX_INT16))
    base_sequence: int = field(default=NO_SEQUENCE, validator=number(NO_SEQUENCE, MAX_INT32))
    is_transactional: bool = field(default=False, validator=instance(bool))
    size_in_bytes: int = field(init=False)
    """What it takes on the wire. [bytes]"""

    @size_in_bytes.default
    def _size(self) -> int:
        return len(self.records) if isinstance(self.records, bytes) else size_of(self.records)

    def __attrs_post_init__(self) -> None:
        """Check that the number of records is theirs."""
        if not isinstance(self.records, bytes) and self.record_count != len(self.records):
            refuse(f"expected {len(self.records)}, got {brief_repr(self.record_count)}", "record_count")


class LogRead(NamedTuple):
    """
    What a read of a log has found.

    Attributes:
        fetched: What a share partition is to be given.
        batches: The same batches, with their records.
        size_in_bytes: What they take on the wire. [bytes]
        filled_bytes: What a broker's answer takes: it is filled up with the beginning of the next batch, which clients
            skip. By it a fetch knows what is left for its other partitions. [bytes]
        log_start_offset: The log start offset.
        last_stable_offset: The last stable offset.
        high_watermark: The high watermark.
    """

    fetched: FetchedRecords
    batches: Sequence[LogBatch]
    size_in_bytes: int
    filled_bytes: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int


class RecordPlace(NamedTuple):
    """
    The place of a record in a log.

    Attributes:
        batch: Its batch.
        records: The records of that.
        delta: Its offset in the batch.
    """

    batch: LogBatch
    records: LogRecords
    delta: int

    @property
    def record(self) -> LogRecord | None:
        """The record; None if compaction has deleted it."""
        return self.records[self.delta]

    @property
    def size_in_bytes(self) -> int:
        """What the record takes on the wire, without compression; 0 if it was deleted. [bytes]"""
        base_ms = base_timestamp_of(self.records, self.batch.delete_horizon_ms)
        return 0 if self.record is None else record_size(self.record, self.delta, base_ms)

    @property
    def decompressed_size_in_bytes(self) -> int:
        """What all records of the batch take once they are decompressed; 0 if they are not compressed. [bytes]"""
        data = self.batch.records
        if not isinstance(data, bytes) or len(data) <= COMPRESSION_OFFSET or not data[COMPRESSION_OFFSET] & COMPRESSION:
            return 0
        return size_of(self.records) - BATCH_OVERHEAD


class OffsetOutOfRange(NamedTuple):
    """
    A read that begins where the log has nothing, and never will have: OFFSET_OUT_OF_RANGE.

    Attributes:
        fetch_offset: Where it was to begin.
        log_start_offset: The log start offset.
        high_watermark: The high watermark.
    """

    fetch_offset: int
    log_start_offset: int
    high_watermark: int


class TimestampedOffset(NamedTuple):
    """
    A record that was looked for by its timestamp.

    Attributes:
        offset: Its offset.
        timestamp_ms: Its timestamp. [ms since 1970]
    """

    offset: int
    timestamp_ms: int
