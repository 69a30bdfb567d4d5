"""What clients ask of a cluster, in the oldest and the newest version of each request, on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_4
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest
from sharestate.broker.server import TestBroker
from tests.support.wire_client import WireClient, id_of, uuid_of

METADATA, FIND_COORDINATOR, API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 3, 10, 18, 60, 75

UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC = -1, 3, 17
UNSUPPORTED_VERSION, INVALID_REQUEST, UNKNOWN_TOPIC_ID = 35, 42, 100
MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE = 114, 115

ORDERS = "c2hhcmVzdGF0ZQAAAAAAAQ"
"""The id of the first topic of a node."""

JAVA = {"client_software_name": "apache-kafka-java", "client_software_version": "4.4.0"}


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker of rack "r1" with a topic of three partitions."""
    with TestBroker(config={"node.id": "4", "broker.rack": "r1"}) as broker:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders", partition_count=3)])
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        yield broker


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


# ---- ApiVersions


def versions(response: Any) -> dict[int, tuple[int, int]]:  # noqa: ANN401 - of kio
    """Return what a response announces."""
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_the_versions_of_what_is_there_are_announced(client: WireClient, version: int) -> None:
    """Those of a broker of Kafka 4.4.0, of share groups, topics and producers; nothing of classic groups."""
    response = client.ask(API_VERSIONS, version, **(JAVA if version > 2 else {}))

    announced = versions(response)
    assert response.error_code.value == 0
    assert announced[0] == (0, 13)
    assert announced[3] == (0, 13)
    assert announced[76] == (1, 1)
    assert announced[78] == announced[79] == (1, 2)
    assert not announced.keys() & {8, 9, 11, 12, 13, 14, 71}


def test_features_that_begin_at_0_are_for_clients_that_can_read_them(client: WireClient) -> None:
    """Version 3 leaves them out (KAFKA-17492); both say that transactions are of version 2."""
    old, new = client.ask(API_VERSIONS, 3, **JAVA), client.ask(API_VERSIONS, 4, **JAVA)

    names = {each.name for each in new.supported_features if each.min_version == 0}
    assert "transaction.version" in names
    assert not names & {each.name for each in old.supported_features}
    assert {each.name: each.max_version_level for each in old.finalized_features}["transaction.version"] == 2


@pytest.mark.parametrize("version", [5, 2**15 - 1])
def test_an_unknown_version_is_answered_in_the_oldest_one(client: WireClient, version: int) -> None:
    """The response says which versions of ApiVersions there are (KIP-511), and the connection stays."""
    client.send(bytes.fromhex(f"0000000b 0012 {version:04x} 00000000 ffff 00"))

    response = client.response(API_VERSIONS, 0)

    assert response.error_code.value == UNSUPPORTED_VERSION
    assert versions(response) == {API_VERSIONS: (0, 4)}
    assert client.ask(API_VERSIONS, 0).error_code.value == 0


@pytest.mark.parametrize("name", ["", "-java", "java!", "java-"])
def test_a_strange_name_of_a_client_is_refused(client: WireClient, name: str) -> None:
    """The name and the version of its software have to look like some."""
    for fields in ({"client_software_name": name}, {"client_software_version": name}):
        assert client.ask(API_VERSIONS, 4, **(JAVA | fields)).error_code.value == INVALID_REQUEST


# ---- Metadata


@pytest.mark.parametrize("version", [0, 1, 13])
def test_metadata_has_the_broker_and_all_topics(broker: TestBroker, client: WireClient, version: int) -> None:
    """The broker leads all partitions; version 0 asks for all topics with none, later ones with null."""
    response = client.ask(METADATA, version, topics=() if version == 0 else None)

    (only,) = response.brokers
    assert (only.node_id, only.host, only.port) == (4, "127.0.0.1", broker.port)
    (topic,) = response.topics
    assert (topic.error_code.value, topic.name) == (0, "orders")
    assert [each.partition_index for each in topic.partitions] == [0, 1, 2]
    assert {(each.leader_id, each.replica_nodes, each.isr_nodes) for each in topic.partitions} == {(4, (4,), (4,))}
    if version == 13:
        assert (only.rack, response.controller_id, response.cluster_id) == ("r1", 4, "sharestate-test-broker")
        assert id_of(topic.topic_id) == ORDERS
        assert {each.leader_epoch for each in topic.partitions} == {0}
        assert topic.topic_authorized_operations == -(2**31)
    if version == 1:
        assert (only.rack, response.controller_id, topic.is_internal) == ("r1", 4, False)
        assert client.ask(METADATA, version, topics=()).topics == ()


def test_metadata_finds_topics_by_name_and_by_id(client: WireClient) -> None:
    """Unknown ones have errors; if one is asked for by its id, names are not looked at."""
    names = [{"name": name} for name in ("orders", "nothing", "no/name")]
    ids = [{"topic_id": uuid_of(ORDERS), "name": None}, {"topic_id": uuid_of(ORDERS[:-1] + "w"), "name": None}]

    by_name = client.ask(METADATA, 13, topics=names, allow_auto_topic_creation=False).topics
    by_id = client.ask(METADATA, 13, topics=[*names, *ids]).topics

    assert {each.name: each.error_code.value for each in by_name} == {
        "orders": 0,
        "nothing": UNKNOWN_TOPIC_OR_PARTITION,
        "no/name": INVALID_TOPIC,
    }
    assert {(each.name, id_of(each.topic_id), each.error_code.value) for each in by_id} == {
        ("orders", ORDERS, 0),
        (None, ORDERS[:-1] + "w", UNKNOWN_TOPIC_ID),
    }


@pytest.mark.parametrize("version", [3, 4, 13])
def test_metadata_makes_topics(client: WireClient, version: int) -> None:
    """A topic that is asked for is there the next time, unless the request does not want that."""
    wants = {"topics": [{"name": "new"}]}

    if version > 3:
        client.ask(METADATA, version, **wants, allow_auto_topic_creation=False)
        assert len(client.ask(METADATA, version, topics=None).topics) == 1
    first, second = (client.ask(METADATA, version, **wants).topics[0] for _ in range(2))

    assert first.error_code.value == UNKNOWN_TOPIC_OR_PARTITION
    assert (second.error_code.value, len(second.partitions)) == (0, 1)


def test_metadata_of_no_name_is_refused(client: WireClient) -> None:
    """A topic with neither a name nor an id makes a broker stumble."""
    response = client.ask(METADATA, 13, topics=[{"name": None}])

    assert (response.error_code.value, response.brokers) == (UNKNOWN_SERVER_ERROR, ())
    assert [(each.name, each.error_code.value) for each in response.topics] == [("", UNKNOWN_SERVER_ERROR)]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [{"name": None}, {"name": "orders", "topic_id": uuid_of(ORDERS)}])
def test_metadata_takes_no_ids_before_version_12(client: WireClient, version: int, topic: dict[str, Any]) -> None:
    """Versions 10 and 11 have a place for an id, but brokers refuse requests that have one (KAFKA-14190)."""
    (refused,) = client.ask(METADATA, version, topics=[topic]).topics

    assert (refused.name, refused.error_code.value) == (topic["name"] or "", INVALID_REQUEST)


def test_metadata_says_what_one_may_do(client: WireClient) -> None:
    """Everything: 8 operations on a topic, 7 on a cluster; which is asked of DescribeCluster after version 10."""
    both = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}

    old = client.ask(METADATA, 10, topics=None, **both)
    new = client.ask(METADATA, 13, topics=None, include_topic_authorized_operations=True)

    assert old.cluster_authorized_operations == 8096
    assert old.topics[0].topic_authorized_operations == new.topics[0].topic_authorized_operations == 3576


def test_metadata_says_nothing_of_what_one_may_do_with_an_unknown_id(client: WireClient) -> None:
    """As Kafka 4.4.0 has answered; of an unknown name it does."""
    topics = {"name": None, "topic_id": uuid_of(ORDERS[:-1] + "w")}, {"name": "none"}

    by_id, by_name = (
        client.ask(METADATA, 13, topics=[each], include_topic_authorized_operations=True).topics[0] for each in topics
    )

    assert (by_id.error_code.value, by_id.topic_authorized_operations) == (100, -(2**31))
    assert (by_name.error_code.value, by_name.topic_authorized_operations) == (3, 3576)


def test_metadata_has_the_epoch_of_a_leader(broker: TestBroker, client: WireClient) -> None:
    """It is one more after a failover."""
    broker.fail_over("orders", 1)

    (topic,) = client.ask(METADATA, 13, topics=None).topics

    assert [each.leader_epoch for each in topic.partitions] == [0, 1, 0]


# ---- DescribeCluster


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_cluster_is_described(broker: TestBroker, client: WireClient, version: int) -> None:
    """It has one broker, which is the controller as far as clients see."""
    silent = client.ask(DESCRIBE_CLUSTER, version)
    response = client.ask(DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)

    (only,) = response.brokers
    assert (only.broker_id, only.host, only.port, only.rack) == (4, "127.0.0.1", broker.port, "r1")
    assert (response.error_code.value, response.cluster_id, response.controller_id) == (0, "sharestate-test-broker", 4)
    assert (silent.cluster_authorized_operations, response.cluster_authorized_operations) == (-(2**31), 8096)


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (2, MISMATCHED_ENDPOINT_TYPE, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint"),
        (3, UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
def test_a_cluster_of_something_else_is_refused(
    client: WireClient, endpoint_type: int, code: int, message: str
) -> None:
    """The broker is no controller (KIP-919)."""
    response = client.ask(DESCRIBE_CLUSTER, 1, endpoint_type=endpoint_type)

    assert response.error_code.value == code
    assert response.error_message.startswith(message)
    assert response.brokers == ()


# ---- FindCoordinator


@pytest.mark.parametrize("version", [0, 1, 3])
@pytest.mark.parametrize("key_type", [0, 1])
def test_a_coordinator_is_found(broker: TestBroker, client: WireClient, version: int, key_type: int) -> None:
    """Coordinators of groups and transactions are on the broker; version 0 knows groups only."""
    fields = {"key_type": key_type} if version else {}
    response = client.ask(FIND_COORDINATOR, version, key="g", **fields)

    assert (response.error_code.value, response.node_id) == (0, 4)
    assert (response.host, response.port) == ("127.0.0.1", broker.port)
    assert version == 0 or response.error_message == "NONE"


@pytest.mark.parametrize(("version", "key_type", "key"), [(4, 0, "g"), (6, 1, "t"), (6, 2, f"g:{ORDERS}:0")])
def test_coordinators_are_found(client: WireClient, version: int, key_type: int, key: str) -> None:
    """From version 4 on several keys are asked for at once, from version 6 on those of share partitions."""
    first, second = client.ask(FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=[key, key]).coordinators

    assert first == second
    assert (first.key, first.error_code.value, first.error_message, first.node_id) == (key, 0, "", 4)


@pytest.mark.parametrize(
    ("version", "key_type", "key"),
    [
        (5, 2, f"g:{ORDERS}:0"),
        (6, 2, "g"),
        (6, 2, f" :{ORDERS}:0"),
        (6, 2, f"g:{ORDERS[1:]}:0"),
        (6, 2, f"g:{ORDERS}:x"),
        (6, 3, "g"),
        (6, -1, "g"),
    ],
)
def test_a_coordinator_of_nothing_is_refused(client: WireClient, version: int, key_type: int, key: str) -> None:
    """A key that is none, or a type that there is not in this version, is an invalid request."""
    (refused,) = client.ask(FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=[key]).coordinators

    assert refused.error_code.value == INVALID_REQUEST
    assert (refused.node_id, refused.host, refused.port) == (-1, "", -1)


def test_an_old_refusal_has_a_text(client: WireClient) -> None:
    """Before version 4 the text of the error goes with it."""
    response = client.ask(FIND_COORDINATOR, 1, key="g", key_type=2)

    assert response.error_code.value == INVALID_REQUEST
    assert response.error_message.startswith("This most likely occurs because of a request being malformed")


# ---- DescribeTopicPartitions


def described(client: WireClient, **fields: Any) -> Any:  # noqa: ANN401 - of kio
    """Return the response to a DescribeTopicPartitions."""
    return client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, **fields)


def test_topics_are_described(client: WireClient) -> None:
    """All of them, or those that are asked for, in the order of their names."""
    response = described(client)
    named = described(client, topics=[{"name": "orders"}, {"name": "nothing"}, {"name": "no/name"}])

    (topic,) = response.topics
    assert (topic.error_code.value, topic.name, id_of(topic.topic_id)) == (0, "orders", ORDERS)
    assert [each.partition_index for each in topic.partitions] == [0, 1, 2]
    assert {(each.leader_id, each.leader_epoch, each.isr_nodes) for each in topic.partitions} == {(4, 0, (4,))}
    assert {(each.eligible_leader_replicas, each.last_known_elr) for each in topic.partitions} == {((), ())}
    assert topic.topic_authorized_operations == 3576
    assert response.next_cursor is None
    assert [(each.name, each.error_code.value) for each in named.topics] == [
        ("no/name", INVALID_TOPIC),
        ("nothing", UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0),
    ]


def test_topics_are_described_in_parts(broker: TestBroker, client: WireClient) -> None:
    """A cursor says where the next part begins: in the middle of a topic, or with the next one."""
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="payments")])
    broker.run(lambda node: node.call(topics, now_ms=node.now_ms))

    first = described(client, response_partition_limit=2)
    second = described(client, response_partition_limit=1, cursor={"topic_name": "orders", "partition_index": 2})
    third = described(client, response_partition_limit=1, cursor={"topic_name": "payments", "partition_index": 0})

    parts = [
        [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]
        for response in (first, second, third)
    ]
    assert parts == [[("orders", 0), ("orders", 1)], [("orders", 2)], [("payments", 0)]]
    cursors = [response.next_cursor for response in (first, second)]
    assert [(each.topic_name, each.partition_index) for each in cursors] == [("orders", 2), ("payments", 0)]
    assert third.next_cursor is None


@pytest.mark.parametrize(("topic", "partition"), [("orders", -1), ("others", 0)])
def test_a_cursor_that_is_none_is_refused(client: WireClient, topic: str, partition: int) -> None:
    """It has to be of one of the topics, if any are named, and of a partition."""
    response = described(
        client, topics=[{"name": "orders"}], cursor={"topic_name": topic, "partition_index": partition}
    )

    assert [(each.name, each.error_code.value) for each in response.topics] == [("orders", INVALID_REQUEST)]


# ---- releases


def test_each_release_announces_its_own() -> None:
    """Kafka 4.2 and 4.4 announce the same here."""
    announced = []
    for profile in (KAFKA_4_2, KAFKA_4_4.healed):
        with TestBroker(profile=profile) as broker, WireClient(broker.port) as client:
            announced.append(versions(client.ask(API_VERSIONS, 4, **JAVA)))

    assert announced[0] == announced[1]
