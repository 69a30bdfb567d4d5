"""
The share coordinator, which stores the state of share partitions behind Kafka's persister.

It reads no clock and starts no thread: the time comes in as ``now_ms``, records go out as values. Only ``SqliteLog``
does I/O.
"""

from typing import TYPE_CHECKING

from sharestate.coordinator.combiner import Combine, combine, combine_to_fewest
from sharestate.coordinator.placement import coordinator_key, state_partition
from sharestate.coordinator.profiles import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    COORDINATOR_PROFILES,
    COORDINATOR_TRUNK,
    EXPERIMENTAL_COORDINATORS,
    LATEST_COORDINATOR,
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
from sharestate.coordinator.share_coordinator import ShareCoordinator
from sharestate.coordinator.state_log import LoggedRecord, LogOffsets, MemoryLog, StateLog
from sharestate.coordinator.stored_state import StoredState

__all__ = [
    "COORDINATOR_4_2",
    "COORDINATOR_4_3",
    "COORDINATOR_4_4",
    "COORDINATOR_PROFILES",
    "COORDINATOR_TRUNK",
    "EXPERIMENTAL_COORDINATORS",
    "LATEST_COORDINATOR",
    "Combine",
    "CoordinatorConfig",
    "CoordinatorProfile",
    "CoordinatorShard",
    "LogOffsets",
    "LoggedRecord",
    "MemoryLog",
    "Outcome",
    "RecordType",
    "ShareCoordinator",
    "ShareSnapshot",
    "ShareUpdate",
    "SqliteLog",
    "StateLog",
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

if TYPE_CHECKING:
    from sharestate.coordinator.sqlite_log import SqliteLog
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Import SqliteLog on first use: not every Python has SQLite."""
        if name == "SqliteLog":
            from sharestate.coordinator.sqlite_log import SqliteLog  # noqa: PLC0415 - on first use

            return SqliteLog
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
