"""
Whoever keeps the state of share partitions: what is asked of it, what it promises, and one that keeps it in memory.

``Persister`` is a protocol: what has its five methods is one.
"""

from sharestate.persister.combiner import combine
from sharestate.persister.in_memory import HeldRequest, InMemoryPersister
from sharestate.persister.protocol import Persister
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
from sharestate.persister.stored_state import StoredState

__all__ = [
    "DeleteStateParameters",
    "HeldRequest",
    "InMemoryPersister",
    "InitializeStateParameters",
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
    "StoredState",
    "TopicData",
    "WriteStateParameters",
    "combine",
]
