"""The settings of dead-letter queues: what Kafka 4.4.0 refuses, in which order and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sharestate import DeadLetterQueueConfigError, ErrorCode, InvalidConfigurationError, MalformedInputError
from sharestate.dead_letters import DeadLetterSettings, check_topic_name

GOOD = DeadLetterSettings(topic_name="dlq.orders", topic_group_enable=True)

# ShareGroupDLQStateManager.validateDlqTopic, in its order. Each row also has what the rows below it are about.
REFUSALS = [
    (
        {"topic_name": None, "topic_group_enable": False},
        "Configured DLQ topic name in share group: g is empty.",
    ),
    (
        {"topic_name": "__dlq", "topic_group_enable": False},
        "Configured DLQ topic name in share group: g cannot start with __, topic: __dlq.",
    ),
    (
        {"topic_name": "plain", "topic_group_enable": False},
        "DLQ is not enabled on configured DLQ topic for share group: g, topic: plain.",
    ),
    (
        {"topic_name": "plain", "topic_group_enable": None},
        "DLQ topic does not exist and auto create is disabled on cluster for share group: g, topic: plain.",
    ),
    (
        {"topic_name": "x", "topic_name_prefix": "d-"},
        "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: g, topic: x, prefix: d-.",
    ),
    # A group whose other settings were made, but not this one.
    (
        {"topic_name": "", "topic_group_enable": None},
        "DLQ topic does not exist and auto create is disabled on cluster for share group: g, topic: .",
    ),
    (
        {"topic_name": "", "topic_group_enable": None, "auto_create_topics_enable": True},
        "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: g, topic: , prefix: dlq..",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS)
def test_a_refusal_gives_kafkas_first_reason(changes: dict[str, Any], message: str) -> None:
    """The first reason in Kafka's order is the text, and the exception is Kafka's."""
    error = evolve(GOOD, **changes).refusal("g")

    assert error == DeadLetterQueueConfigError(message)
    assert (error.code, error.exception) == (ErrorCode.INVALID_CONFIG, "ConfigException")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"auto_create_topics_enable": True, "topic_group_enable": None},
        {"topic_name": "plain", "topic_name_prefix": ""},
        {"topic_name": "dead.orders", "topic_name_prefix": "dead."},
        {"topic_name": "dlq. no topic could have this name"},
    ],
)
def test_what_kafka_takes_is_not_refused(changes: dict[str, Any]) -> None:
    """A topic that exists and is enabled, or may be created, with the prefix if there is one, is written to."""
    assert evolve(GOOD, **changes).refusal("g") is None


@pytest.mark.parametrize(
    ("topic_name", "has_queue"), [(None, False), ("", False), ("dlq.orders", True), ("__dlq", True)]
)
def test_a_group_has_a_queue_once_it_is_named(topic_name: str | None, has_queue: bool) -> None:  # noqa: FBT001 - a column
    """Whether it can be written to does not matter."""
    assert DeadLetterSettings(topic_name=topic_name).has_queue is has_queue


def test_the_defaults_are_kafkas() -> None:
    """No queue, nothing copied, no topics created, and the prefix that the KIP gives."""
    assert DeadLetterSettings() == DeadLetterSettings(
        topic_name=None,
        copy_record_enable=False,
        topic_group_enable=None,
        auto_create_topics_enable=False,
        topic_name_prefix="dlq.",
    )


def test_a_reserved_name_is_refused_when_it_is_configured() -> None:
    """The code and the text are those that a broker has answered to the change of the setting."""
    with pytest.raises(InvalidConfigurationError) as refusal:
        check_topic_name("__x")

    assert refusal.value.code is ErrorCode.INVALID_CONFIG
    assert refusal.value.exception == "InvalidConfigurationException"
    assert str(refusal.value) == "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"


@pytest.mark.parametrize("topic_name", ["", "a b", "dlq.orders", "_x"])
def test_any_other_name_is_configured_unchecked(topic_name: str) -> None:
    """A broker has taken even "a b", of which it could make no topic."""
    check_topic_name(topic_name)


@pytest.mark.parametrize(
    "changes",
    [
        {"topic_name": b"dlq"},
        {"copy_record_enable": "true"},
        {"topic_group_enable": 1},
        {"auto_create_topics_enable": None},
        {"topic_name_prefix": None},
    ],
)
def test_a_setting_of_another_type_is_refused(changes: dict[str, Any]) -> None:
    """The error names the field."""
    with pytest.raises(MalformedInputError) as refusal:
        evolve(GOOD, **changes)

    assert [refusal.value.field] == list(changes)


def test_a_name_that_is_no_text_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(MalformedInputError, match="topic_name: expected str"):
        check_topic_name(None)  # type: ignore[arg-type] # that is the point
