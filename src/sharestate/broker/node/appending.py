"""What a node checks of a batch before it appends it: size, records, timestamps, and then the producer's numbers."""

from __future__ import annotations

from typing import NamedTuple

from sharestate.broker.node.log_batches import NO_TIMESTAMP, ProducedBatch
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.topic_configs import MessageTimestampType, TopicConfig
from sharestate.broker.node.topics import Topic
from sharestate.errors import ErrorCode, NodeError
from sharestate.values.records import NO_PRODUCER_ID


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


def append_produced(topic: Topic, log: PartitionLog, batch: ProducedBatch, *, now_ms: int) -> Appended:
    """
    Append what a client has produced, or find out that it was appended before.

    Args:
        topic: The topic.
        log: The log of one of its partitions.
        batch: The batch.
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
    _check_records(topic, batch, now_ms)
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


def _check_records(topic: Topic, batch: ProducedBatch, now_ms: int) -> None:
    """Refuse what no record may be; batches that are bytes are not looked into, but for their highest timestamp."""
    if batch.producer_id != NO_PRODUCER_ID and batch.base_sequence < 0:
        message = f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
        raise NodeError(message, ErrorCode.INVALID_RECORD)
    config = topic.config
    keys = () if isinstance(batch.records, bytes) else (record.key for record in batch.records)
    if config.is_compacted and any(key is None for key in keys):
        message = f"Compacted topic cannot accept message without key in topic {topic.name}"
        raise NodeError(message, ErrorCode.INVALID_RECORD)
    if config.message_timestamp_type is MessageTimestampType.CREATE_TIME:
        _check_timestamps(batch, config, now_ms)


def _check_timestamps(batch: ProducedBatch, config: TopicConfig, now_ms: int) -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    if isinstance(batch.records, bytes):
        timestamps = [batch.max_timestamp_ms]
    else:
        timestamps = [record.timestamp_ms for record in batch.records]
    for timestamp in timestamps:
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            message = f"Timestamp {timestamp} is out of range. It should be within [{earliest}, {latest}]"
            raise NodeError(message, ErrorCode.INVALID_TIMESTAMP)
