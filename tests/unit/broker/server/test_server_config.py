"""Settings by Kafka's names."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, IsolationLevel, Profile
from sharestate.broker.server.server_config import ServerConfig, read_group_config, release_of
from sharestate.errors import InvalidConfigurationError, MalformedInputError


@pytest.mark.parametrize(
    ("profile", "release"),
    [(KAFKA_4_2, "4.2"), (KAFKA_4_3.healed, "4.3"), (KAFKA_4_4, "4.4"), (KIP_932, "4.4")],
)
def test_a_profile_is_of_a_release(profile: Profile, release: str) -> None:
    """Rules that no release has go with the versions of the latest."""
    assert ServerConfig.from_kafka({}, profile=profile).release == release_of(profile) == release


def test_settings_are_read() -> None:
    """Those of the node, of its groups and of the server; others are left out."""
    texts = {
        "node.id": " 7 ",
        "broker.rack": " r1 ",
        "num.partitions": "3",
        "auto.create.topics.enable": "FALSE",
        "fetch.max.bytes": "2048",
        "socket.request.max.bytes": "1000",
        "group.share.max.share.sessions": "300",
        "group.share.max.size": "17",
        "offsets.commit.timeout.ms": "6000",
        "group.share.initialize.retry.interval.ms": "7000",
        "share.isolation.level": "read_committed",
        "share.session.timeout.ms": "50000",
        "share.heartbeat.interval.ms": "6000",
        "share.assignment.interval.ms": "500",
        "share.delivery.count.limit": "3",
        "errors.deadletterqueue.topic.name": "dlq.orders",
        "errors.deadletterqueue.copy.record.enable": "true",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "errors.deadletterqueue.topic.name.prefix": "dead.",
        "log.cleaner.threads": "2",
    }

    config = ServerConfig.from_kafka(texts, port=9092)

    node, group = config.node, config.node.group
    assert (config.port, config.rack, config.max_request_bytes, config.texts) == (9092, "r1", 1000, texts)
    assert (node.node_id, node.default_partition_count, node.auto_create_topics_enable) == (7, 3, False)
    assert (node.fetch_max_bytes, node.max_share_sessions) == (2048, 300)
    assert (node.dead_letter_auto_create_topics_enable, node.dead_letter_topic_name_prefix) == (True, "dead.")
    assert (group.isolation_level, group.share.delivery_count_limit) == (IsolationLevel.READ_COMMITTED, 3)
    assert (group.dead_letter_topic_name, group.dead_letter_copy_record_enable) == ("dlq.orders", True)
    coordinator = group.coordinator
    assert (coordinator.max_size, coordinator.session_timeout_ms, coordinator.heartbeat_interval_ms) == (
        17,
        50_000,
        6000,
    )
    assert (coordinator.assignment_interval_ms, coordinator.retry_ms) == (500, 7000)


def test_an_old_release_has_no_dead_letters() -> None:
    """Kafka 4.2 knows neither them nor an interval between assignments."""
    group = read_group_config({}, "4.2")

    assert (group.dead_letter_topic_name, group.dead_letter_copy_record_enable) == ("", False)
    assert group.coordinator.assignment_interval_ms == 0


@pytest.mark.parametrize("value", ["", "x", "1.5", "1_0", "99999999999"])
def test_a_number_that_is_none_is_refused(value: str) -> None:
    """As a broker refuses it; Python would take some."""
    with pytest.raises(InvalidConfigurationError, match=r"node\.id: Not a number of type INT") as refused:
        ServerConfig.from_kafka({"node.id": value})

    assert refused.value.key == "node.id"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("node.id", "-1", "Value must be at least 0"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("socket.request.max.bytes", "0", "Value must be at least 1"),
        ("fetch.max.bytes", "1023", "Value must be at least 1024"),
        ("num.partitions", "x", "Not a number of type INT"),
        ("group.initial.rebalance.delay.ms", "soon", "Not a number of type INT"),
        ("auto.create.topics.enable", "maybe", "Expected value to be either true or false"),
    ],
)
def test_what_a_broker_does_not_take_is_refused_in_its_words(name: str, value: str, why: str) -> None:
    """So has KafkaConfig of 4.3.1 and 4.4.0 said."""
    with pytest.raises(InvalidConfigurationError, match=f"^Invalid value {value} for configuration {name}: {why}$"):
        ServerConfig.from_kafka({name: value})


def test_what_no_share_group_has_does_nothing() -> None:
    """A delay that Kafka takes, even one of less than nothing, changes nothing."""
    config = ServerConfig.from_kafka({"group.initial.rebalance.delay.ms": "-5"})

    assert (config.node, config.rack) == (ServerConfig().from_kafka({}).node, None)


def test_more_partitions_than_a_node_has_are_refused() -> None:
    """Kafka would take them; a node in memory does not."""
    with pytest.raises(MalformedInputError, match=r"within 1\.\.10000"):
        ServerConfig.from_kafka({"num.partitions": "10001"})
