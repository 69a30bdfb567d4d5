"""
Record batches as clients send them and get them: bytes, whose headers are read here and whose records stay as they are.

A producer sends one batch for a partition, in format 2. A consumer gets as many as there are, each with its offset and
the epoch of the partition's leader; what is not as the log has it is written again, with its checksum.

Source:
    DefaultRecordBatch, ProduceRequest.validateRecords, ByteBufferLogInputStream, UnifiedLog.analyzeAndValidateRecords,
    LogValidator.validateBatch (Kafka 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, NoReturn

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from sharestate.broker.node import LogBatch, LogRecord, LogRecords, ProducedBatch
from sharestate.errors import ErrorCode, NodeError, SegmentError
from sharestate.segments.batches import BEFORE_LENGTH, HEADER, decode_batch
from sharestate.segments.compression import Compression, Excess
from sharestate.values.named_tuples import new_tuple
from sharestate.values.records import NO_PRODUCER_ID

MAGIC: Final = 2
"""The format of record batches since Kafka 0.11."""

_MAGIC_OFFSET: Final = 16
_LEAST_BATCH: Final = 14
"""What a batch of any format takes behind its length (LegacyRecord.RECORD_OVERHEAD_V0). [bytes]"""

_ATTRIBUTES_OFFSET: Final = 21
"""Where the checksum begins to count. [bytes]"""

_COMPRESSION: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
"""The bits of a batch's attributes."""

_ZSTD_PRODUCE: Final = 7
"""The version of Produce from which on batches may be compressed with zstd."""

_LENGTH: Final = Struct(">8xi")
_PRODUCED: Final = "a produced batch"
"""What errors of the record reader name in the place of a file."""


class _Header(NamedTuple):
    """The header of a batch, by the names of DefaultRecordBatch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def of(cls, data: bytes) -> _Header:
        return cls._make(HEADER.unpack_from(data))


def next_batch_size(data: bytes, begin: int = 0) -> int | None:
    """
    Return the size of the batch of any format at *begin* of *data*; None if there is no whole one. [bytes]

    Raises:
        NodeError: What begins there is no batch: CORRUPT_MESSAGE.

    Source:
        ByteBufferLogInputStream.nextBatch (Kafka 4.4.0).
    """
    left = len(data) - begin
    if left < BEFORE_LENGTH:
        return None
    (length,) = _LENGTH.unpack_from(data, begin)
    if length < _LEAST_BATCH:
        message = f"Record size {length} is less than the minimum record overhead ({_LEAST_BATCH})"
        raise NodeError(message, ErrorCode.CORRUPT_MESSAGE)
    if left <= _MAGIC_OFFSET:
        return None
    magic = data[begin + _MAGIC_OFFSET]
    if magic > MAGIC:
        message = f"Invalid magic found in record: {magic}"
        raise NodeError(message, ErrorCode.CORRUPT_MESSAGE)
    size = BEFORE_LENGTH + int(length)
    return size if size <= left else None


def is_transactional(data: bytes) -> bool:
    """
    Return whether the first batch of *data* belongs to a transaction.

    Raises:
        NodeError: It is no batch: CORRUPT_MESSAGE.

    Source:
        RequestUtils.hasTransactionalRecords (Kafka 4.4.0), which looks at all batches; one is all that is taken.
    """
    if next_batch_size(data) is None or data[_MAGIC_OFFSET] < MAGIC:
        return False
    return bool(data[_ATTRIBUTES_OFFSET + 1] & _TRANSACTIONAL)


def check_form(data: bytes, version: int) -> None:
    """
    Refuse *data* if a Produce of this *version* may not have it for a partition: it has to be one batch of format 2.

    Raises:
        NodeError: It is not.

    Source:
        ProduceRequest.validateRecords (Kafka 4.4.0).
    """
    size = next_batch_size(data)
    request = f"Produce requests with version {version}"
    if size is None:
        _refuse(f"{request} must have at least one record batch per partition")
    if data[_MAGIC_OFFSET] != MAGIC:
        _refuse(f"{request} are only allowed to contain record batches with magic version 2")
    codec = data[_ATTRIBUTES_OFFSET + 1] & _COMPRESSION
    if version < _ZSTD_PRODUCE and codec > Compression.ZSTD:  # an IllegalArgumentException fails the whole request
        raise NodeError(None, ErrorCode.UNKNOWN_SERVER_ERROR)
    if version < _ZSTD_PRODUCE and codec == Compression.ZSTD:
        message = f"{request} are not allowed to use ZStandard compression"
        raise NodeError(message, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if next_batch_size(data, size) is not None:
        _refuse(f"{request} are only allowed to contain exactly one record batch per partition")


def read_produced(data: bytes, *, max_message_bytes: int) -> ProducedBatch:
    """
    Return the batch that a producer sends, whose form is right; its records are not looked at.

    Args:
        data: Its bytes.
        max_message_bytes: ``max.message.bytes`` of the topic: a checksum takes time. [bytes]

    Raises:
        NodeError: Kafka does not take it.

    Source:
        UnifiedLog.analyzeAndValidateRecords, LogValidator.validateBatch (Kafka 4.4.0).
    """
    size = next_batch_size(data)
    data = data[:size]
    if int.from_bytes(data[:8]):
        _refuse("The baseOffset of the record batch should be 0")
    if len(data) > max_message_bytes:
        message = f"The record batch size is {len(data)} bytes which exceeds the maximum configured value"
        raise NodeError(message, ErrorCode.MESSAGE_TOO_LARGE)
    header = _Header.of(data) if len(data) >= HEADER.size else None
    if header is None or calc_crc32c(data[_ATTRIBUTES_OFFSET:]) != header.crc:
        message = "Record is corrupt"
        raise NodeError(message, ErrorCode.CORRUPT_MESSAGE)
    _check_header(header)
    return ProducedBatch(
        records=data,
        record_count=header.record_count,
        max_timestamp_ms=max(header.max_timestamp, -1),
        producer_id=max(header.producer_id, NO_PRODUCER_ID),
        producer_epoch=max(header.producer_epoch, -1),
        base_sequence=max(header.base_sequence, -1),
        is_transactional=bool(header.attributes & _TRANSACTIONAL),
    )


def _check_header(header: _Header) -> None:
    if header.attributes & _COMPRESSION >= len(Compression):
        message = f"Unknown compression type id: {header.attributes & _COMPRESSION}"
        raise NodeError(message, ErrorCode.UNKNOWN_SERVER_ERROR)  # an IllegalArgumentException
    if header.last_offset_delta < 0:
        _refuse(f"Batch has an invalid offset range: [0, {header.last_offset_delta}]")
    if header.record_count <= 0:
        _refuse(f"Invalid reported count for record batch: {header.record_count}")
    if header.record_count != header.last_offset_delta + 1:
        _refuse(
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of records "
            f"{header.record_count}"
        )
    if header.attributes & _CONTROL:
        _refuse("Clients are not allowed to write control records")


def _refuse(message: str) -> NoReturn:
    raise NodeError(message, ErrorCode.INVALID_RECORD)


def decode(data: bytes) -> Iterator[LogRecord]:
    """
    Yield the records of a batch that was produced.

    Raises:
        NodeError: It has none that can be read, or their offsets do not ascend within the batch: INVALID_RECORD. A
            broker replaces such offsets if the batch is compressed, and takes them as they are if it is not.
    """
    try:
        for _, at_ms, key, value, headers in decode_batch(data, _PRODUCED, 0, Excess()).records():
            yield new_tuple(LogRecord, (key, value, headers, at_ms))
    except SegmentError as error:
        raise NodeError(str(error), ErrorCode.INVALID_RECORD) from error


def to_wire(batch: LogBatch, leader_epoch: int) -> bytes:
    """
    Return *batch* as consumers get it.

    Args:
        batch: The batch.
        leader_epoch: The epoch of the partition's leader.

    Complexity:
        O(n) in its bytes, with their checksum only if it changes.

    Source:
        DefaultRecordBatch.setLastOffset, setMaxTimestamp, setPartitionLeaderEpoch (Kafka 4.4.0).
    """
    data = batch.records if isinstance(batch.records, bytes) else _encoded(batch, batch.records)
    header = _Header.of(data)
    place = batch.batch
    attributes = header.attributes & ~(_LOG_APPEND_TIME | _CONTROL)
    attributes |= batch.has_append_time * _LOG_APPEND_TIME | (place.control is not None) * _CONTROL
    written = header._replace(
        base_offset=place.first_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=place.last_offset - place.first_offset,
        max_timestamp=batch.max_timestamp_ms,
    )
    if written[5:] != header[5:]:
        checked = HEADER.pack(*written)[_ATTRIBUTES_OFFSET:] + data[HEADER.size :]
        written = written._replace(crc=calc_crc32c(checked))
    return HEADER.pack(*written) + data[HEADER.size :]


def _encoded(batch: LogBatch, records: LogRecords) -> bytes:
    """Return records that the node has written or compacted itself; without compression."""
    builder = DefaultRecordBatchBuilder(
        magic=MAGIC,
        compression_type=0,
        is_transactional=batch.batch.is_transactional,
        producer_id=batch.batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        batch_size=_NO_LIMIT,
    )
    for delta, record in enumerate(records):
        if record is not None:
            builder.append(delta, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())


_NO_LIMIT: Final = 2**31 - 1
"""The largest batch that the builder takes: the node has bounded what it writes. [bytes]"""
