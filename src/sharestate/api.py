"""The names that ``sharestate`` exports; import them from there."""

from importlib import import_module
from typing import TYPE_CHECKING

from sharestate.coordinator.wire import topic_id_of
from sharestate.dead_letters import DeadLetterQueue, InMemoryDeadLetterQueue
from sharestate.errors import (
    AlreadyInitializedError,
    CoordinatorNotAvailableError,
    DeadLetterFailedError,
    DeadLetterQueueConfigError,
    ErrorCode,
    ExternalError,
    FormatError,
    GroupIdNotFoundError,
    InitializationError,
    InvalidConfigurationError,
    InvalidRecordStateError,
    InvalidRequestError,
    InvariantError,
    LeaderNotAvailableError,
    LeaderStateError,
    MalformedInputError,
    NoReadPendingError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    RecordFormatError,
    RequestRefusedError,
    ResetOffsetRequiredError,
    ResponseFormatError,
    ShareStateError,
    SnapshotError,
    SplitLimitError,
    StateLogError,
    TakeOverRequiredError,
    TimeReversedError,
    UnknownDeadLetterError,
    UnknownRecordTypeError,
    UnknownRecordVersionError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnknownWriteError,
    UnsupportedSaslMechanismError,
    WriteFailedError,
    WrongThreadError,
    persister_error,
)
from sharestate.leader import Leader, PollResult, monotonic_ms
from sharestate.partition import is_compiled
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.outlook import AcquisitionOutlook, ThrottledRecord
from sharestate.partition.share_partition import SharePartition
from sharestate.partition.state import GapWindow
from sharestate.partition.views import BatchView, RecordRun
from sharestate.persister import InMemoryPersister, Persister, ThreadedPersister
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.config import GroupCoordinatorConfig, ShareConfig
from sharestate.values.config_keys import ConfigKey, ConfigType, config_keys
from sharestate.values.dead_letters import DeadLetterCause, DeadLetterRequest
from sharestate.values.effective_configs import effective_configs
from sharestate.values.effects import Cause, Effects, Transition
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.offset_reset import AutoOffsetReset, OffsetReset
from sharestate.values.profiles import (
    KAFKA_4_2,
    KAFKA_4_3,
    KAFKA_4_4,
    KIP_932,
    LATEST,
    PROFILES,
    Amendment,
    BrokerWritePolicy,
    KipWritePolicy,
    Profile,
    Quirk,
    WritePolicy,
)
from sharestate.values.records import (
    NO_PRODUCER_ID,
    AbortedTransaction,
    AcquiredRecords,
    AcquireMode,
    ControlType,
    RecordBatch,
    RecordState,
    SharePartitionKey,
)
from sharestate.values.requests import PersistedState, ReadShareGroupState, StateBatch, StateRun, WriteShareGroupState
from sharestate.values.snapshot import Snapshot
from sharestate.values.transaction_index import TransactionIndex

__all__ = [
    "KAFKA_4_2",
    "KAFKA_4_3",
    "KAFKA_4_4",
    "KIP_932",
    "LATEST",
    "NO_PRODUCER_ID",
    "PROFILES",
    "AbortedTransaction",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquiredRecords",
    "AcquisitionOutlook",
    "AlreadyInitializedError",
    "Amendment",
    "AsyncLeader",
    "AutoOffsetReset",
    "BatchView",
    "BrokerWritePolicy",
    "Cause",
    "ConfigKey",
    "ConfigType",
    "ControlType",
    "CoordinatorNotAvailableError",
    "DeadLetterCause",
    "DeadLetterFailedError",
    "DeadLetterQueue",
    "DeadLetterQueueConfigError",
    "DeadLetterRequest",
    "Effects",
    "ErrorCode",
    "ExternalError",
    "FetchedRecords",
    "FormatError",
    "GapWindow",
    "GroupCoordinatorConfig",
    "GroupIdNotFoundError",
    "InMemoryDeadLetterQueue",
    "InMemoryPersister",
    "InitializationError",
    "InvalidConfigurationError",
    "InvalidRecordStateError",
    "InvalidRequestError",
    "InvariantError",
    "IsolationLevel",
    "KipWritePolicy",
    "Leader",
    "LeaderNotAvailableError",
    "LeaderStateError",
    "Lifecycle",
    "MalformedInputError",
    "NoReadPendingError",
    "NotLeaderOrFollowerError",
    "OffsetNotAvailableError",
    "OffsetReset",
    "PersistedState",
    "Persister",
    "PollResult",
    "Profile",
    "Quirk",
    "ReadShareGroupState",
    "RecordBatch",
    "RecordFormatError",
    "RecordRun",
    "RecordState",
    "RequestRefusedError",
    "ResetOffsetRequiredError",
    "ResponseFormatError",
    "ShareConfig",
    "SharePartition",
    "SharePartitionKey",
    "ShareStateError",
    "Snapshot",
    "SnapshotError",
    "SplitLimitError",
    "SqlitePersister",
    "StateBatch",
    "StateLogError",
    "StateRun",
    "TakeOverRequiredError",
    "ThreadedPersister",
    "ThrottledRecord",
    "TimeReversedError",
    "TransactionIndex",
    "Transition",
    "UnknownDeadLetterError",
    "UnknownRecordTypeError",
    "UnknownRecordVersionError",
    "UnknownServerError",
    "UnknownTopicOrPartitionError",
    "UnknownWriteError",
    "UnsupportedSaslMechanismError",
    "WriteFailedError",
    "WritePolicy",
    "WriteShareGroupState",
    "WrongThreadError",
    "config_keys",
    "effective_configs",
    "is_compiled",
    "monotonic_ms",
    "persister_error",
    "topic_id_of",
]

if TYPE_CHECKING:
    from sharestate.leader.async_leader import AsyncLeader
    from sharestate.persister import SqlitePersister
else:  # hidden from type checkers, for which every name would exist
    _MODULES = {
        "AsyncLeader": "sharestate.leader.async_leader",  # asyncio takes longer to load than the rest of the library
        "SqlitePersister": "sharestate.persister.sqlite_persister",  # not every Python has SQLite
    }

    def __getattr__(name: str) -> object:
        """Import on first use what needs more than the rest of the library."""
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
