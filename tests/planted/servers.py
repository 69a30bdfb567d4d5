"""Bugs planted in a test broker's server: faults of its requests, and functions between its socket and its node."""

# ruff: noqa: ANN401 - a bug has the arguments of what it replaces, whatever their types are

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from sharestate import ErrorCode
from sharestate.broker import Fail, Fault
from sharestate.broker.node import PartitionOfRequest
from sharestate.broker.server import share_apis, test_broker
from sharestate.broker.sessions import FINAL_EPOCH
from sharestate.values.fetched_records import IsolationLevel
from tests.planted.nodes import NodeBug, planted

ANSWERED_ONLY: Final = {
    "acknowledgements": Fault(
        on="ShareAcknowledge",
        action=Fail(ErrorCode.NONE),
        where=lambda seen: seen.request["share_session_epoch"] != FINAL_EPOCH,
        probability=0.5,
    ),
    "ends of sessions": Fault(
        on="ShareAcknowledge",
        action=Fail(ErrorCode.NONE),
        where=lambda seen: seen.request["share_session_epoch"] == FINAL_EPOCH,
    ),
    "writes of the state": Fault(on="WriteShareGroupState", action=Fail(ErrorCode.NONE)),
}
"""Requests that are answered as if they were carried out, and are not."""

MISUNDERSTOOD: Final[dict[str, NodeBug]] = {}
"""Functions that take a request for another one."""


@planted(MISUNDERSTOOD, share_apis, "_partitions")
def first_batch_only(original: Any, topics: Any) -> list[PartitionOfRequest]:
    """Of the batches that a request acknowledges, only the first one counts."""
    return [PartitionOfRequest(topic_id, partition, batches[:1]) for topic_id, partition, batches in original(topics)]


@planted(MISUNDERSTOOD, test_broker, "read_group_config")
def isolation_level_forgotten(original: Any, *args: Any) -> Any:
    """A group reads what is not committed, whatever its settings say."""
    return evolve(original(*args), isolation_level=IsolationLevel.READ_UNCOMMITTED)
