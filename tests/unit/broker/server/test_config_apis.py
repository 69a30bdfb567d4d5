"""Configs on the wire, in the oldest and the newest version of each request; expected values are those of Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest
from sharestate.broker.server import TestBroker
from tests.support.wire_client import WireClient

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES = 32, 44, 74

(
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_TOPIC,
    UNSUPPORTED_VERSION,
    INVALID_CONFIG,
    INVALID_REQUEST,
) = -1, 3, 17, 35, 40, 42

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""The types of resources (ConfigResource.Type)."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""What is done with a config (AlterConfigOp.OpType)."""

FOR_TOPIC, FOR_ALL, STATIC, DEFAULT, FOR_GROUP = 1, 3, 4, 5, 8
"""Where values come from (DescribeConfigsResponse.ConfigSource)."""

MIN_ISR = "min.insync.replicas"

SETTINGS = {"group.share.record.lock.duration.ms": "20000", "share.auto.offset.reset": "earliest"}


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with two settings, and a topic with a config."""
    with TestBroker(config=SETTINGS) as broker:
        topics = [CreatableTopic(name="t", configs={"retention.ms": "1000"})]
        broker.run(lambda node: node.call(CreateTopicsRequest(topics=topics), now_ms=node.now_ms))
        yield broker


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def code(part: Any) -> int:  # noqa: ANN401 - of kio
    """Return the number of an error code."""
    return int(part.error_code.value)


def describe(client: WireClient, kind: int, name: str, version: int = 4, **others: Any) -> Any:  # noqa: ANN401
    """Describe the configs of a resource, of all of them unless some are named."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": others.pop("keys", None)}
    (result,) = client.ask(DESCRIBE_CONFIGS, version, resources=[resource], **others).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def values(result: Any) -> dict[str, tuple[str, int]]:  # noqa: ANN401 - of kio
    """Return value and source of each config, by its name."""
    return {each.name: (each.value, each.config_source) for each in result.configs}


def alter(
    client: WireClient,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    **others: Any,  # noqa: ANN401
) -> tuple[int, str | None]:
    """Alter configs of a resource, and return the error and its text."""
    configs = [{"name": each, "config_operation": operation, "value": value} for each, operation, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    version = others.pop("version", 1)
    (response,) = client.ask(INCREMENTAL_ALTER_CONFIGS, version, resources=[resource], **others).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return code(response), response.error_message


# ---- DescribeConfigs


@pytest.mark.parametrize("version", [1, 4])
def test_the_configs_of_a_topic_are_described(client: WireClient, version: int) -> None:
    """All that Kafka has, with the defaults where nothing was given."""
    result = describe(client, TOPIC, "t", version)

    found = values(result)
    assert (code(result), len(found)) == (0, 37)
    assert found["retention.ms"] == ("1000", FOR_TOPIC)
    assert found["cleanup.policy"] == ("delete", DEFAULT)
    assert found["max.message.bytes"] == ("1048588", DEFAULT)
    assert not any(each.read_only or each.is_sensitive or each.synonyms for each in result.configs)
    if version >= 3:
        types = {each.name: each.config_type for each in result.configs}
        assert (types["preallocate"], types["compression.type"], types["segment.bytes"]) == (1, 2, 3)
        assert (types["retention.ms"], types["min.cleanable.dirty.ratio"], types["cleanup.policy"]) == (5, 6, 7)
        assert {each.documentation for each in result.configs} == {None}


@pytest.mark.parametrize(("keys", "found"), [(["flush.ms", "nonsense"], {"flush.ms"}), ([], 37), (None, 37)])
def test_some_configs_are_described(client: WireClient, keys: list[str] | None, found: set[str] | int) -> None:
    """Those that are named; all of them if none is."""
    names = values(describe(client, TOPIC, "t", keys=keys)).keys()

    assert (names if isinstance(found, set) else len(names)) == found


def test_synonyms_say_what_would_decide_else(client: WireClient) -> None:
    """The first one decides; some settings of brokers stand behind another one, and are not named."""
    result = describe(client, TOPIC, "t", keys=["retention.ms", "max.message.bytes"], include_synonyms=True)

    synonyms = {
        each.name: [(other.name, other.value, other.source) for other in each.synonyms] for each in result.configs
    }
    assert synonyms == {
        "retention.ms": [("retention.ms", "1000", FOR_TOPIC)],
        "max.message.bytes": [("message.max.bytes", "1048588", DEFAULT)],
    }


def test_the_configs_of_a_group_are_described(client: WireClient) -> None:
    """It need not exist; the broker's settings are the defaults, and those it has for all groups."""
    assert alter(client, GROUP, "g", ("share.isolation.level", SET, "read_committed")) == (0, None)

    result = describe(client, GROUP, "g", include_synonyms=True)

    found = values(result)
    assert len(found) == 21
    assert found["share.isolation.level"] == ("read_committed", FOR_GROUP)
    assert found["share.record.lock.duration.ms"] == ("20000", STATIC)
    assert found["share.auto.offset.reset"] == ("earliest", STATIC)
    assert found["share.session.timeout.ms"] == ("45000", DEFAULT)
    synonyms = {each.name: [other.name for other in each.synonyms] for each in result.configs}
    assert synonyms["share.session.timeout.ms"] == ["group.share.session.timeout.ms"]
    assert synonyms["share.isolation.level"] == ["share.isolation.level"] * 2


def test_the_configs_of_other_kinds_of_groups_are_kept(client: WireClient) -> None:
    """They are described as they were given; one that Kafka does not document, only then."""
    changes = ("consumer.session.timeout.ms", SET, "50000"), ("streams.num.warmup.replicas", SET, "7")
    before = values(describe(client, GROUP, "g"))
    assert alter(client, GROUP, "g", *changes, ("streams.rack.aware.assignment.tags", SET, "zone")) == (0, None)

    found = values(describe(client, GROUP, "g"))

    assert before["consumer.session.timeout.ms"] == ("45000", DEFAULT)
    assert before["streams.assignor.name"] == ("sticky", DEFAULT)
    assert found.keys() - before.keys() == {"streams.num.warmup.replicas"}
    assert {name: value for name, (value, source) in found.items() if source == FOR_GROUP} == {
        "consumer.session.timeout.ms": "50000",
        "streams.num.warmup.replicas": "7",
        "streams.rack.aware.assignment.tags": "zone",
    }


def test_a_groups_configs_are_described_as_they_were_read(client: WireClient) -> None:
    """Without spaces, signs and zeros in front, as brokers of 4.3.1 and 4.4.0 have answered."""
    given = {
        "consumer.session.timeout.ms": " 050001 ",
        "share.heartbeat.interval.ms": "+6000",
        "share.renew.acknowledge.enable": " FALSE",
        "streams.rack.aware.assignment.tags": "a , b",
    }
    assert alter(client, GROUP, "g", *((name, SET, value) for name, value in given.items())) == (0, None)

    found = describe(client, GROUP, "g", keys=list(given), include_synonyms=True).configs

    assert {each.name: each.value for each in found} == {
        "consumer.session.timeout.ms": "50001",
        "share.heartbeat.interval.ms": "6000",
        "share.renew.acknowledge.enable": "false",
        "streams.rack.aware.assignment.tags": "a,b",
    }
    assert all(each.value == each.synonyms[0].value for each in found)


def test_the_settings_of_the_broker_are_described(client: WireClient) -> None:
    """Those of share groups, and what else does something; only a few can be altered while a broker runs."""
    result = describe(client, BROKER, "1")

    found = values(result)
    assert found["group.share.record.lock.duration.ms"] == ("20000", STATIC)
    assert found["group.share.assignors"] == ("simple", DEFAULT)
    assert found["num.partitions"] == ("1", DEFAULT)
    assert [each.name for each in result.configs if not each.read_only] == [
        "group.share.assignment.interval.ms",
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "share.coordinator.cached.buffer.max.bytes",
    ]
    assert found["errors.deadletterqueue.auto.create.topics.enable"] == ("false", DEFAULT)


@pytest.mark.parametrize(
    ("kind", "name", "error", "text"),
    [
        (TOPIC, "u", UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "no topic", INVALID_TOPIC, "Topic name is invalid: 'no topic' contains one or more characters"),
        (GROUP, "", INVALID_REQUEST, "Group name must not be empty"),
        (BROKER, "2", INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "one", INVALID_REQUEST, "Broker id must be an integer, but it is: one"),
        (BROKER_LOGGER, "", INVALID_REQUEST, "Broker id must not be empty"),
        (BROKER_LOGGER, "2", INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (7, "x", INVALID_REQUEST, "This most likely occurs because of a request being malformed by the client library"),
    ],
)
def test_what_cannot_be_described(client: WireClient, kind: int, name: str, error: int, text: str) -> None:
    """With Kafka's words (ConfigHelper.describeConfigs)."""
    result = describe(client, kind, name)

    assert (code(result), result.configs) == (error, ())
    assert result.error_message == text or (text and result.error_message.startswith(text))


def test_what_a_new_cluster_gives_to_all_brokers(client: WireClient) -> None:
    """It is the first source of a topic's config, before Kafka's default."""
    (of_all,) = describe(client, BROKER, "", include_synonyms=True).configs
    (of_topic,) = describe(client, TOPIC, "t", keys=("min.insync.replicas",), include_synonyms=True).configs

    assert (of_all.name, of_all.value, of_all.config_source, of_all.read_only) == (MIN_ISR, "1", FOR_ALL, False)
    assert [(each.name, each.source) for each in of_all.synonyms] == [(MIN_ISR, FOR_ALL)]
    assert (of_topic.value, of_topic.config_source) == ("1", FOR_ALL)
    assert [(each.name, each.source) for each in of_topic.synonyms] == [(MIN_ISR, FOR_ALL), (MIN_ISR, DEFAULT)]


def test_a_resource_of_no_known_type_fails_the_whole_request(client: WireClient) -> None:
    """The others are not described either, as brokers of 4.3.1 answer."""
    resources = [{"resource_type": kind, "resource_name": "t", "configuration_keys": None} for kind in (TOPIC, 0)]
    results = client.ask(DESCRIBE_CONFIGS, 4, resources=resources).results

    assert [(code(result), result.configs) for result in results] == [(INVALID_REQUEST, ())] * 2


@pytest.mark.parametrize(("kind", "name"), [(BROKER_LOGGER, "1"), (CLIENT_METRICS, "m")])
def test_what_has_no_configs_here(client: WireClient, kind: int, name: str) -> None:
    """Nobody gives this broker settings for loggers or metrics."""
    result = describe(client, kind, name)

    assert (code(result), result.configs) == (0, ())


@pytest.mark.parametrize(("profile", "topics", "groups"), [(KAFKA_4_2, 33, 11), (KAFKA_4_3, 33, 17)])
def test_older_releases_have_fewer(profile: Any, topics: int, groups: int) -> None:  # noqa: ANN401 - a profile
    """As many as LogConfig and GroupConfig of 4.2.1 and 4.3.1 document."""
    with TestBroker(profile=profile) as broker, WireClient(broker.port) as client:
        made = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
        broker.run(lambda node: node.call(made, now_ms=node.now_ms))

        assert len(values(describe(client, TOPIC, "t"))) == topics
        assert len(values(describe(client, GROUP, "g"))) == groups


# ---- IncrementalAlterConfigs


@pytest.mark.parametrize("version", [0, 1])
def test_the_configs_of_a_topic_are_altered(client: WireClient, broker: TestBroker, version: int) -> None:
    """What is not named stays; what is deleted has its default again."""
    changes = ("max.message.bytes", SET, "99"), ("cleanup.policy", APPEND, "compact"), ("retention.ms", DELETE, None)

    assert alter(client, TOPIC, "t", *changes, version=version) == (0, None)

    topic = broker.run(lambda node: node.topics.by_name("t"))
    assert topic is not None
    assert topic.configs == {"max.message.bytes": "99", "cleanup.policy": "delete,compact"}
    assert (topic.config.max_message_bytes, topic.config.is_compacted, topic.config.retention_ms) == (
        99,
        True,
        604_800_000,
    )


def test_lists_lose_what_is_subtracted(client: WireClient) -> None:
    """And an item is appended once."""
    alter(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete"))
    assert values(describe(client, TOPIC, "t"))["cleanup.policy"] == ("delete,compact", FOR_TOPIC)

    alter(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert values(describe(client, TOPIC, "t"))["cleanup.policy"] == ("compact", FOR_TOPIC)


def test_the_settings_of_a_group_are_altered(client: WireClient, broker: TestBroker) -> None:
    """They reach its share partitions and its coordinator, beside those that the broker has for all."""
    changes = ("share.record.lock.duration.ms", SET, "15000"), ("share.heartbeat.interval.ms", SET, "6000")
    assert alter(client, GROUP, "g", *changes) == (0, None)
    config = broker.run(lambda node: node.group_configs["g"])
    assert (config.share.record_lock_duration_ms, config.coordinator.heartbeat_interval_ms) == (15_000, 6000)
    assert str(config.share.auto_offset_reset) == "earliest"

    assert alter(client, GROUP, "g", ("share.record.lock.duration.ms", DELETE, None)) == (0, None)
    config = broker.run(lambda node: node.group_configs["g"])
    assert (config.share.record_lock_duration_ms, config.coordinator.heartbeat_interval_ms) == (20_000, 6000)


def test_an_operation_that_there_is_not_fails_what_is_altered_with_it(client: WireClient) -> None:
    """The controller throws, as that of Kafka 4.4.0 has: no other resource that it is asked for is altered."""
    topic = {"resource_type": TOPIC, "resource_name": "none", "configs": [config("a0", 2, "-1")]}
    group = {"resource_type": GROUP, "resource_name": "7", "configs": [config("a1", 4, "4500")]}
    node = {"resource_type": BROKER, "resource_name": "7", "configs": [config("x", SET, "1")]}

    answers = client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[topic, group, node]).responses

    assert [(code(each), each.error_message) for each in answers[:2]] == [(UNKNOWN_SERVER_ERROR, None)] * 2
    assert code(answers[2]) == INVALID_REQUEST


def config(name: str, operation: int, value: str) -> dict[str, Any]:
    """Return a change of a config."""
    return {"name": name, "config_operation": operation, "value": value}


def test_of_several_unknown_configs_of_a_group_one_is_named(client: WireClient) -> None:
    """The one that Kafka 4.4.0 has named, whose hash map has them in this order."""
    changes = ("bad/name", SET, "x"), ("a1", SET, "99")

    assert alter(client, GROUP, "even", *changes) == (INVALID_CONFIG, "Unknown group config name: a1")


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (GROUP, "g")])
def test_it_may_only_be_seen_whether_configs_are_taken(client: WireClient, kind: int, name: str) -> None:
    """Then nothing is changed."""
    change = ("flush.ms" if kind == TOPIC else "share.isolation.level", SET, "7" if kind == TOPIC else "read_committed")
    before = values(describe(client, kind, name))

    assert alter(client, kind, name, change, validate_only=True) == (0, None)
    assert values(describe(client, kind, name)) == before


LOCK = "share.record.lock.duration.ms"


@pytest.mark.parametrize(
    ("resource", "change", "error", "text"),
    [
        ((TOPIC, "t"), ("nonsense", SET, "1"), INVALID_CONFIG, "Unknown topic config name: nonsense"),
        ((TOPIC, "t"), ("retention.ms", SET, "-2"), INVALID_CONFIG, "Invalid value -2 for configuration retention.ms"),
        (
            (TOPIC, "t"),
            ("retention.ms", APPEND, "2"),
            INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type",
        ),
        (
            (TOPIC, "t"),
            ("cleanup.policy", APPEND, "x" * 32_767),
            INVALID_CONFIG,
            "The configuration value cannot be added because",
        ),
        ((TOPIC, "t"), ("flush.ms", SET, None), INVALID_REQUEST, "Null value not supported for : flush.ms"),
        ((TOPIC, "t"), ("flush.ms", 4, "1"), UNKNOWN_SERVER_ERROR, None),
        ((GROUP, "g"), (LOCK, 4, "20000"), UNKNOWN_SERVER_ERROR, None),
        ((BROKER, "7"), ("x", 4, "1"), INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"),
        ((BROKER, ""), ("x", 4, "1"), INVALID_REQUEST, "Unknown operations type 4"),
        ((TOPIC, "u"), ("flush.ms", SET, "1"), UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist."),
        ((TOPIC, "u"), ("nonsense", SET, "1"), INVALID_CONFIG, "Unknown topic config name: nonsense"),
        ((TOPIC, ""), ("flush.ms", SET, "1"), INVALID_REQUEST, "Default topic resources are not allowed."),
        ((TOPIC, "no topic"), ("flush.ms", SET, "1"), INVALID_TOPIC, "Topic name is invalid"),
        ((GROUP, "g"), (LOCK, SET, "14999"), INVALID_CONFIG, f"{LOCK} must be in the range 15000 to 60000 inclusive."),
        (
            (GROUP, "g"),
            (LOCK, SET, "x"),
            INVALID_CONFIG,
            f"Invalid value x for configuration {LOCK}: Not a number of type INT",
        ),
        ((GROUP, "g"), ("nonsense", SET, "1"), INVALID_CONFIG, "Unknown group config name: nonsense"),
        (
            (GROUP, "g"),
            ("group.share.max.size", SET, "1"),
            INVALID_CONFIG,
            "Unknown group config name: group.share.max.size",
        ),
        ((GROUP, "g"), (LOCK, SUBTRACT, "1"), INVALID_CONFIG, "Can't SUBTRACT to key"),
        (
            (GROUP, "g"),
            ("streams.rack.aware.assignment.tags", APPEND, "a"),
            INVALID_CONFIG,
            "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST.",
        ),
        (
            (GROUP, "g"),
            ("consumer.heartbeat.interval.ms", SET, "1"),
            INVALID_CONFIG,
            "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive.",
        ),
        ((GROUP, ""), (LOCK, SET, "20000"), INVALID_REQUEST, "Default group resources are not allowed."),
        (
            (BROKER, "1"),
            ("num.partitions", SET, "2"),
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [",
        ),
        (
            (BROKER, ""),
            ("num.partitions", SET, "2"),
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [",
        ),
        (
            (BROKER, "2"),
            ("num.partitions", SET, "2"),
            INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        ((BROKER_LOGGER, "1"), ("x", SET, "INFO"), INVALID_REQUEST, "Unknown resource type 8"),
        ((7, "x"), ("x", SET, "y"), INVALID_REQUEST, "Unknown resource type 7"),
    ],
)
def test_configs_that_are_refused(
    client: WireClient, resource: tuple[int, str], change: tuple[str, int, str | None], error: int, text: str | None
) -> None:
    """With the words of ConfigAdminManager and ConfigurationControlManager, or without any where these throw."""
    found, message = alter(client, *resource, change)

    assert found == error
    assert (message is None) if text is None else (message or "").startswith(text)


def test_a_resource_and_a_config_come_once(client: WireClient) -> None:
    """A resource that comes twice is not altered; the others are."""
    configs = [{"name": "flush.ms", "config_operation": SET, "value": "7"}]
    names = "t", "g", "t"
    resources = [
        {
            "resource_type": GROUP if name == "g" else TOPIC,
            "resource_name": name,
            "configs": () if name == "g" else configs,
        }
        for name in names
    ]
    responses = client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses

    assert [(each.resource_name, code(each), each.error_message) for each in responses] == [
        ("t", INVALID_REQUEST, "Each resource must appear at most once."),
        ("g", 0, None),
        ("t", INVALID_REQUEST, "Each resource must appear at most once."),
    ]
    twice = ("flush.ms", SET, "7"), ("flush.ms", DELETE, None)
    assert alter(client, TOPIC, "t", *twice) == (INVALID_REQUEST, "Error due to duplicate config keys")


# ---- ListConfigResources


def test_what_has_configs_is_listed(client: WireClient) -> None:
    """Topics and the broker by themselves, groups once they have a config of their own."""
    alter(client, GROUP, "g", (LOCK, SET, "20000"))
    alter(client, GROUP, "h", (LOCK, SET, "20000"))
    alter(client, GROUP, "h", (LOCK, DELETE, None))

    def listed(*kinds: int) -> list[tuple[int, str]]:
        response = client.ask(LIST_CONFIG_RESOURCES, 1, resource_types=kinds)
        assert code(response) == 0
        return [(each.resource_type, each.resource_name) for each in response.config_resources]

    assert listed(GROUP) == [(GROUP, "g")]
    assert sorted(listed()) == [(TOPIC, "t"), (BROKER, "1"), (BROKER_LOGGER, "1"), (GROUP, "g")]
    assert listed(CLIENT_METRICS) == []


def test_old_requests_are_about_metrics_of_clients(client: WireClient) -> None:
    """Version 0 has no types (KIP-1142); others than there are, are not supported."""
    assert client.ask(LIST_CONFIG_RESOURCES, 0).config_resources == ()
    assert code(client.ask(LIST_CONFIG_RESOURCES, 1, resource_types=(TOPIC, 1))) == UNSUPPORTED_VERSION
