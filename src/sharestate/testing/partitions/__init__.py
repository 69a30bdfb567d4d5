"""The test of share partitions, the leader's side: see `SharePartitionMachine` (extra ``testing``)."""

from sharestate.testing.partitions.differences import EXPLANATIONS, KAFKA_BUGS, SharePartitionDiffersError
from sharestate.testing.partitions.events import PartitionSettings, ReadState
from sharestate.testing.partitions.machine import SharePartitionMachine
from sharestate.testing.record_model.in_flight import Rules
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.fetched_records import FetchedRecords

__all__ = [
    "EXPLANATIONS",
    "KAFKA_BUGS",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "FetchedRecords",
    "PartitionSettings",
    "ReadState",
    "Rules",
    "SharePartitionDiffersError",
    "SharePartitionMachine",
]
