"""What clients ask of a node's topics, and what it answers, as values that mirror the requests of the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from attrs import field, frozen, validators

from sharestate.broker.node.log_batches import MAX_INT16, MAX_INT32
from sharestate.broker.node.topics import USE_DEFAULT
from sharestate.broker.node.transactions import TopicPartition
from sharestate.errors import ErrorCode
from sharestate.values.checks import instance, integer, number, rows, text


def _texts(values: Iterable[str], name: str) -> tuple[str, ...]:
    return tuple(text(value, f"{name}[{index}]") for index, value in enumerate(rows(values, str, name)))


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return _texts(values, "names")


def _names_or_all(values: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if values is None else _names(values)


def _topic_ids(values: Iterable[str]) -> tuple[str, ...]:
    return _texts(values, "topic_ids")


def topic_partitions(values: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """
    Return pairs of a topic's name and a number, the partition's index or how many there are, as a tuple.

    Raises:
        MalformedInputError: They are something else.
    """
    checked = []
    for index, value in enumerate(rows(values, tuple, "partitions")):
        topic, partition = value if len(value) == 2 else (None, None)  # noqa: PLR2004 - a topic and its partition
        where = f"partitions[{index}]"
        checked.append((text(topic, where), integer(partition, where, -(2**31), MAX_INT32)))
    return tuple(checked)


@frozen(kw_only=True)
class CreatableTopic:
    """
    A topic that is to be made; its fields are those of ``Topics.create``, which looks at the configs, too.

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    name: str = field(validator=instance(str))
    partition_count: int = field(default=USE_DEFAULT, validator=number(-(2**31), MAX_INT32))
    replication_factor: int = field(default=USE_DEFAULT, validator=number(-(2**15), MAX_INT16))
    configs: Mapping[str, str] = field(factory=dict)
    topic_id: str | None = field(default=None, validator=validators.optional(instance(str)))


def _creatable_topics(values: Iterable[CreatableTopic]) -> tuple[CreatableTopic, ...]:
    return rows(values, CreatableTopic, "topics")


@frozen(kw_only=True)
class CreateTopicsRequest:
    """
    A CreateTopics (key 19).

    Attributes:
        topics: The topics.
        validate_only: Whether it is only seen if they could be made.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    topics: tuple[CreatableTopic, ...] = field(converter=_creatable_topics)
    validate_only: bool = field(default=False, validator=instance(bool))


class TopicResult(NamedTuple):
    """
    What has become of a topic, or what there is to know of it.

    Attributes:
        name: Its name; None if it is asked for by an id that there is not.
        topic_id: Its id; None if there is no such topic.
        error_code: The error code.
        message: Its text; None without one.
        partition_count: How many partitions it has, 0 after an error. [partitions]
        is_internal: Whether brokers write it for themselves.
    """

    name: str | None
    topic_id: str | None = None
    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    partition_count: int = 0
    is_internal: bool = False


class TopicsResponse(NamedTuple):
    """
    The answer to CreateTopics, DeleteTopics, CreatePartitions and Metadata, and to new configs.

    Attributes:
        topics: What has become of each topic.
    """

    topics: tuple[TopicResult, ...] = ()


@frozen(kw_only=True)
class DeleteTopicsRequest:
    """
    A DeleteTopics (key 20).

    Attributes:
        names: Topics by their names.
        topic_ids: Topics by their ids.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    names: tuple[str, ...] = field(default=(), converter=_names)
    topic_ids: tuple[str, ...] = field(default=(), converter=_topic_ids)


@frozen(kw_only=True)
class CreatePartitionsRequest:
    """
    A CreatePartitions (key 37).

    Attributes:
        topics: Topics, by their names, and how many partitions each is to have.
        validate_only: Whether it is only seen if they could have them.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    topics: tuple[TopicPartition, ...] = field(converter=topic_partitions)
    validate_only: bool = field(default=False, validator=instance(bool))


@frozen(kw_only=True)
class AlterTopicConfigsRequest:
    """
    The configs that a topic is to have, in the place of those that it has: what comes of an IncrementalAlterConfigs.

    Attributes:
        name: The topic's name.
        configs: The texts of its configs, by their names.
        validate_only: Whether it is only seen if it could have them.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    name: str = field(validator=instance(str))
    configs: Mapping[str, str] = field(factory=dict)
    validate_only: bool = field(default=False, validator=instance(bool))


@frozen(kw_only=True)
class MetadataRequest:
    """
    A Metadata (key 3).

    Attributes:
        names: Topics by their names; None for all.
        topic_ids: Topics by their ids. If there are any, *names* are ignored.
        allow_auto_topic_creation: Whether topics that there are not may be made.

    Raises:
        MalformedInputError: A field is of the wrong type.
    """

    names: tuple[str, ...] | None = field(default=None, converter=_names_or_all)
    topic_ids: tuple[str, ...] = field(default=(), converter=_topic_ids)
    allow_auto_topic_creation: bool = field(default=True, validator=instance(bool))
