"""
Persisters, which store the state of share partitions: their protocol, their requests and answers, and one in memory.

``Persister`` is a ``typing.Protocol``: any class with its five methods is a persister.
"""

from sharestate.coordinator.combiner import combine
from sharestate.coordinator.stored_state import StoredState
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
