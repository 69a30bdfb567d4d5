"""
A node of Kafka in memory: its topics and their logs.

It reads no clock and does no I/O: the time comes in as ``now_ms``.
"""

from sharestate.broker.node.log_batches import (
    Decoder,
    LogBatch,
    LogRead,
    LogRecord,
    LogRecords,
    OffsetOutOfRange,
    ProducedBatch,
    TimestampedOffset,
)
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.topic_configs import CleanupPolicy, MessageTimestampType, TopicConfig, read_topic_configs
from sharestate.broker.node.topics import Topic, Topics
from sharestate.errors import NodeError

__all__ = [
    "CleanupPolicy",
    "Decoder",
    "LogBatch",
    "LogRead",
    "LogRecord",
    "LogRecords",
    "MessageTimestampType",
    "NodeError",
    "OffsetOutOfRange",
    "PartitionLog",
    "ProducedBatch",
    "TimestampedOffset",
    "Topic",
    "TopicConfig",
    "Topics",
    "read_topic_configs",
]
