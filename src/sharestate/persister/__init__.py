"""
Persisters, which store the state of share partitions: their protocol, their requests and answers, and one in memory.

``Persister`` is a ``typing.Protocol``: any class with its five methods is a persister.
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
