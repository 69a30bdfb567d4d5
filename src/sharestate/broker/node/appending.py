"""What a node checks of a batch before it appends it: size, records, timestamps, and then the producer's numbers."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

from attrs import evolve

from sharestate.broker.node.log_batches import NO_TIMESTAMP, Decoder, LogRecord, ProducedBatch
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.topic_configs import MessageTimestampType, TopicConfig
from sharestate.broker.node.topics import Topic
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.records import NO_PRODUCER_ID

MOST_RECORD_ERRORS: Final = 1000
"""How many records are named that are to blame; a broker names all, which may be millions in one batch. [records]"""


class Appended(NamedTuple):
    """
    Where a batch is, which was appended now or before.

    Attributes:
        base_offset: The offset of its first record.
        log_append_time_ms: The time of its records, if that is the node's or the batch came again; else -1.
            [ms since 1970]
        is_new: Whether it was appended now.
    """

    base_offset: int
    log_append_time_ms: int
    is_new: bool


def append_produced(
    topic: Topic, log: PartitionLog, batch: ProducedBatch, *, decode: Decoder | None = None, now_ms: int
) -> Appended:
    """
    Append what a client has produced, or find out that it was appended before.

    Args:
        topic: The topic.
        log: The log of one of its partitions.
        batch: The batch.
        decode: Returns the records of a batch that comes as bytes; without it such a batch is not looked into, but for
            the highest timestamp that it is said to have.
        now_ms: The time. [ms since 1970]

    Raises:
        NodeError: Kafka does not take it; nothing was changed.

    Source:
        ReplicaManager.appendRecordsToLeader, UnifiedLog.append, LogValidator (Kafka 4.4).
    """
    if topic.is_internal:
        message = f"Cannot append to internal topic {topic.name}"
        raise NodeError(message, ErrorCode.INVALID_TOPIC_EXCEPTION)
    config = topic.config
    _check_size(topic, batch)
    _check_sequence(batch)
    batch = _checked_records(topic, batch, decode, now_ms)
    known = log.producers.duplicate_of(batch)
    if known is not None:
        return Appended(known.first_offset, known.timestamp_ms, is_new=False)
    log.producers.check(batch)
    is_append_time = config.message_timestamp_type is MessageTimestampType.LOG_APPEND_TIME
    appended = log.append(batch, append_time_ms=now_ms if is_append_time else None)
    return Appended(appended.batch.first_offset, now_ms if is_append_time else NO_TIMESTAMP, is_new=True)


def _check_size(topic: Topic, batch: ProducedBatch) -> None:
    limit = topic.config.max_message_bytes
    if batch.size_in_bytes > limit:
        message = (
            f"The record batch size in the append to {topic.name} is {batch.size_in_bytes} bytes which exceeds the "
            f"maximum configured value of {limit})."
        )
        raise NodeError(message, ErrorCode.MESSAGE_TOO_LARGE)


def _check_sequence(batch: ProducedBatch) -> None:
    if batch.producer_id != NO_PRODUCER_ID and batch.base_sequence < 0:
        message = f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
        raise NodeError(message, ErrorCode.INVALID_RECORD)


def _checked_records(topic: Topic, batch: ProducedBatch, decode: Decoder | None, now_ms: int) -> ProducedBatch:
    """Refuse what no record may be, and return *batch* with the highest timestamp that its records have."""
    if not isinstance(batch.records, bytes):
        records: Iterable[LogRecord | None] = batch.records
    elif decode is not None:
        records = decode(batch.records)
    else:
        records = (LogRecord(b"", timestamp_ms=batch.max_timestamp_ms),)
    is_compacted = topic.config.is_compacted
    earliest, latest = _timely(topic.config, now_ms)
    keyless: dict[int, str] = {}
    untimely: dict[int, str] = {}
    count, max_timestamp = 0, NO_TIMESTAMP
    # One after the other: if all were kept until the last one is decoded, the garbage collector would look at all that
    # there is, for each large batch.
    for index, record in enumerate(records):
        count += 1
        if record is None:
            continue
        timestamp = record.timestamp_ms
        max_timestamp = max(max_timestamp, timestamp)
        if is_compacted and record.key is None:
            keyless[index] = f"Compacted topic cannot accept message without key in topic {topic.name}"
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            untimely[index] = (
                f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should be within "
                f"[{earliest}, {latest}]"
            )
    if isinstance(batch.records, bytes) and decode is not None:
        if count != batch.record_count:
            message = f"Inconsistent count of records: {batch.record_count} in the batch, which has {count}"
            raise NodeError(message, ErrorCode.INVALID_RECORD)
        batch = evolve(batch, max_timestamp_ms=max_timestamp)
    _refuse_records({**untimely, **keyless}, has_untimely=bool(untimely.keys() - keyless.keys()))
    return batch


def _timely(config: TopicConfig, now_ms: int) -> tuple[float, float]:
    """Return the earliest and the latest timestamp that a record of a producer may have."""
    if config.message_timestamp_type is not MessageTimestampType.CREATE_TIME:
        return -inf, inf
    return now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms


def _refuse_records(errors: dict[int, str], *, has_untimely: bool) -> None:
    if not errors:
        return
    named = tuple(sorted(errors.items())[:MOST_RECORD_ERRORS])
    if has_untimely:
        message = "One or more records have been rejected due to invalid timestamp"
        raise NodeError(message, ErrorCode.INVALID_TIMESTAMP, named)
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in named[:3])
    message = (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )
    raise NodeError(message, ErrorCode.INVALID_RECORD, named)
