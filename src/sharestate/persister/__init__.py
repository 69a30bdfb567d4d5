"""
Persisters, which store the state of share partitions: their protocol, their requests and answers, and some of them.

``Persister`` is a ``typing.Protocol``: any class with its five methods is a persister.
"""

from typing import TYPE_CHECKING

from sharestate.coordinator.combiner import combine
from sharestate.coordinator.stored_state import StoredState
from sharestate.persister.coordinator_persister import CoordinatorPersister
from sharestate.persister.in_memory import HeldRequest, InMemoryPersister
from sharestate.persister.initialization import InitializesOnce, ensure_initialized
from sharestate.persister.protocol import CheckedPersister, Persister
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
    WriteStateParameters,
)
from sharestate.persister.threaded import ThreadedPersister

__all__ = [
    "CheckedPersister",
    "CoordinatorPersister",
    "DeleteStateParameters",
    "HeldRequest",
    "InMemoryPersister",
    "InitializeStateParameters",
    "InitializesOnce",
    "Parameters",
    "PartitionAllData",
    "PartitionErrorData",
    "PartitionIdData",
    "PartitionIdLeaderEpochData",
    "PartitionStateBatchData",
    "PartitionStateData",
    "PartitionStateSummaryData",
    "Persister",
    "ReadStateParameters",
    "ReadSummaryParameters",
    "Result",
    "SqlitePersister",
    "StoredState",
    "ThreadedPersister",
    "TopicData",
    "WriteStateParameters",
    "combine",
    "ensure_initialized",
]

if TYPE_CHECKING:
    from sharestate.persister.sqlite_persister import SqlitePersister
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Import SqlitePersister on first use: not every Python has SQLite."""
        if name == "SqlitePersister":
            from sharestate.persister.sqlite_persister import SqlitePersister  # noqa: PLC0415 - on first use

            return SqlitePersister
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
