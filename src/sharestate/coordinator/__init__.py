"""
The share coordinator, which stores the state of share partitions behind Kafka's persister.

It does no I/O, reads no clock and starts no thread: the time comes in as ``now_ms``, records go out as values.
"""

from sharestate.coordinator.combiner import Combine, combine, combine_to_fewest
from sharestate.coordinator.placement import coordinator_key, state_partition
from sharestate.coordinator.profiles import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    COORDINATOR_PROFILES,
    CoordinatorConfig,
    CoordinatorProfile,
)
from sharestate.coordinator.records import (
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    TaggedField,
    decode_record,
    encode_record,
)
from sharestate.coordinator.shard import CoordinatorShard, Outcome
from sharestate.coordinator.stored_state import StoredState

__all__ = [
    "COORDINATOR_4_2",
    "COORDINATOR_4_3",
    "COORDINATOR_4_4",
    "COORDINATOR_PROFILES",
    "Combine",
    "CoordinatorConfig",
    "CoordinatorProfile",
    "CoordinatorShard",
    "Outcome",
    "RecordType",
    "ShareSnapshot",
    "ShareUpdate",
    "StateRecord",
    "StoredState",
    "TaggedField",
    "combine",
    "combine_to_fewest",
    "coordinator_key",
    "decode_record",
    "encode_record",
    "state_partition",
]
