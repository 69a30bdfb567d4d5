"""
A pure-Python model of what Kafka brokers do for share groups (KIP-932, queues for Kafka).

Import from here. The core does no I/O, reads no clock and starts no thread: time comes in as ``now_ms``, and everything
that it wants done comes out as a value.
"""

from sharestate.error_codes import ErrorCode
from sharestate.errors import (
    AlreadyInitializedError,
    CoordinatorNotAvailableError,
    ForeignError,
    GroupIdNotFoundError,
    InitializationError,
    InvalidRecordStateError,
    InvalidRequestError,
    InvariantError,
    LeaderNotAvailableError,
    MalformedInputError,
    NoReadPendingError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    ResetOffsetRequiredError,
    ShareStateError,
    SnapshotError,
    SplitLimitError,
    TimeReversedError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnknownWriteError,
    WriteFailedError,
    persister_error,
)
from sharestate.leader import AsyncLeader, Leader, Polled
from sharestate.partition.cells import Cell
from sharestate.partition.gaps import GapWindow
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.partition import SharePartition
from sharestate.partition.views import BatchView, RecordRun
from sharestate.persister import InMemoryPersister, Persister
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.config import EARLIEST, LATEST, AutoOffsetReset, OffsetReset, ShareConfig
from sharestate.values.effects import Effects
from sharestate.values.keys import SharePartitionKey
from sharestate.values.profiles import KAFKA_4_2, KAFKA_4_3, KIP_932, PROFILES, Profile, Quirk
from sharestate.values.records import (
    NO_PRODUCER_ID,
    AbortedTransaction,
    AcquiredRecords,
    AcquireMode,
    ControlType,
    FetchedRecords,
    IsolationLevel,
    RecordBatch,
    RecordState,
)
from sharestate.values.requests import PersistedState, ReadShareGroupState, StateBatch, WriteShareGroupState
from sharestate.values.snapshot import Snapshot
from sharestate.values.transitions import Cause, Transition
from sharestate.values.write_policies import Amendment, BrokerWritePolicy, KipWritePolicy, WritePolicy

__all__ = [
    "EARLIEST",
    "KAFKA_4_2",
    "KAFKA_4_3",
    "KIP_932",
    "LATEST",
    "NO_PRODUCER_ID",
    "PROFILES",
    "AbortedTransaction",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquiredRecords",
    "AlreadyInitializedError",
    "Amendment",
    "AsyncLeader",
    "AutoOffsetReset",
    "BatchView",
    "BrokerWritePolicy",
    "Cause",
    "Cell",
    "ControlType",
    "CoordinatorNotAvailableError",
    "Effects",
    "ErrorCode",
    "FetchedRecords",
    "ForeignError",
    "GapWindow",
    "GroupIdNotFoundError",
    "InMemoryPersister",
    "InitializationError",
    "InvalidRecordStateError",
    "InvalidRequestError",
    "InvariantError",
    "IsolationLevel",
    "KipWritePolicy",
    "Leader",
    "LeaderNotAvailableError",
    "Lifecycle",
    "MalformedInputError",
    "NoReadPendingError",
    "NotLeaderOrFollowerError",
    "OffsetNotAvailableError",
    "OffsetReset",
    "PersistedState",
    "Persister",
    "Polled",
    "Profile",
    "Quirk",
    "ReadShareGroupState",
    "RecordBatch",
    "RecordRun",
    "RecordState",
    "ResetOffsetRequiredError",
    "ShareConfig",
    "SharePartition",
    "SharePartitionKey",
    "ShareStateError",
    "Snapshot",
    "SnapshotError",
    "SplitLimitError",
    "StateBatch",
    "TimeReversedError",
    "Transition",
    "UnknownServerError",
    "UnknownTopicOrPartitionError",
    "UnknownWriteError",
    "WriteFailedError",
    "WritePolicy",
    "WriteShareGroupState",
    "persister_error",
]
