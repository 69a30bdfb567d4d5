"""A copy of a node behaves as the node does, and neither notices the other (node 1)."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import AcknowledgementBatch, ControlType, InMemoryPersister, LeaderStateError, MalformedInputError
from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import (
    AddPartitionsToTxnRequest,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EndedTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
    NodeConfig,
    ShareBroker,
)
from sharestate.leader import Observation
from tests.support.nodes import GROUP_CONFIG, Member, Node, acquired

ACCEPT = AcknowledgementBatch(0, 0, (1,))


def test_a_copy_goes_on_by_itself() -> None:
    """Waiting fetches, sessions, locks, groups and logs are in it; what happens to one does not happen to the other."""
    node = Node()
    node.produce(2)
    join = ShareGroupHeartbeat(group_id="h", member_id="m", member_epoch=0, topic_names=("orders",))
    node.broker.call(join, now_ms=0)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    number = second.fetch(0)
    original, copy = node.broker, node.broker.copy()
    assert copy.next_deadline_ms() == original.next_deadline_ms() == 500
    node.broker = copy
    node.produce(1)
    assert acquired(node.taken()[number]) == {0: [(2, 2, 1)]}
    assert first.acknowledge(ACCEPT).partitions[0].error == (0, None)

    assert original.answers() == ()
    assert original.log("orders", 0).high_watermark == 2
    partitions = [each.share_partition("g", "orders", 0) for each in (original, copy)]
    assert [partition.start_offset for partition in partitions if partition is not None] == [0, 1]
    assert original.groups.state.tables.groups.values.keys() == copy.groups.state.tables.groups.values.keys()
    assert node.persister.stored("g", node.topic_id, 0).start_offset == -1  # type: ignore[union-attr]


def test_a_copy_tells_nobody_of_markers() -> None:
    """Of the original it is known which transactions have ended, with those partitions that there still are."""
    told: list[EndedTransaction] = []
    broker = ShareBroker(marked=told.append)
    names = ("orders", "gone")
    broker.call(CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names]), now_ms=0)
    begun: Any = broker.call(InitProducerIdRequest(transactional_id="x"), now_ms=0)
    producer: Any = {"transactional_id": "x", "producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    partitions = [(name, 0) for name in names]
    broker.call(AddPartitionsToTxnRequest(**producer, partitions=partitions), now_ms=0)
    broker.call(DeleteTopicsRequest(names=["gone"]), now_ms=0)
    end = EndTxnRequest(**producer, committed=True, version=4)
    copy = broker.copy()

    copy.call(end, now_ms=0)
    assert (copy.log("orders", 0).high_watermark, told) == (1, [])
    broker.call(end, now_ms=0)
    assert told == [EndedTransaction(ControlType.COMMIT, 0, 0, (("orders", 0),))]


def test_a_copy_has_an_observer_and_a_persister_of_its_own() -> None:
    """Those of the original are told nothing; a persister that is given is not copied."""
    told: list[Observation] = []
    copied: list[Observation] = []
    persister = InMemoryPersister()
    node = Node()
    node.broker = ShareBroker(
        NodeConfig(group=GROUP_CONFIG), persister=persister, observer=told.extend, notify=lambda: None
    )
    node.topic_id = node.create("orders")
    node.initialize("g", 1)
    node.produce(1)
    member = Member(node)
    member.got(0)
    before = len(told)
    node.broker = node.broker.copy(persister=persister, observer=copied.extend)
    member.acknowledge(ACCEPT)

    assert (len(told), [type(each.event).__name__ for each in copied]) == (before, ["Acknowledged", "WriteAnswered"])
    assert persister.stored("g", node.topic_id, 0).start_offset == 0  # type: ignore[union-attr]


def test_what_waits_for_the_persister_is_not_copied() -> None:
    """Its answer would come to one of them only."""
    node = Node()
    node.persister.is_holding = True
    Member(node).fetch(0)

    with pytest.raises(LeaderStateError):
        node.broker.copy()


@pytest.mark.parametrize("name", ["observer", "notify"])
def test_a_copy_is_told_nothing_that_its_original_was_not_told(name: str) -> None:
    """What a leader tells, and whom, is decided when it is made."""
    with pytest.raises(MalformedInputError):
        Node().broker.copy(**{name: print})  # type: ignore[arg-type]
