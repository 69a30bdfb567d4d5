"""Topics are made, deleted, given more partitions and configured, as Kafka's controller does it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from sharestate import MalformedInputError, topic_id_of
from sharestate.broker.node import (
    CleanupPolicy,
    MessageTimestampType,
    NodeError,
    TopicConfig,
    Topics,
    read_topic_configs,
)
from sharestate.broker.sessions import TopicIdPartition, topic_error
from sharestate.errors import ErrorCode, InvalidConfigurationError

FIRST_ID = int.from_bytes(b"sharestate\0\0\0\0\0\1")


def refusal(topics: Topics, *arguments: Any, **named: Any) -> tuple[ErrorCode, str | None]:  # noqa: ANN401 - any
    """Return why a topic is not made; nothing has changed then."""
    before = tuple(topics)
    with pytest.raises((NodeError, InvalidConfigurationError)) as refused:
        topics.create(*arguments, **named)
    assert tuple(topics) == before
    return refused.value.code, refused.value.message


def test_a_topic_made_again_has_another_id() -> None:
    """Ids are not used twice: neither those of the count nor those that the caller has chosen."""
    topics = Topics()
    third = topic_id_of(UUID(int=FIRST_ID + 1))
    first = topics.create("t").topic_id
    topics.delete("t")
    topics.create("t", topic_id=third)
    topics.delete("t")
    last = topics.create("t").topic_id

    assert (first, last) == (topic_id_of(UUID(int=FIRST_ID)), topic_id_of(UUID(int=FIRST_ID + 2)))
    with pytest.raises(MalformedInputError, match="no topic has or had"):
        topics.create("u", topic_id=third)


@pytest.mark.parametrize("number", [0, 1])
def test_kafkas_own_ids_are_no_topics(number: int) -> None:
    """Kafka keeps two UUIDs for itself (Uuid.RESERVED)."""
    with pytest.raises(MalformedInputError):
        Topics().create("t", topic_id=topic_id_of(UUID(int=number)))


# The texts are those of Topic.detectInvalidTopic and ReplicationControlManager (Kafka 4.4).
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        ("a" * 250, f"Topic name is invalid: the length of '{'a' * 250}' is longer than the max allowed length 249"),
        (
            "a b",
            (
                "Topic name is invalid: 'a b' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'"
            ),
        ),
        (
            "ä",
            (
                "Topic name is invalid: 'ä' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'"
            ),
        ),
        ("a.b", "Topic 'a.b' collides with existing topic: a_b"),
    ],
)
def test_names_that_kafka_does_not_take(name: str, reason: str) -> None:
    """A name is refused with INVALID_TOPIC_EXCEPTION in Kafka's words."""
    topics = Topics()
    topics.create("a_b")

    assert refusal(topics, name, 1) == (ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def test_names_that_kafka_takes() -> None:
    """The longest name is taken, and a deleted topic collides with nothing."""
    topics = Topics()
    topics.create("a_b")
    topics.delete("a_b")

    assert [topics.create(name).name for name in ("a.b", "a" * 249)] == ["a.b", "a" * 249]


def test_a_name_is_taken_once() -> None:
    """That a topic exists goes before all else that is wrong with it (createTopics puts it over other errors)."""
    topics = Topics()
    topics.create("a.b")

    expected = (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists.")
    assert refusal(topics, "a.b", 0, configs={"x": "y"}) == expected


@pytest.mark.parametrize(
    ("partitions", "replicas", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (0, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_numbers_that_kafka_does_not_take(partitions: int, replicas: int, code: ErrorCode) -> None:
    """A node that is alone has one replica of each partition, and makes 10,000 at once."""
    assert refusal(Topics(), "t", partitions, replication_factor=replicas)[0] is code


def test_the_default_is_the_nodes() -> None:
    """Without a number of partitions a topic has those that the node is set to."""
    assert Topics(default_partition_count=4).create("t").partition_count == 4


def test_validating_changes_nothing() -> None:
    """A topic that is only validated is not there, nor are the partitions that it would get."""
    topics = Topics()
    topics.create("t", validate_only=True)
    assert len(topics) == 0

    before = topics.create("t")
    assert topics.grow("t", 3, validate_only=True).partition_count == 3
    assert topics.by_name("t") == before


@pytest.mark.parametrize(
    ("name", "count", "code", "message"),
    [
        ("t", 2, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            "t",
            1,
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        ("u", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("t", 10_003, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
    ],
)
def test_growth_that_kafka_refuses(name: str, count: int, code: ErrorCode, message: str | None) -> None:
    """Partitions only become more (ReplicationControlManager.createPartitions)."""
    topics = Topics()
    topic = topics.create("t", 2)
    with pytest.raises(NodeError) as refused:
        topics.grow(name, count)

    assert (refused.value.code, refused.value.message) == (code, message)
    assert list(topics) == [topic]


def test_a_topic_keeps_its_id_when_it_grows_or_is_configured() -> None:
    """By name and by id it is the same topic."""
    topics = Topics()
    made = topics.create("t")
    topics.grow("t", 2)
    topics.configure("t", {"retention.ms": "5"})
    found = topics.by_name("t")

    assert found is not None
    assert found is topics.by_id(made.topic_id)
    assert (found.topic_id, found.partition_count, found.config.retention_ms) == (made.topic_id, 2, 5)


def test_configs_replace_those_before() -> None:
    """A topic has the configs that it was given last, and refused ones leave those before."""
    topics = Topics()
    topics.create("t", configs={"cleanup.policy": "compact"})
    topics.configure("t", {"retention.ms": "5"})
    with pytest.raises(InvalidConfigurationError):
        topics.configure("t", {"retention.ms": "-2"})

    found = topics.by_name("t")
    assert found is not None
    assert (found.configs, found.config.is_compacted) == ({"retention.ms": "5"}, False)


def test_topics_are_the_metadata_of_share_sessions() -> None:
    """What is asked for is checked against them as TOPIC_CHECKS says."""
    topics = Topics()
    topic_id = topics.create("t", 2).topic_id
    asked = [(topic_id, 1), (topic_id, 2), (topic_id, -1), ("AAAAAAAAAAAAAAAAAAAACQ", 0)]

    assert [topic_error(TopicIdPartition(*each, topics.name_of(each[0])), topics) for each in asked] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_topics_that_brokers_write_are_internal() -> None:
    """They are known by their names (Topic.INTERNAL_TOPICS)."""
    topics = Topics()

    assert [topics.create(name).is_internal for name in ("__share_group_state", "state")] == [True, False]


# ---- configs


def test_the_defaults_are_kafkas() -> None:
    """A topic without configs has those of LogConfig (Kafka 4.4)."""
    assert read_topic_configs({}) == TopicConfig(
        cleanup_policy=frozenset({CleanupPolicy.DELETE}),
        delete_retention_ms=24 * 60 * 60 * 1000,
        errors_deadletterqueue_group_enable=False,
        max_message_bytes=1024 * 1024 + 12,
        message_timestamp_type=MessageTimestampType.CREATE_TIME,
        message_timestamp_before_max_ms=2**63 - 1,
        message_timestamp_after_max_ms=60 * 60 * 1000,
        retention_bytes=-1,
        retention_ms=7 * 24 * 60 * 60 * 1000,
    )


def test_configs_are_read_as_kafka_reads_them() -> None:
    """Blanks are cut off, truth has no case, and lists are separated by commas (ConfigDef.parseType)."""
    config = read_topic_configs(
        {
            "cleanup.policy": "compact, delete",
            "errors.deadletterqueue.group.enable": " TRUE ",
            "max.message.bytes": " +0100 ",
            "message.timestamp.type": "LogAppendTime",
            "retention.bytes": "-9223372036854775808",
            "segment.ms": "what a node does not read",
        }
    )

    assert (config.is_compacted, config.is_deleted) == (True, True)
    assert config.errors_deadletterqueue_group_enable is True
    assert config.max_message_bytes == 100
    assert config.message_timestamp_type is MessageTimestampType.LOG_APPEND_TIME
    assert config.retention_bytes == -(2**63)
    assert read_topic_configs({"cleanup.policy": ""}).cleanup_policy == frozenset()


# The texts are those of ConfigDef and LogConfig (Kafka 4.4).
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("retention", "1", "Unknown topic config name: retention"),
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "1_0", "Invalid value 1_0 for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        (
            "max.message.bytes",
            "2147483648",
            "Invalid value 2147483648 for configuration max.message.bytes: Not a number of type INT",
        ),
        (
            "errors.deadletterqueue.group.enable",
            "yes",
            (
                "Invalid value yes for configuration errors.deadletterqueue.group.enable: "
                "Expected value to be either true or false"
            ),
        ),
        (
            "message.timestamp.type",
            "createtime",
            (
                "Invalid value createtime for configuration message.timestamp.type: "
                "String must be one of: CreateTime, LogAppendTime"
            ),
        ),
        (
            "cleanup.policy",
            "keep",
            "Invalid value keep for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,delete", "Configuration 'cleanup.policy' values must not be duplicated."),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
    ],
)
def test_configs_that_kafka_does_not_take(name: str, value: str, message: str) -> None:
    """A topic is not made with them: INVALID_CONFIG, in Kafka's words."""
    assert refusal(Topics(), "t", configs={name: value}) == (ErrorCode.INVALID_CONFIG, message)


def test_thousands_of_digits_are_no_number() -> None:
    """They are refused like other texts that are no number."""
    with pytest.raises(InvalidConfigurationError, match="Not a number"):
        read_topic_configs({"retention.ms": "9" * 5000})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1,), {}),
        (("t", "1"), {}),
        (("t", 2**31), {}),
        (("t", 1), {"replication_factor": 2**15}),
        (("t", 1), {"configs": [("retention.ms", "1")]}),
        (("t", 1), {"configs": {"retention.ms": 1}}),
        (("t", 1), {"configs": {1: "1"}}),
        (("t", 1), {"topic_id": "short"}),
    ],
)
def test_hostile_arguments_change_nothing(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """What no request can carry is refused with MalformedInputError."""
    topics = Topics()
    with pytest.raises(MalformedInputError):
        topics.create(*arguments, **named)

    assert (len(topics), topics.create("t").topic_id) == (0, topic_id_of(UUID(int=FIRST_ID)))
