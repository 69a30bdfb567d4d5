"""What members of share groups ask, in the oldest and the newest version of each request, on the wire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    LeaderIdAndEpoch,
    LogRecord,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgePartition,
    ShareAcknowledgeResponse,
    ShareFetchPartition,
    ShareFetchResponse,
)
from sharestate.broker.server import TestBroker
from sharestate.broker.server.broker_server import BrokerServer
from sharestate.broker.server.server_config import ServerConfig
from sharestate.broker.server.share_apis import share_acknowledge, share_fetch
from sharestate.errors import ErrorCode
from sharestate.persister import DeleteStateParameters, PartitionIdData
from tests.support.wire_client import PATIENCE_S, WireClient, id_of, uuid_of

HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE, READ_STATE = 76, 77, 78, 79, 84

UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER = -1, 3, 6
COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, INVALID_REQUEST, UNKNOWN_TOPIC_ID = 15, 25, 42, 100
INVALID_RECORD_STATE, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH = 121, 122, 123

LONG, SHORT = timedelta(seconds=60), timedelta(milliseconds=200)
"""A wait that no test is to see the end of."""

ORDERS = "c2hhcmVzdGF0ZQAAAAAAAQ"
"""The id of the first topic of a node."""

MEMBER = "q2mVzJbKQ0uGvB0nEJ0xFg"

CONFIG = {"share.auto.offset.reset": "earliest", "group.share.assignment.interval.ms": "0", "broker.rack": "r1"}


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with a topic of two partitions, the first with five records, and a group that has been there."""
    with TestBroker(config=CONFIG) as broker:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders", partition_count=2)])
        records = [LogRecord(b"k", b"%d" % number, timestamp_ms=7) for number in range(5)]
        produce = ProduceRequest(partitions=[ProducedPartition(ORDERS, 0, ProducedBatch(records=records))])
        first = {"group_id": "g", "member_id": "first"}
        join = ShareGroupHeartbeat(**first, member_epoch=0, topic_names=["orders"])
        leave = ShareGroupHeartbeat(**first, member_epoch=-1)
        broker.run(lambda node: [node.call(each, now_ms=node.now_ms) for each in (topics, produce, join, leave)])
        yield broker


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def acknowledged(first: int, last: int, *types: int) -> dict[str, Any]:
    """Return a batch of acknowledgements."""
    return {"first_offset": first, "last_offset": last, "acknowledge_types": types}


def topic(*batches: dict[str, Any], topic_id: str = ORDERS, partition: int = 0) -> dict[str, Any]:
    """Return a topic of a request, with one partition."""
    return {
        "topic_id": uuid_of(topic_id),
        "partitions": [{"partition_index": partition, "acknowledgement_batches": batches}],
    }


def fetch(client: WireClient, version: int, epoch: int, *topics: dict[str, Any], **fields: Any) -> Any:  # noqa: ANN401 - of kio
    """Return the response to a ShareFetch."""
    given = {"group_id": "g", "member_id": MEMBER, "max_records": 500, "batch_size": 500, "min_bytes": 1} | fields
    return client.ask(SHARE_FETCH, version, share_session_epoch=epoch, topics=topics, **given)


def acknowledge(client: WireClient, version: int, epoch: int, *topics: dict[str, Any], **fields: Any) -> Any:  # noqa: ANN401 - of kio
    """Return the response to a ShareAcknowledge."""
    given = {"group_id": "g", "member_id": MEMBER} | fields
    return client.ask(SHARE_ACKNOWLEDGE, version, share_session_epoch=epoch, topics=topics, **given)


# ---- ShareGroupHeartbeat


def test_a_member_joins_stays_and_leaves(client: WireClient) -> None:
    """It is assigned both partitions; its client is known by its id and its address."""
    member = {"group_id": "g", "member_id": MEMBER}

    joined = client.ask(HEARTBEAT, 1, **member, member_epoch=0, subscribed_topic_names=["orders"], rack_id="r2")
    stayed = client.ask(HEARTBEAT, 1, **member, member_epoch=joined.member_epoch)
    (group,) = client.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=["g"]).groups
    left = client.ask(HEARTBEAT, 1, **member, member_epoch=-1)

    assert (joined.error_code.value, joined.error_message, joined.member_id) == (0, None, MEMBER)
    assert joined.heartbeat_interval.total_seconds() == 5
    assigned = [each.assignment for each in (joined, stayed) if each.assignment is not None][-1]
    assert [(id_of(each.topic_id), sorted(each.partitions)) for each in assigned.topic_partitions] == [(ORDERS, [0, 1])]
    assert [(each.client_id, each.client_host, each.rack_id) for each in group.members] == [
        ("wire", "/127.0.0.1", "r2")
    ]
    assert (left.error_code.value, left.member_epoch) == (0, -1)


def test_a_heartbeat_of_nobody_is_refused(client: WireClient) -> None:
    """A member that has not joined is unknown."""
    response = client.ask(HEARTBEAT, 1, group_id="g", member_id=MEMBER, member_epoch=5)

    assert response.error_code.value == UNKNOWN_MEMBER_ID
    assert response.error_message == f"Member {MEMBER} is not a member of group g."
    assert response.assignment is None


@pytest.mark.parametrize("member_id", ["", "m" * 37])
def test_an_id_that_is_none_is_refused_without_a_text(client: WireClient, member_id: str) -> None:
    """It has 1 to 36 characters; the coordinator, which has a text for the first, does not see it."""
    response = client.ask(HEARTBEAT, 1, group_id="g", member_id=member_id, member_epoch=0)

    assert (response.error_code.value, response.error_message) == (INVALID_REQUEST, None)


# ---- ShareFetch


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_fetched_and_acknowledged(broker: TestBroker, client: WireClient, version: int) -> None:
    """A fetch brings the batch as the log has it; acknowledgements go with the next one."""
    first = fetch(client, version, 0, topic())
    second = fetch(client, version, 1, topic(acknowledged(0, 4, 1)))

    assert (first.error_code.value, first.acquisition_lock_timeout.total_seconds()) == (0, 30)
    ((only,),) = [each.partitions for each in first.responses]
    assert (only.partition_index, only.error_code.value, only.acknowledge_error_code) == (0, 0, 0)
    assert [(each.first_offset, each.last_offset, each.delivery_count) for each in only.acquired_records] == [(0, 4, 1)]
    batch = MemoryRecords(only.records).next_batch()
    assert batch is not None
    assert batch.validate_crc()
    assert [(each.offset, each.key, each.value, each.timestamp) for each in batch] == [
        (number, b"k", b"%d" % number, 7) for number in range(5)
    ]
    assert (only.current_leader.leader_id, only.current_leader.leader_epoch) == (0, 0)
    assert first.node_endpoints == ()
    ((done,),) = [each.partitions for each in second.responses]
    assert (done.acknowledge_error_code, done.records, done.acquired_records) == (0, b"", ())
    assert broker.run(start_offset) == 5


def start_offset(node: Any) -> int:  # noqa: ANN401 - a ShareBroker
    """Return where the share partition begins."""
    offset: int = node.share_partition("g", "orders", 0).start_offset
    return offset


def test_a_fetch_waits_for_records(broker: TestBroker, client: WireClient) -> None:
    """It is answered when something is produced, before its time is over."""
    records = ProducedBatch(records=[LogRecord(b"k", b"late")])
    produce = ProduceRequest(partitions=[ProducedPartition(ORDERS, 1, records)])
    client.request(
        SHARE_FETCH,
        2,
        group_id="g",
        member_id=MEMBER,
        share_session_epoch=0,
        max_wait=LONG,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=[topic(partition=1)],
    )
    give_up_s = time.monotonic() + PATIENCE_S
    while broker.run(lambda node: node.share_partition("g", "orders", 1)) is None:
        assert time.monotonic() < give_up_s

    broker.run(lambda node: node.call(produce, now_ms=node.now_ms))

    ((only,),) = [each.partitions for each in client.response(SHARE_FETCH, 2).responses]
    assert [(each.first_offset, each.last_offset) for each in only.acquired_records] == [(0, 0)]


def test_a_fetch_of_what_there_is_not_says_so(client: WireClient) -> None:
    """An unknown topic is an error of its partitions, an unknown session one of the request."""
    unknown = fetch(client, 2, 0, topic(topic_id="AAAAAAAAAAAAAAAAAAAABA"))
    no_session = fetch(client, 2, 5, member_id="nQnCk3oURDe0yEBe9DPdkg")

    ((partition,),) = [each.partitions for each in unknown.responses]
    assert (unknown.error_code.value, partition.error_code.value) == (0, UNKNOWN_TOPIC_ID)
    assert (no_session.error_code.value, no_session.responses) == (SHARE_SESSION_NOT_FOUND, ())
    assert no_session.acquisition_lock_timeout.total_seconds() == 0


def test_a_fetch_of_what_has_no_state_says_no_more_than_that(broker: TestBroker, client: WireClient) -> None:
    """What answers fetches of brokers takes the code of a partition's error, and leaves its text out."""
    deletion = DeleteStateParameters.of("g", ORDERS, PartitionIdData(partition=0))
    broker.run(lambda node: node.call(deletion, now_ms=node.now_ms))

    ((only,),) = [each.partitions for each in fetch(client, 2, 0, topic()).responses]

    assert (only.error_code.value, only.error_message) == (UNKNOWN_SERVER_ERROR, None)


def test_a_write_that_fails_says_so_as_a_broker_does(broker: TestBroker, client: WireClient) -> None:
    """The text of the share coordinator comes behind that of the RPC; who asks the coordinator gets its own."""
    fetch(client, 2, 0, topic())
    deletion = DeleteStateParameters.of("g", ORDERS, PartitionIdData(partition=0))
    broker.run(lambda node: node.call(deletion, now_ms=node.now_ms))

    ((accepted,),) = [each.partitions for each in acknowledge(client, 2, 1, topic(acknowledged(0, 4, 1))).responses]
    ((fetched,),) = [each.partitions for each in fetch(client, 2, 2, topic(acknowledged(0, 4, 1))).responses]
    asked = [{"topic_id": uuid_of(ORDERS), "partitions": [{"partition": 0, "leader_epoch": 0}]}]
    ((read,),) = [each.partitions for each in client.ask(READ_STATE, 0, group_id="g", topics=asked).results]

    text = "Error in write state RPC. Write operation on uninitialized share partition not allowed."
    assert (accepted.error_code.value, accepted.error_message) == (UNKNOWN_SERVER_ERROR, text)
    assert (fetched.acknowledge_error_code, fetched.acknowledge_error_message) == (UNKNOWN_SERVER_ERROR, text)
    assert (read.error_code.value, read.error_message) == (
        INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            15,
            "Exhausted max retries to complete write state RPC without success.",
        ),
        (
            ErrorCode.FENCED_STATE_EPOCH,
            NOT_LEADER_OR_FOLLOWER,
            "The share coordinator rejected the request because the share-group state epoch did not match.",
        ),
    ],
)
def test_an_answer_of_the_coordinator_without_a_text_has_that_of_its_code(
    broker: TestBroker, client: WireClient, failure: ErrorCode, code: int, text: str
) -> None:
    """Or that there were too many attempts (PersisterStateManager.WriteStateHandler)."""
    fetch(client, 2, 0, topic())
    with broker.failing_writes(failure):
        ((accepted,),) = [each.partitions for each in acknowledge(client, 2, 1, topic(acknowledged(0, 4, 1))).responses]

    assert (accepted.error_code.value, accepted.error_message) == (code, f"Error in write state RPC. {text}")


def test_a_fetch_forgets_partitions(client: WireClient) -> None:
    """What leaves the session is not fetched any more."""
    forgotten = [{"topic_id": uuid_of(ORDERS), "partitions": [0]}]
    fetch(client, 2, 0, topic(partition=0), topic(partition=1), max_records=0, max_bytes=0)

    response = fetch(client, 2, 1, forgotten_topics_data=forgotten)

    assert [part.acquired_records for each in response.responses for part in each.partitions if part.records] == []


def test_a_fetch_has_a_mode(client: WireClient) -> None:
    """In mode 1 it brings no more records than it asks for (KIP-1206)."""
    strict = fetch(client, 2, 0, topic(), share_acquire_mode=1, max_records=2)

    ((only,),) = [each.partitions for each in strict.responses]
    assert [(each.first_offset, each.last_offset) for each in only.acquired_records] == [(0, 1)]


@pytest.mark.parametrize("mode", [2, -1])
def test_nothing_is_fetched_in_a_mode_that_is_none(broker: TestBroker, client: WireClient, mode: int) -> None:
    """The session goes on and what is acknowledged is, though the request fails, as a broker of 4.3.1 has answered."""
    begun = fetch(client, 2, 0, topic(), share_acquire_mode=mode)
    next_one = fetch(client, 2, 1, topic())
    acknowledging = fetch(client, 2, 2, topic(acknowledged(0, 4, 1)), share_acquire_mode=mode)

    assert [(each.error_code.value, each.responses) for each in (begun, acknowledging)] == [
        (UNKNOWN_SERVER_ERROR, ())
    ] * 2
    ((only,),) = [each.partitions for each in next_one.responses]
    assert [(each.first_offset, each.last_offset) for each in only.acquired_records] == [(0, 4)]
    assert broker.run(start_offset) == 5


def test_what_fetches_nothing_may_have_any_mode(client: WireClient) -> None:
    """What is wrong else comes first, and who only renews, forgets or closes is answered, as by a broker of 4.3.1."""
    nothing = {"max_records": 0, "max_bytes": 0, "min_bytes": 0, "share_acquire_mode": 2}
    forgotten = [{"topic_id": uuid_of(ORDERS), "partitions": [0]}]
    nobody = fetch(client, 2, 0, topic(), member_id="", share_acquire_mode=2)
    fetch(client, 2, 0, topic())

    wrong_epoch = fetch(client, 2, 7, share_acquire_mode=2)
    renewed = fetch(client, 2, 1, topic(acknowledged(0, 4, 4)), is_renew_ack=True, **nothing)
    forgetful = fetch(client, 2, 2, forgotten_topics_data=forgotten, share_acquire_mode=2)
    closed = fetch(client, 2, -1, share_acquire_mode=2)

    assert (nobody.error_code.value, wrong_epoch.error_code.value) == (INVALID_REQUEST, INVALID_SHARE_SESSION_EPOCH)
    assert [each.error_code.value for each in (renewed, forgetful, closed)] == [0, 0, 0]


def test_a_fetch_renews(client: WireClient) -> None:
    """One that renews locks brings nothing else, and must not ask for it (KIP-1222)."""
    fetch(client, 2, 0, topic())
    nothing = {"max_records": 0, "max_bytes": 0, "min_bytes": 0, "is_renew_ack": True}

    renewed = fetch(client, 2, 1, topic(acknowledged(0, 4, 4)), **nothing)
    greedy = fetch(client, 2, 2, topic(acknowledged(0, 4, 4)), is_renew_ack=True)

    ((only,),) = [each.partitions for each in renewed.responses]
    assert (only.acknowledge_error_code, only.acquired_records) == (0, ())
    assert greedy.error_code.value == INVALID_REQUEST


# ---- ShareAcknowledge


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_acknowledged(broker: TestBroker, client: WireClient, version: int) -> None:
    """Some are accepted, one is rejected; from version 2 on the response has the lock duration."""
    fetch(client, version, 0, topic())

    response = acknowledge(client, version, 1, topic(acknowledged(0, 2, 1, 3, 1)))
    last, again = (acknowledge(client, version, epoch, topic(acknowledged(4, 4, 1))) for epoch in (2, 3))

    ((only,),) = [each.partitions for each in response.responses]
    assert (response.error_code.value, only.partition_index, only.error_code.value) == (0, 0, 0)
    assert broker.run(start_offset) == 3
    codes = [each.responses[0].partitions[0].error_code.value for each in (last, again)]
    assert codes == [0, INVALID_RECORD_STATE]
    if version == 2:
        assert response.acquisition_lock_timeout.total_seconds() == 30


def test_a_session_is_closed(client: WireClient) -> None:
    """With the epoch -1 the member releases what it holds; then its session is unknown."""
    fetch(client, 2, 0, topic())

    closed = acknowledge(client, 2, -1)
    unknown = acknowledge(client, 2, 2)

    assert (closed.error_code.value, unknown.error_code.value) == (0, SHARE_SESSION_NOT_FOUND)
    assert fetch(client, 2, 0, topic()).responses[0].partitions[0].acquired_records[0].delivery_count == 2


def test_a_session_may_have_partitions_that_there_are_not(client: WireClient) -> None:
    """Not even with an index that no partition has; they are errors, and are released like others."""
    fetched = fetch(client, 2, 0, topic(partition=-1), topic(partition=9))
    closed = acknowledge(client, 2, -1)

    codes = [part.error_code.value for each in fetched.responses for part in each.partitions]
    assert codes == [UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert closed.error_code.value == 0


def test_a_connection_that_ends_releases_what_its_member_holds(broker: TestBroker, client: WireClient) -> None:
    """Another member gets the records with its next fetch, with their second delivery; Kafka wakes none (N1)."""
    with WireClient(broker.port) as other:
        fetch(other, 2, 0, topic(), member_id="nQnCk3oURDe0yEBe9DPdkg")

    response = fetch(client, 2, 0, topic(), max_wait=SHORT)

    (acquired,) = response.responses[0].partitions[0].acquired_records
    assert (acquired.first_offset, acquired.last_offset, acquired.delivery_count) == (0, 4, 2)


def test_a_fetch_does_not_find_what_it_releases_itself(client: WireClient) -> None:
    """It is not stored yet: so brokers of 4.3.1 have answered 15 times of 15, when others were free."""
    fetched = [
        fetch(client, 2, 0, topic(), max_records=2, share_acquire_mode=1),
        fetch(client, 2, 1, topic(acknowledged(0, 1, 2)), share_acquire_mode=1),
        fetch(client, 2, 2, share_acquire_mode=1),
    ]

    acquired = [each.responses[0].partitions[0].acquired_records for each in fetched]
    assert [[(one.first_offset, one.last_offset, one.delivery_count) for one in each] for each in acquired] == [
        [(0, 1, 1)],
        [(2, 4, 1)],
        [(0, 1, 2)],
    ]


@pytest.mark.parametrize("handler", [share_fetch, share_acknowledge])
def test_a_leader_is_named(handler: Any) -> None:  # noqa: ANN401 - either
    """If the error of a partition is that another leader has it, the response says who, and where that is."""
    fields: dict[str, Any] = dict.fromkeys(("max_wait", "min_bytes", "max_bytes", "max_records", "batch_size"), 1)
    fields |= {
        "group_id": "g",
        "member_id": MEMBER,
        "share_session_epoch": 0,
        "topics": [],
        "forgotten_topics_data": [],
    }
    part: dict[str, Any] = {"topic_id": ORDERS, "partition": 1, "current_leader": LeaderIdAndEpoch(1, 8)}
    server = BrokerServer(ServerConfig(port=9092, rack="r1"))
    if handler is share_fetch:
        answer: Any = ShareFetchResponse(partitions=(ShareFetchPartition(**part),))
    else:
        answer = ShareAcknowledgeResponse(partitions=(ShareAcknowledgePartition(**part),))
    call: Any = SimpleNamespace(fields=fields, version=2, node=server.node, config=server.config)

    response = handler(call).write(answer)

    assert response["node_endpoints"] == [{"node_id": 1, "host": "127.0.0.1", "port": 9092, "rack": "r1"}]
    (only,) = response["responses"][0]["partitions"]
    assert only["current_leader"] == {"leader_id": 1, "leader_epoch": 8}
