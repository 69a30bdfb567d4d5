"""Members join, are given partitions that have state, and fetch; administrators ask and change (node 10)."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sharestate import (
    KIP_932,
    AcknowledgementBatch,
    AutoOffsetReset,
    ErrorCode,
    InMemoryPersister,
    MalformedInputError,
    ShareConfig,
)
from sharestate.broker.groups import (
    GroupCoordinatorSettings,
    PartitionOffset,
    ShareGroupHeartbeat,
    TopicOffsets,
)
from sharestate.broker.node import (
    AlterShareGroupOffsetsRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteTopicsRequest,
    DescribeShareGroupOffsetsRequest,
    GroupConfig,
    GroupResponse,
    NodeConfig,
    ShareBroker,
    ShareGroupDescribeRequest,
)
from tests.support.nodes import GROUP_CONFIG, Member, Node

ALTER = AlterShareGroupOffsetsRequest(
    group_id="h", topics=[TopicOffsets(topic_name="orders", offsets=[PartitionOffset(0, 2)])]
)


def beat(node: Node, epoch: int, *, group_id: str = "h", member_id: str = "m1") -> Any:  # noqa: ANN401 - a GroupResponse
    """Send a heartbeat of a member, and return its answer."""
    names = ("orders",) if epoch == 0 else None
    request = ShareGroupHeartbeat(group_id=group_id, member_id=member_id, member_epoch=epoch, topic_names=names)
    return node.broker.call(request, now_ms=node.now_ms)


def joined(node: Node) -> None:
    """Let a member join the group, and have all of the topic's partitions."""
    assert beat(node, 0).result.assignment == {}
    node.advance(1000)
    assert beat(node, 2).result.assignment == {node.topic_id: (0,)}


def test_a_member_joins_and_fetches() -> None:
    """Joining initializes the state; the next heartbeat has the assignment, and the member can fetch (node 10)."""
    node = Node()
    node.produce(2)
    joined(node)

    assert Member(node, group_id="h").acquired(0) == {0: [(0, 1, 1)]}
    described: Any = node.broker.call(ShareGroupDescribeRequest(group_ids=["h"]), now_ms=1000)
    (group,) = described.result
    assert (group.state, [member.member_id for member in group.members]) == ("Stable", ["m1"])


@pytest.mark.parametrize(("epoch", "error_code"), [(1, ErrorCode.GROUP_ID_NOT_FOUND), (-7, ErrorCode.INVALID_REQUEST)])
def test_heartbeats_may_be_refused(epoch: int, error_code: ErrorCode) -> None:
    """As a whole, or by the group; nothing is known of it afterwards (groups 3 and 4)."""
    node = Node()

    assert beat(node, epoch).error_code is error_code
    assert not node.broker.groups.state.tables.groups.values


def test_a_silent_member_is_taken_out() -> None:
    """At the end of its session, whoever looks (node 8)."""
    node = Node(group=evolve(GROUP_CONFIG, coordinator=GroupCoordinatorSettings(session_timeout_ms=6000)))
    joined(node)
    assert node.broker.next_deadline_ms() == 7000
    node.advance(6000)

    assert beat(node, 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_initialization_that_fails_is_asked_for_again() -> None:
    """The answer of a persister comes when it comes; without state nothing is assigned (groups 8)."""
    node = Node()
    node.persister.is_holding = True
    beat(node, 0)
    node.persister.held[0].fail(ErrorCode.NOT_COORDINATOR)
    node.persister.is_holding = False
    node.advance(1000)
    assert beat(node, 2).result.assignment is None  # it has asked again, and what it gets is in the next answer
    node.advance(5000)

    assert beat(node, 2).result.assignment or beat(node, 3).result.assignment


def test_topics_that_grow_and_go_change_assignments() -> None:
    """Members of groups that subscribe to them are told at a heartbeat (groups 6)."""
    node = Node()
    joined(node)
    node.broker.call(CreatePartitionsRequest(topics=[("orders", 2)]), now_ms=1000)
    beat(node, 2)
    node.advance(1000)
    assert beat(node, 2).result.assignment == {node.topic_id: (0, 1)}
    node.broker.call(DeleteTopicsRequest(names=["orders"]), now_ms=2000)
    node.advance(1000)

    assert beat(node, 3).result.assignment == {}


def test_offsets_are_described() -> None:
    """As they are stored, with the lag; those of unknown topics are not known (offsets 4)."""
    node = Node()
    node.produce(5)
    node.broker.call(ALTER, now_ms=0)
    request = DescribeShareGroupOffsetsRequest(group_id="h", topics={"orders": [0], "other": [0]})
    offsets: Any = node.broker.call(request, now_ms=0)

    assert [(each.topic_name, each.start_offset, each.lag) for each in offsets.result] == [
        ("orders", 2, 3),
        ("other", -1, -1),
    ]
    nobody: Any = node.broker.call(DescribeShareGroupOffsetsRequest(group_id="nobody"), now_ms=0)
    assert nobody.result == ()


def test_offsets_are_altered() -> None:
    """A group without members begins where it is told; with members it is NON_EMPTY_GROUP (offsets 2)."""
    node = Node()
    node.produce(3, 2)
    altered: Any = node.broker.call(ALTER, now_ms=0)
    assert altered.result.error_code == ErrorCode.NONE
    assert beat(node, 0).result.assignment == {node.topic_id: (0,)}  # at once, for there is state

    assert Member(node, group_id="h").acquired(0) == {0: [(2, 4, 1)]}
    assert node.broker.call(ALTER, now_ms=0).error_code is ErrorCode.NON_EMPTY_GROUP  # type: ignore[union-attr]
    assert node.broker.call(evolve(ALTER, group_id=""), now_ms=0) == GroupResponse(ErrorCode.INVALID_GROUP_ID)
    unknown = evolve(ALTER, group_id="i", topics=[TopicOffsets(topic_name="?", offsets=[PartitionOffset(0, 0)])])
    answer: Any = node.broker.call(unknown, now_ms=0)
    assert answer.result.topics[0].errors == ((0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)


def test_offsets_are_deleted() -> None:
    """The state is gone, and the group begins anew (offsets 3)."""
    node = Node()
    node.broker.call(ALTER, now_ms=0)
    request = DeleteShareGroupOffsetsRequest(group_id="h", topic_names=["orders", "other"])
    deletion: Any = node.broker.call(request, now_ms=0)

    assert sorted(deletion.result.errors) == [
        ("orders", ErrorCode.NONE),
        ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert node.persister.stored("h", node.topic_id, 0) is None
    nothing: Any = node.broker.call(evolve(request, topic_names=["other"]), now_ms=0)
    assert nothing.result.errors == (("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)
    missing = node.broker.call(evolve(request, group_id="nobody"), now_ms=0)
    assert missing.error_code is ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[union-attr]


def test_groups_are_deleted() -> None:
    """With their state; one that there is not is an error of its own (offsets 5)."""
    node = Node()
    node.broker.call(ALTER, now_ms=0)
    deletion: Any = node.broker.call(DeleteGroupsRequest(group_ids=["h", "nobody"]), now_ms=0)

    assert dict(deletion.result.errors) == {"h": ErrorCode.NONE, "nobody": ErrorCode.GROUP_ID_NOT_FOUND}
    assert node.persister.stored("h", node.topic_id, 0) is None
    again: Any = node.broker.call(DeleteGroupsRequest(group_ids=["h"]), now_ms=0)
    assert dict(again.result.errors) == {"h": ErrorCode.GROUP_ID_NOT_FOUND}


def test_requests_without_a_group_are_refused() -> None:
    """Before anything is looked at (offsets 1)."""
    node = Node()
    deletion = DeleteShareGroupOffsetsRequest(group_id="", topic_names=["orders"])

    assert node.broker.call(deletion, now_ms=0) == GroupResponse(ErrorCode.INVALID_GROUP_ID)
    with pytest.raises(MalformedInputError):
        node.broker.call(DescribeShareGroupOffsetsRequest(group_id="h", topics=5), now_ms=0)  # type: ignore[arg-type]


def test_groups_outlive_a_restart() -> None:
    """Members and assignments are read from what was written; their sessions begin anew (node 1)."""
    node = Node()
    settings = GroupCoordinatorSettings(session_timeout_ms=6000)
    node.broker.configure_group("h", evolve(GROUP_CONFIG, coordinator=settings), 0)
    joined(node)
    node.produce(1)
    node.advance(500)
    node.broker.restart(node.now_ms)
    assert node.broker.next_deadline_ms() == 1500 + 6000

    assert beat(node, 2).error_code is ErrorCode.NONE
    member = Member(node, group_id="h")
    assert member.acquired(0) == {0: [(0, 0, 1)]}
    assert member.acknowledge(AcknowledgementBatch(0, 0, (1,))).error_code is ErrorCode.NONE


def test_the_kip_has_a_coordinator_without_bugs() -> None:
    """A profile of no release takes the rules of the latest one, healed."""
    share = ShareConfig(auto_offset_reset=AutoOffsetReset.earliest())
    broker = ShareBroker(NodeConfig(profile=KIP_932, group=GroupConfig(share=share)), persister=InMemoryPersister())

    assert not broker.groups.state.profile.quirks
