"""
What leads a share partition: for authors of the leader's side, and for those who embed a `SharePartition`.

Inherit `SharePartitionMachine` (extra ``testing``) and say how yours acquires, acknowledges, issues writes and learns
what has become of them. The machine is the log and a hostile persister, and compares each result, write and record with
an independent model, ``record_model``; `SharePartitionDiffersError` says what differs. `KAFKA_BUGS` may be copied.

It begins in ``machine``; what happens is in ``events``, what a fetch finds in ``log``. See "From the persister's side"
in ``docs/testing.md``.
"""

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
