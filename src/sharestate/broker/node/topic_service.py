"""Requests about topics: what a node's controller, and its metadata, answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from sharestate.broker.node.topic_configs import read_topic_configs
from sharestate.broker.node.topic_requests import (
    AlterTopicConfigsRequest,
    CreatableTopic,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    TopicResult,
    TopicsResponse,
)
from sharestate.broker.node.topics import MAX_PARTITIONS_PER_REQUEST, USE_DEFAULT, Topic, Topics, invalid_name
from sharestate.errors import ErrorCode, InvalidConfigurationError, NodeError

T = TypeVar("T")

_METADATA_TOPIC: Final = "__cluster_metadata"
"""The controller's own topic, which nobody makes (Topic.CLUSTER_METADATA_TOPIC_NAME, Kafka 4.4)."""

_DUPLICATE: Final = "Duplicate topic name."


class TopicService:
    """
    Answers requests about topics.

    Args:
        topics: The topics.
        auto_create_topics_enable: Whether Metadata may make topics (``auto.create.topics.enable``).
        deleted: Called with each topic that was deleted.
    """

    def __init__(self, topics: Topics, *, auto_create_topics_enable: bool, deleted: Callable[[Topic], None]) -> None:
        """Answer for *topics*."""
        self.topics = topics
        self._auto_create_topics_enable = auto_create_topics_enable
        self._deleted = deleted

    def create(self, request: CreateTopicsRequest) -> TopicsResponse:
        """
        Make topics.

        Source:
            ControllerApis.createTopics, ReplicationControlManager.createTopics (Kafka 4.4).
        """
        default = self.topics.default_partition_count
        counts = [default if each.partition_count == USE_DEFAULT else each.partition_count for each in request.topics]
        if sum(max(count, 0) for count in counts) > MAX_PARTITIONS_PER_REQUEST:
            error = ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
            return TopicsResponse(tuple(TopicResult(each.name, None, *error) for each in request.topics))
        duplicates = repeated(each.name for each in request.topics)

        def create(asked: CreatableTopic) -> Topic:
            return self.topics.create(
                asked.name,
                asked.partition_count,
                replication_factor=asked.replication_factor,
                configs=asked.configs,
                topic_id=asked.topic_id,
                validate_only=request.validate_only,
            )

        return TopicsResponse(
            tuple(
                _refused(name, _DUPLICATE)
                if name in duplicates
                else _refused(name, f"Creation of internal topic {name} is prohibited.")
                if name == _METADATA_TOPIC
                else _topic_result(name, lambda asked=asked: create(asked))  # type: ignore[misc]
                for name, asked in {asked.name: asked for asked in request.topics}.items()
            )
        )

    def delete(self, request: DeleteTopicsRequest) -> TopicsResponse:
        """
        Delete topics, with all that is in them.

        Source:
            ControllerApis.deleteTopics (Kafka 4.4).
        """
        twice = repeated(request.names), repeated(request.topic_ids)
        by_id = {topic_id: self.topics.name_of(topic_id) for topic_id in request.topic_ids}
        results = [
            _refused(name, _DUPLICATE)
            if name in twice[0]
            else _refused(name, "The provided topic name maps to an ID that was already supplied.")
            if name in by_id.values()
            else _topic_result(name, lambda name=name: self._delete(name))  # type: ignore[misc]
            for name in dict.fromkeys(request.names)
        ]
        for topic_id, name in by_id.items():
            if topic_id in twice[1]:
                results.append(TopicResult(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."))
            elif name is None:
                results.append(TopicResult(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
            elif name not in request.names:
                results.append(_topic_result(name, lambda name=name: self._delete(name)))  # type: ignore[misc]
        return TopicsResponse(tuple(results))

    def create_partitions(self, request: CreatePartitionsRequest) -> TopicsResponse:
        """
        Give topics more partitions.

        Source:
            ControllerApis.createPartitions (Kafka 4.4).
        """
        duplicates = repeated(name for name, _ in request.topics)
        grow = self.topics.grow
        return TopicsResponse(
            tuple(
                _refused(name, _DUPLICATE)
                if name in duplicates
                else _topic_result(
                    name,
                    lambda name=name, count=count: grow(name, count, validate_only=request.validate_only),  # type: ignore[misc]
                )
                for name, count in dict(request.topics).items()
            )
        )

    def alter_configs(self, request: AlterTopicConfigsRequest) -> TopicsResponse:
        """
        Give a topic other configs.

        Source:
            ConfigurationControlManager.validateAlterConfig, ConfigResourceExistenceChecker (Kafka 4.4): first the
            configs are looked at, then whether there is such a topic.
        """
        name = request.name
        return TopicsResponse((_topic_result(name, lambda: self._alter_configs(request)),))

    def describe(self, request: MetadataRequest) -> TopicsResponse:
        """
        Describe topics, and make those that there are not: the answer says that there were none, and clients ask again.

        Source:
            KafkaApis.handleTopicMetadataRequest, DefaultAutoTopicCreationManager (Kafka 4.4).
        """
        if request.topic_ids:
            known = {topic_id: self.topics.by_id(topic_id) for topic_id in request.topic_ids}
            return TopicsResponse(
                tuple(
                    TopicResult(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID) if topic is None else _described(topic)
                    for topic_id, topic in known.items()
                )
            )
        if request.names is None:
            return TopicsResponse(tuple(map(_described, self.topics)))
        may_create = request.allow_auto_topic_creation and self._auto_create_topics_enable
        return TopicsResponse(
            tuple(self._metadata_of(name, may_create=may_create) for name in dict.fromkeys(request.names))
        )

    def _alter_configs(self, request: AlterTopicConfigsRequest) -> Topic:
        if (reason := invalid_name(request.name)) is not None:
            message = f"Topic name is invalid: {reason}"
            raise NodeError(message, ErrorCode.INVALID_TOPIC_EXCEPTION)
        read_topic_configs(request.configs)
        topic = self.topics.by_name(request.name)
        if topic is None:
            message = f"The topic '{request.name}' does not exist."
            raise NodeError(message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic if request.validate_only else self.topics.configure(request.name, request.configs)

    def _delete(self, name: str) -> Topic:
        topic = self.topics.delete(name)
        self._deleted(topic)
        return topic

    def _metadata_of(self, name: str, *, may_create: bool) -> TopicResult:
        topic = self.topics.by_name(name)
        if topic is not None:
            return _described(topic)
        if invalid_name(name) is not None:
            return TopicResult(name, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
        if may_create:
            _topic_result(name, lambda: self.topics.create(name))
        return TopicResult(name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def repeated(values: Iterable[T]) -> set[T]:
    """Return those of *values* that are there more than once."""
    return {value for value, count in Counter(values).items() if count > 1}


def _refused(name: str, message: str) -> TopicResult:
    return TopicResult(name, None, ErrorCode.INVALID_REQUEST, message)


def _described(topic: Topic) -> TopicResult:
    return TopicResult(topic.name, topic.topic_id, partition_count=topic.partition_count, is_internal=topic.is_internal)


def _topic_result(name: str, command: Callable[[], Topic]) -> TopicResult:
    """Return what became of a topic."""
    try:
        return _described(command())
    except (NodeError, InvalidConfigurationError) as refused:
        return TopicResult(name, None, refused.code, refused.message)
