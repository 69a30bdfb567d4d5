"""Requests about topics; expected values are those of ControllerApis and KafkaApis (Kafka 4.4)."""

from __future__ import annotations

import pytest

from sharestate.broker.node import (
    AlterTopicConfigsRequest,
    CreatableTopic,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    LogService,
    MetadataRequest,
    TopicResult,
    TopicsResponse,
)
from sharestate.errors import ErrorCode
from tests.support.log_nodes import LogNode


def test_topics_are_made() -> None:
    """Each for itself; names that come twice, and the controller's own topic, are refused."""
    service = LogService()
    names = ["a", "b b", "a.b", "twice", "twice", "__cluster_metadata"]
    response = service.answer(CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names]), now_ms=0)

    assert isinstance(response, TopicsResponse)
    assert [(each.name, each.error_code, each.message) for each in response.topics if each.name != "b b"] == [
        ("a", ErrorCode.NONE, None),
        ("a.b", ErrorCode.NONE, None),
        ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ]
    assert response.topics[1].error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [topic.name for topic in service.topics] == ["a", "a.b"]


def test_a_request_makes_so_many_partitions() -> None:
    """More than 10,000 refuse the whole of it (ReplicationControlManager.validateTotalNumberOfPartitions)."""
    service = LogService()
    topics = [CreatableTopic(name="a", partition_count=9_999), CreatableTopic(name="b")]
    service.topic_service.create(CreateTopicsRequest(topics=topics))
    assert len(service.topics) == 2

    refused = [CreatableTopic(name="c", partition_count=9_999), CreatableTopic(name="d", partition_count=2)]
    response = service.topic_service.create(CreateTopicsRequest(topics=refused))
    assert {each.error_code for each in response.topics} == {ErrorCode.POLICY_VIOLATION}
    assert len(service.topics) == 2


def test_configs_that_are_refused_are_answered() -> None:
    """With INVALID_CONFIG and Kafka's text; and what is only validated is not made."""
    service = LogService()
    create = service.topic_service.create
    refused = create(CreateTopicsRequest(topics=[CreatableTopic(name="a", configs={"x": "y"})])).topics[0]
    assert (refused.error_code, refused.message) == (ErrorCode.INVALID_CONFIG, "Unknown topic config name: x")

    create(CreateTopicsRequest(topics=[CreatableTopic(name="a")], validate_only=True))
    assert len(service.topics) == 0


def test_topics_are_deleted_with_their_records() -> None:
    """By name or id; a topic that is made again is empty (ControllerApis.deleteTopics)."""
    node = LogNode()
    node.put()
    other = node.topics.create("u")
    node.topics.create("v")
    request = DeleteTopicsRequest(names=["t", "u", "w", "v", "v"], topic_ids=[other.topic_id, "x", "y", "y"])
    response = node.topic_service.delete(request)

    assert [(each.name, each.topic_id, each.error_code) for each in response.topics] == [
        ("t", node.topic_id, ErrorCode.NONE),
        ("u", None, ErrorCode.INVALID_REQUEST),
        ("w", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("v", None, ErrorCode.INVALID_REQUEST),
        (None, "x", ErrorCode.UNKNOWN_TOPIC_ID),
        (None, "y", ErrorCode.INVALID_REQUEST),
    ]
    assert [topic.name for topic in node.topics] == ["u", "v"]
    assert (node.log(node.topic_id, 0), node.take_changes()) == (None, ())
    node.topic_service.delete(DeleteTopicsRequest(topic_ids=[other.topic_id]))
    assert [topic.name for topic in node.topics] == ["v"]
    again = node.topics.create("t").topic_id
    assert again != node.topic_id
    log = node.log(again, 0)
    assert log is not None
    assert log.high_watermark == 0


def test_topics_get_more_partitions() -> None:
    """What is there stays, and the new ones are empty."""
    node = LogNode()
    node.put(partition=1)
    assert node.log(node.topic_id, 2) is None
    request = CreatePartitionsRequest(topics=[("t", 3), ("u", 1), ("v", 1), ("v", 2)])
    response = node.topic_service.create_partitions(request)

    assert [(each.name, each.error_code, each.partition_count) for each in response.topics] == [
        ("t", ErrorCode.NONE, 3),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("v", ErrorCode.INVALID_REQUEST, 0),
    ]
    assert [node.of(partition).high_watermark for partition in range(3)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "configs", "error", "message"),
    [
        ("t", {"flush.ms": "5"}, ErrorCode.NONE, None),
        ("t", {"nonsense": "5"}, ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense"),
        ("u", {"nonsense": "5"}, ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense"),
        ("u", {"flush.ms": "5"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist."),
        ("", {}, ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    ],
)
def test_a_topic_gets_other_configs(name: str, configs: dict[str, str], error: ErrorCode, message: str | None) -> None:
    """In the place of those that it has; they are looked at before it is seen whether there is such a topic."""
    service = LogNode(retention_ms="7")

    for validate_only in (True, False):
        request = AlterTopicConfigsRequest(name=name, configs=configs, validate_only=validate_only)
        response = service.answer(request, now_ms=0)
        assert isinstance(response, TopicsResponse)
        assert [(each.name, each.error_code, each.message) for each in response.topics] == [(name, error, message)]
        topic = service.topics.by_name("t")
        assert topic is not None
        assert topic.configs == (configs if not error and not validate_only else {"retention.ms": "7"})


def test_metadata_describes_topics() -> None:
    """All, by name, or by id (KafkaApis.handleTopicMetadataRequest)."""
    node = LogNode()
    known = TopicResult("t", node.topic_id, partition_count=2)
    describe = node.topic_service.describe

    assert describe(MetadataRequest()).topics == (known,)
    assert describe(MetadataRequest(topic_ids=[node.topic_id, "x"], names=["u"])).topics == (
        known,
        TopicResult(None, "x", ErrorCode.UNKNOWN_TOPIC_ID),
    )
    assert describe(MetadataRequest(names=["t", "a b", "u"], allow_auto_topic_creation=False)).topics == (
        known,
        TopicResult("a b", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION),
        TopicResult("u", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )
    assert len(node.topics) == 1


def test_metadata_makes_topics() -> None:
    """Clients are told that there is none, and ask again; unless the node does not allow it."""
    service = LogService()
    asked = MetadataRequest(names=["u"])
    answers = [service.topic_service.describe(asked).topics[0] for _ in range(2)]
    assert [each.error_code for each in answers] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]

    service = LogService(auto_create_topics_enable=False)
    service.topic_service.describe(asked)
    assert len(service.topics) == 0
