"""
The share coordinator, which stores the state of share partitions behind Kafka's persister.

It does no I/O, reads no clock and starts no thread: the time comes in as ``now_ms``, records go out as values.
"""

from sharestate.coordinator.records import (
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    TaggedField,
    decode_record,
    encode_record,
)

__all__ = [
    "RecordType",
    "ShareSnapshot",
    "ShareUpdate",
    "StateRecord",
    "TaggedField",
    "decode_record",
    "encode_record",
]
