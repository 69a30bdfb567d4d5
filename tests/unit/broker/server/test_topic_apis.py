"""What clients ask of topics, in the oldest and the newest version of each request, on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sharestate.broker.node import LogRecord, ProducedBatch, ProducedPartition, ProduceRequest
from sharestate.broker.server import TestBroker
from tests.support.wire_client import WireClient, id_of, uuid_of

CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS = 19, 20, 21, 37

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS = 1, 3, 36, 37
INVALID_TOPIC = 17
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST = 38, 39, 40, 42
UNKNOWN_TOPIC_ID = 100

FIRST_ID, SECOND_ID = "c2hhcmVzdGF0ZQAAAAAAAQ", "c2hhcmVzdGF0ZQAAAAAAAg"
"""The ids of the first two topics of a node."""


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker, whose topics have two partitions unless they are to have others."""
    with TestBroker(config={"num.partitions": "2", "node.id": "4"}) as broker:
        yield broker


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def topic(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - as kio has them
    """Return a topic of a CreateTopics, with defaults for what is not given."""
    return {"name": name, "num_partitions": -1, "replication_factor": -1, **fields}


def create(client: WireClient, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> Any:  # noqa: ANN401 - of kio
    """Return what has become of topics."""
    return client.ask(CREATE_TOPICS, version, topics=topics, validate_only=validate_only).topics


# ---- CreateTopics


@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_a_topic_is_made(broker: TestBroker, client: WireClient, version: int) -> None:
    """With partitions, and configs as they are given; from version 5 on the response says what it has."""
    config = {"name": "retention.ms", "value": "1000"}

    (made,) = create(client, topic("orders", num_partitions=3, replication_factor=1, configs=[config]), version=version)

    assert (made.name, made.error_code.value, made.error_message) == ("orders", 0, None)
    assert broker.run(lambda node: [(each.partition_count, dict(each.configs)) for each in node.topics]) == [
        (3, {"retention.ms": "1000"})
    ]
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        configs = {each.name: (each.value, each.config_source) for each in made.configs}
        assert (configs["retention.ms"], configs["flush.messages"]) == (("1000", 1), ("9223372036854775807", 5))
        assert len(configs) == 37
        assert [*configs] == sorted(configs)
    if version == 7:
        assert id_of(made.topic_id) == FIRST_ID


def test_a_topic_is_only_validated(broker: TestBroker, client: WireClient) -> None:
    """With ``validate_only`` the response is that of a topic that was made, but it was not."""
    (seen,) = create(client, topic("orders"), validate_only=True)

    assert (seen.error_code.value, seen.num_partitions) == (0, 2)
    assert broker.run(lambda node: len(node.topics)) == 0


@pytest.mark.parametrize(
    ("refused", "code", "message"),
    [
        (topic("t", num_partitions=0), INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive"),
        (topic("t", num_partitions=0, replication_factor=2), INVALID_PARTITIONS, "Number of partitions was set to an"),
        (topic("t", num_partitions=0, replication_factor=0), INVALID_REPLICATION_FACTOR, "Replication factor must be"),
        (topic("t", replication_factor=2), INVALID_REPLICATION_FACTOR, "Unable to replicate the partition 2 time(s)"),
        (topic("t", configs=[{"name": "retention.ms", "value": "x"}]), INVALID_CONFIG, "Invalid value x for config"),
        (
            topic("t", configs=[{"name": "a", "value": None}, {"name": "b", "value": None}]),
            INVALID_CONFIG,
            "Null value not supported for topic configs: a,b",
        ),
        (
            topic("t", replication_factor=1, assignments=[{"partition_index": 0, "broker_ids": [4]}]),
            INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            topic("t", num_partitions=1, assignments=[{"partition_index": 0, "broker_ids": [4]}]),
            INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": [4]}] * 2),
            INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            topic("t", assignments=[{"partition_index": 1, "broker_ids": [4]}]),
            INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": [4, 9, 5]}]),
            INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 5, but no such broker is registered.",
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": [4, 4]}]),
            INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 4 more than once.",
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": []}]),
            INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
    ],
)
def test_a_topic_is_refused(client: WireClient, refused: dict[str, Any], code: int, message: str) -> None:
    """With Kafka's code and text, and others of the request are made."""
    results = {each.name: each for each in create(client, topic("fine"), refused)}

    assert results["fine"].error_code.value == 0
    assert results["t"].error_code.value == code
    assert results["t"].error_message.startswith(message)
    assert (results["t"].num_partitions, results["t"].topic_id) == (-1, None)


def test_partitions_are_where_they_are_to_be(client: WireClient) -> None:
    """A topic with an assignment to the only broker has as many partitions as that."""
    (made,) = create(client, topic("t", assignments=[{"partition_index": n, "broker_ids": [4]} for n in (1, 0, 2)]))

    assert (made.error_code.value, made.num_partitions) == (0, 3)


def test_a_topic_that_is_there_or_named_twice_is_refused(client: WireClient) -> None:
    """What is named twice is not looked at any further."""
    null = [{"name": "a", "value": None}]
    create(client, topic("orders"))

    there, twice = create(client, topic("orders"), topic("t"), topic("t", configs=null))

    assert (there.error_code.value, there.error_message) == (TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists.")
    assert (twice.name, twice.error_code.value, twice.error_message) == ("t", INVALID_REQUEST, "Duplicate topic name.")


def test_topics_of_a_response_come_in_kafkas_order(client: WireClient) -> None:
    """Made or not, as they were asked for, what is named twice at last; what grows comes as from a hash set."""
    nowhere = {"assignments": [{"partition_index": 0, "broker_ids": [9]}]}
    config = {"configs": [{"name": "nonsense", "value": "1"}]}
    named = [topic("u"), topic("t"), topic("u"), topic("s", **nowhere), topic("no topic", **nowhere), topic("r")]
    made = create(client, *named, topic("q", **nowhere, **config))
    grown = grow(client, *({"name": name, "count": 3} for name in ("bad/name", "no-topic", "t", "u", "u")))

    assert [(each.name, each.error_code.value) for each in made] == [
        ("t", 0),
        ("s", INVALID_REPLICA_ASSIGNMENT),
        ("no topic", INVALID_TOPIC),
        ("r", 0),
        ("q", INVALID_CONFIG),  # which is looked at before assignments are
        ("u", INVALID_REQUEST),
    ]
    assert [*grown] == ["u", "t", "no-topic", "bad/name"]  # in bins 4, 6 and 11 of 16 (String.hashCode)


# ---- DeleteTopics


@pytest.mark.parametrize("version", [1, 4, 5])
def test_topics_are_deleted_by_name(broker: TestBroker, client: WireClient, version: int) -> None:
    """Before version 6 they have names only; the answer has those."""
    create(client, topic("orders"))

    results = client.ask(DELETE_TOPICS, version, topic_names=["orders", "nothing"]).responses

    assert {each.name: each.error_code.value for each in results} == {
        "orders": 0,
        "nothing": UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert broker.run(lambda node: len(node.topics)) == 0


def test_topics_are_deleted_by_id(broker: TestBroker, client: WireClient) -> None:
    """Version 6 takes a name or an id, and refuses both, neither, and what there is not."""
    create(client, topic("orders"), topic("payments"))
    unknown = "AAAAAAAAAAAAAAAAAAAABA"

    results = client.ask(
        DELETE_TOPICS,
        6,
        topics=[
            {"name": None, "topic_id": uuid_of(FIRST_ID)},
            {"name": None, "topic_id": uuid_of(unknown)},
            {"name": "payments", "topic_id": uuid_of(SECOND_ID)},
            {"name": None},
        ],
    ).responses

    seen = {(each.name, each.topic_id and id_of(each.topic_id)): each for each in results}
    assert {key: each.error_code.value for key, each in seen.items()} == {
        ("orders", FIRST_ID): 0,
        (None, unknown): UNKNOWN_TOPIC_ID,
        ("payments", SECOND_ID): INVALID_REQUEST,
        (None, None): INVALID_REQUEST,
    }
    assert seen[None, unknown].error_message == "This server does not host this topic ID."
    assert seen["payments", SECOND_ID].error_message == "You may not specify both topic name and topic id."
    assert seen[None, None].error_message == "Neither topic name nor id were specified."
    assert [each.name for each in broker.run(lambda node: [*node.topics])] == ["payments"]


# ---- CreatePartitions


def grow(client: WireClient, *topics: dict[str, Any], version: int = 3) -> dict[str, Any]:
    """Return what has become of topics that were to have more partitions."""
    asked = [{"assignments": None, **each} for each in topics]
    return {each.name: each for each in client.ask(CREATE_PARTITIONS, version, topics=asked).results}


@pytest.mark.parametrize("version", [0, 3])
def test_topics_grow(broker: TestBroker, client: WireClient, version: int) -> None:
    """They have as many partitions as they are to have; nothing else is an increase."""
    create(client, topic("orders"), topic("payments"))

    results = grow(client, {"name": "orders", "count": 5}, {"name": "payments", "count": 2}, version=version)

    assert results["orders"].error_code.value == 0
    assert results["payments"].error_code.value == INVALID_PARTITIONS
    assert results["payments"].error_message == "Topic already has 2 partition(s)."
    assert [each.partition_count for each in broker.run(lambda node: [*node.topics])] == [5, 2]


def test_new_partitions_are_where_they_are_to_be(client: WireClient) -> None:
    """An assignment has to be one of the only broker for each new partition; other errors come first."""
    create(client, *map(topic, "abcd"))
    here, elsewhere = {"broker_ids": [4]}, {"broker_ids": [5]}

    results = grow(
        client,
        {"name": "a", "count": 4, "assignments": [here, here]},
        {"name": "b", "count": 4, "assignments": [here]},
        {"name": "c", "count": 3, "assignments": [elsewhere]},
        {"name": "d", "count": 1, "assignments": [elsewhere]},
        {"name": "e", "count": 3, "assignments": [elsewhere]},
    )

    assert {name: (each.error_code.value, each.error_message) for name, each in results.items()} == {
        "a": (0, None),
        "b": (
            INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        "c": (
            INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 5, but no such broker is registered.",
        ),
        "d": (INVALID_PARTITIONS, "The topic d currently has 2 partition(s); 1 would not be an increase."),
        "e": (UNKNOWN_TOPIC_OR_PARTITION, None),
    }


# ---- DeleteRecords


@pytest.mark.parametrize("version", [0, 2])
def test_records_are_deleted(broker: TestBroker, client: WireClient, version: int) -> None:
    """Up to an offset, or all there are with -1; the response has the low watermark."""
    create(client, topic("orders"))
    batch = ProducedBatch(records=[LogRecord(b"k", b"v")] * 5)
    produce = ProduceRequest(partitions=[ProducedPartition(FIRST_ID, part, batch) for part in range(2)])
    broker.run(lambda node: node.call(produce, now_ms=node.now_ms))
    deletions = [{"partition_index": 0, "offset": 3}, {"partition_index": 1, "offset": -1}]
    others = [{"partition_index": 2, "offset": 0}]
    too_far = [{"partition_index": 0, "offset": 6}]

    topics = client.ask(
        DELETE_RECORDS,
        version,
        topics=[{"name": "orders", "partitions": deletions + others}, {"name": "none", "partitions": others}],
    ).topics
    beyond = client.ask(DELETE_RECORDS, version, topics=[{"name": "orders", "partitions": too_far}]).topics

    assert {
        (topic.name, each.partition_index): (each.low_watermark, each.error_code.value)
        for topic in topics
        for each in topic.partitions
    } == {
        ("orders", 0): (3, 0),
        ("orders", 1): (5, 0),
        ("orders", 2): (-1, UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 2): (-1, UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert beyond[0].partitions[0].error_code.value == OFFSET_OUT_OF_RANGE
