"""Requests and their answers, time, and what an administrator does with a node (node 1, 3 and 8)."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_4,
    KIP_932,
    AcknowledgementBatch,
    AutoOffsetReset,
    ErrorCode,
    InMemoryPersister,
    Lifecycle,
    MalformedInputError,
    ShareConfig,
    TimeReversedError,
)
from sharestate.broker.node import (
    NODE_4_4,
    NODE_PROFILES,
    ConfigureGroupRequest,
    GroupConfig,
    GroupResponse,
    LogRecord,
    MetadataRequest,
    NoAnswerError,
    NodeConfig,
    NodeError,
    NodeProfile,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.leader import Observation
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateData,
    ReadSummaryParameters,
    Result,
)
from tests.support.nodes import GROUP, GROUP_CONFIG, TOPIC, Member, Node, acquired

REJECT = 3
OTHER = "IoNTqcc65nJltKVVhKBPPQ"


def test_requests_are_numbered() -> None:
    """Numbers ascend, whatever the connection; each answer has that of its request, and comes once (node 1)."""
    node = Node()
    first, second = Member(node, "m1"), Member(node, "m2")
    numbers = [first.fetch(0), second.fetch(0), first.fetch()]
    assert numbers == list(range(numbers[0], numbers[0] + 3))

    assert sorted(node.advance(500)) == numbers
    assert node.advance(500) == {}


def test_answers_of_a_connection_that_has_ended_are_dropped() -> None:
    """Nobody gets them (node 1)."""
    node = Node()
    member = Member(node)
    member.fetch(0)
    member.disconnect()

    assert node.advance(1000) == {}


def test_call_returns_what_is_answered_at_once() -> None:
    """What is not is an error, and nobody gets its answer (node 1)."""
    node = Node()
    request = ShareFetchRequest(
        group_id="g",
        member_id="m1",
        share_session_epoch=0,
        partitions=[PartitionOfRequest(node.topic_id, 0)],
    )
    with pytest.raises(NoAnswerError, match="is not answered at once"):
        node.broker.call(request, now_ms=0)

    assert node.advance(500) == {}
    assert node.broker.call(evolve(request, member_id="m2", max_wait_ms=0), now_ms=500)


def test_everything_happens_at_its_time() -> None:
    """A lock that expires before a fetch has to be answered wakes it, if the caller looks only later (node 8)."""
    node = Node()
    node.produce(1)
    Member(node, "m1").got(0)
    waiting = Member(node, "m2").fetch(0, max_wait_ms=1001)
    late = Member(node, "m3").fetch(0, max_wait_ms=1000)
    answers = node.advance(5000)

    assert acquired(answers[waiting]) == {0: [(0, 0, 2)]}  # at 1001, when its lock has expired and it is due
    assert acquired(answers[late]) == {0: []}
    assert node.broker.next_deadline_ms() is None  # the lock of m2 has expired at 2002


def test_time_does_not_go_back() -> None:
    """A command in the past is refused (node 8)."""
    node = Node()
    node.advance(10)

    with pytest.raises(TimeReversedError):
        node.broker.advance(9)
    assert node.broker.now_ms == 10


def malformed(class_: type[Any], epoch: int, batch: object) -> object:
    """Return a request whose acknowledgement is malformed."""
    partitions = [PartitionOfRequest("t", 0, [batch])]  # type: ignore[list-item]
    return class_(group_id="g", member_id="m", share_session_epoch=epoch, partitions=partitions)


@pytest.mark.parametrize(
    "arguments",
    [
        {"request": "a fetch"},
        {"request": None},
        {"connection_id": 5},
        {"now_ms": -1},
        {"now_ms": 0.5},
        {"request": malformed(ShareFetchRequest, 0, None)},
        {"request": malformed(ShareFetchRequest, 1, AcknowledgementBatch(0, 0, (None,)))},  # type: ignore[arg-type]
        {"request": malformed(ShareAcknowledgeRequest, 1, AcknowledgementBatch("0", 0, (1,)))},  # type: ignore[arg-type]
    ],
)
def test_malformed_requests_change_nothing(arguments: dict[str, Any]) -> None:
    """They are refused with an error that names the field, and the next request has their number (node 1)."""
    node = Node()
    member = Member(node, "m")
    member.got(0)
    before = node.broker.sessions.sessions["g", "m"].epoch
    request = member.acknowledgement()
    with pytest.raises(MalformedInputError):
        node.broker.send(**{"request": request, "connection_id": "m", "now_ms": 0, **arguments})

    assert node.broker.sessions.sessions["g", "m"].epoch == before
    number = member.send(request)
    assert list(node.taken()) == [number]


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": 1},
        {"member_id": b"m"},
        {"share_session_epoch": 2**31},
        {"partitions": 5},
        {"partitions": [("t", 0)]},
        {"partitions": [PartitionOfRequest(1, 0)]},  # type: ignore[arg-type]
        {"partitions": [PartitionOfRequest("t", "0")]},  # type: ignore[arg-type]
        {"partitions": [PartitionOfRequest("t", 0, iter(()))]},
        {"max_bytes": 2**31},
        {"share_acquire_mode": 0},
        {"is_renew_ack": 1},
    ],
)
def test_requests_are_checked_as_they_are_made(fields: dict[str, Any]) -> None:
    """What the wire cannot carry makes no request (node 1)."""
    with pytest.raises(MalformedInputError):
        ShareFetchRequest(**{"group_id": "g", "member_id": "m", "share_session_epoch": 0, **fields})


def test_an_append_wakes_the_fetches_of_every_group() -> None:
    """A partition is fetched for each group by itself (node 7)."""
    node = Node()
    node.initialize("h", 1)
    numbers = [Member(node, "m1").fetch(0), Member(node, "m2", "h").fetch(0)]
    node.produce(1)

    answers = node.taken()
    assert [acquired(answers[number]) for number in numbers] == [{0: [(0, 0, 1)]}] * 2


def test_what_is_deleted_is_no_longer_waited_for() -> None:
    """A topic that is made again under its name has another id, and no share partitions yet (node 3)."""
    node = Node()
    assert node.create("other") != node.topic_id
    (topic,) = node.broker.call(MetadataRequest(names=["orders"]), now_ms=0).topics  # type: ignore[union-attr]

    assert topic.topic_id == node.topic_id


def test_rejected_records_go_to_the_dead_letter_topic() -> None:
    """Which is a topic of the node, made as it is needed (KIP-1191)."""
    group = evolve(GROUP_CONFIG, dead_letter_topic_name="dlq.orders")
    node = Node(group=group, dead_letter_auto_create_topics_enable=True)
    node.produce(1)
    member = Member(node)
    member.got(0)
    node.advance(5)
    member.acknowledge(AcknowledgementBatch(0, 0, (REJECT,)))
    record = node.broker.log("dlq.orders", 0).record_at(0)

    assert record is not None
    assert (record.headers[2], record.timestamp_ms) == (("__dlq.errors.offset", b"0"), 5)
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert partition.start_offset == 1


def test_before_4_4_there_are_no_dead_letters() -> None:
    """A profile without a dead-letter queue archives what is rejected (rule 21)."""
    node = Node(profile=KAFKA_4_2, group=evolve(GROUP_CONFIG, dead_letter_topic_name="dlq.orders"))
    node.produce(1)
    member = Member(node)
    member.got(0)

    assert member.acknowledge(AcknowledgementBatch(0, 0, (REJECT,))).partitions[0].error.error_code is ErrorCode.NONE
    assert node.broker.topics.by_name("dlq.orders") is None


def test_failover_leaves_what_was_persisted() -> None:
    """The next leader has the next epoch; until a fetch asks for it there is none (node 3)."""
    node = Node()
    node.produce(2)
    member = Member(node)
    member.got(0)
    member.acknowledge(AcknowledgementBatch(0, 0, (1,)))
    node.broker.fail_over("orders", 0, 0)
    assert node.broker.share_partition("g", "orders", 0) is None

    code = member.acknowledge(AcknowledgementBatch(1, 1, (1,))).partitions[0].error.error_code
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert member.acquired() == {0: [(1, 1, 1)]}
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert partition.leader_epoch == 1


def test_a_node_that_starts_again_knows_what_was_stored() -> None:
    """Sessions, waiting fetches and locks are gone; topics, logs, settings and the persisted state stay (node 1)."""
    node = Node()
    node.produce(2)
    node.broker.configure_group("g", GROUP_CONFIG, 0)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    first.acknowledge(AcknowledgementBatch(0, 0, (1,)))
    second.fetch(0)
    node.broker.restart(0)
    assert node.advance(500) == {}
    assert first.got().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND

    assert second.acquired(0, share_session_epoch=0) == {0: [(1, 1, 1)]}
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert (partition.leader_epoch, partition.config) == (1, GROUP_CONFIG.share)


def test_answers_that_come_after_a_restart_are_ignored() -> None:
    """The leader that has asked is gone (node 1)."""
    node = Node()
    node.produce(1)
    member = Member(node)
    member.got(0)
    node.persister.is_holding = True
    member.send(member.acknowledgement(AcknowledgementBatch(0, 0, (1,))))
    node.broker.restart(0)
    node.persister.held[0].answer()

    assert node.advance(500) == {}


def test_what_happens_can_be_observed() -> None:
    """An observer gets what each leader tells its own, such as a recorder of histories."""
    seen: list[Observation] = []
    persister = InMemoryPersister()
    broker = ShareBroker(NodeConfig(group=GROUP_CONFIG), persister=persister, observer=seen.extend)
    node = Node()
    node.broker, node.persister = broker, persister
    node.topic_id = node.create("orders")
    node.initialize("g", 1)
    node.produce(1)
    Member(node).got(0)

    assert [type(each.event).__name__ for each in seen] == ["Started", "StateRead", "Acquired"]


def test_a_node_has_a_share_coordinator_of_its_own() -> None:
    """Without a persister it keeps the state itself, and answers the requests for it (node 2)."""
    broker = ShareBroker(NodeConfig(profile=KIP_932))
    broker.call(InitializeStateParameters.of("g", OTHER, PartitionStateData(partition=0, start_offset=5)), now_ms=3)
    summary = broker.call(ReadSummaryParameters.of("g", OTHER, PartitionIdLeaderEpochData(partition=0)), now_ms=4)

    assert isinstance(summary, Result)
    entry: Any = summary.find(OTHER, 0)
    assert entry.start_offset == 5


def test_a_persister_that_fails_is_answered_for() -> None:
    """A request whose future fails has UNKNOWN_SERVER_ERROR in each entry (node 2)."""

    class Broken(InMemoryPersister):
        def initialize_state(self, request: InitializeStateParameters, /) -> Future[Any]:
            del request
            future: Future[Any] = Future()
            future.set_exception(OSError("no disk"))
            return future

    called: list[int] = []
    broker = ShareBroker(persister=Broken(), notify=lambda: called.append(1))
    result = broker.call(InitializeStateParameters.of("g", "t", PartitionStateData(partition=0)), now_ms=0)

    assert isinstance(result, Result)
    entry = result.find("t", 0)
    assert entry is not None
    assert (entry.error_code, called) == (ErrorCode.UNKNOWN_SERVER_ERROR, [1])


def test_who_answers_late_says_so() -> None:
    """A persister's answer calls `notify`, so that the caller knows when to call `advance` (node 1)."""
    called: list[int] = []
    persister = InMemoryPersister()
    node = Node()
    node.persister = persister
    node.broker = ShareBroker(NodeConfig(group=GROUP_CONFIG), persister=persister, notify=lambda: called.append(1))
    node.topic_id = node.create("orders")
    node.initialize("g", 1)
    persister.is_holding = True
    number = Member(node).fetch(0, min_bytes=0)
    called.clear()
    persister.held[0].answer()

    assert (list(node.advance(0)), called) == ([number], [1])


def test_a_group_gets_settings_by_a_request() -> None:
    """As by ``configure_group``: a lock lasts two seconds from then on."""
    node = Node()
    node.produce(2)
    member = Member(node)
    config = evolve(GROUP_CONFIG, share=evolve(GROUP_CONFIG.share, record_lock_duration_ms=2000), configs={"a": "b"})

    response = node.broker.call(ConfigureGroupRequest(group_id=GROUP, config=config), now_ms=0)
    member.got(0)

    assert response == GroupResponse()
    assert node.broker.group_configs == {GROUP: config}
    share_partition = node.broker.share_partition(GROUP, TOPIC, 0)
    assert share_partition is not None
    assert share_partition.next_deadline_ms() == 2001


@pytest.mark.parametrize("partition", [-1, 1])
def test_there_is_nothing_to_look_at_where_there_is_no_partition(partition: int) -> None:
    """Neither a log nor a share partition, and nothing fails over."""
    broker = Node().broker
    with pytest.raises(NodeError):
        broker.log("orders", partition)
    with pytest.raises(NodeError):
        broker.share_partition("g", "orders", partition)
    with pytest.raises(NodeError):
        broker.fail_over("unknown", 0, 0)


# ---- where a group starts


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        (AutoOffsetReset.latest(), [(3, 3, 1)]),
        (AutoOffsetReset.earliest(), [(0, 3, 1)]),
        (AutoOffsetReset.by_duration(timedelta(milliseconds=100)), [(1, 3, 1)]),
    ],
    ids=str,
)
def test_a_group_starts_where_its_settings_say(reset: AutoOffsetReset, expected: list[tuple[int, ...]]) -> None:
    """At the end of the log, at its beginning, or at the first record of the last 100 ms (rule 4.2)."""
    node = Node(group=GroupConfig(share=ShareConfig(auto_offset_reset=reset)))
    node.advance(1000)
    for timestamp_ms in (899, 900, 1000):
        batch = ProducedBatch(records=[LogRecord(b"k", b"v", timestamp_ms=timestamp_ms)])
        node.broker.call(ProduceRequest(partitions=[ProducedPartition(node.topic_id, 0, batch)]), now_ms=1000)
    number = Member(node).fetch(0, min_bytes=1000)
    node.produce(1)
    found = acquired(node.advance(500)[number])[0]

    assert [(found[0][0], found[-1][1], 1)] == expected


def test_a_group_cannot_start_where_there_is_nothing() -> None:
    """A log without a record of that age: OFFSET_NOT_AVAILABLE (rule 4.2)."""
    reset = AutoOffsetReset.by_duration(timedelta(milliseconds=100))
    node = Node(group=GroupConfig(share=ShareConfig(auto_offset_reset=reset)))
    (partition,) = Member(node).got(0).partitions

    message = f"Offset for timestamp 0 not found for topic partition: {node.topic_id}-0"
    assert partition.error == (ErrorCode.OFFSET_NOT_AVAILABLE, message)


# ---- profiles


def test_profiles_have_the_names_of_leaders() -> None:
    """Releases have all bugs, healed profiles and the KIP none (node 9)."""
    assert repr(NODE_PROFILES["kafka-4.4"]) == "NODE_4_4"
    assert not NODE_PROFILES["kafka-4.4-healed"].quirks
    assert NODE_4_4.healed == NODE_PROFILES[KAFKA_4_4.healed.name]
    assert repr(NodeProfile(name="mine")) == "NodeProfile(name='mine', quirks=frozenset())"


def test_a_share_partition_that_is_fenced_is_led_no_longer() -> None:
    """What is led is ACTIVE, or will be."""
    node = Node()
    node.persister.is_holding = True
    Member(node).fetch(0)
    partition = node.broker.share_partition("g", "orders", 0)

    assert partition is not None
    assert partition.lifecycle is Lifecycle.INITIALIZING
