"""What administrators do to topics and share groups of a broker: delete, grow, reset, make again, describe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse

from tests.broker import group_requests
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import KafkaCluster

PATIENCE_S: Final = 30
"""How long something may be refused; a group is empty only when its last member has left or is forgotten. [s]"""

_CreatePartitions: Any = CreatePartitionsRequest
_GrownTopic: Any = CreatePartitionsTopic
_DeleteTopics: Any = DeleteTopicsRequest
_TopicState: Any = DeleteTopicState


def delete_topic(broker: KafkaBroker | KafkaCluster, name: str) -> None:
    """Delete a topic."""

    def deleted() -> set[str]:
        state = _TopicState(name=name, topic_id=None)
        request = _DeleteTopics(topics=(state,), timeout=timedelta(seconds=30))
        return {topic.error_code.name for topic in broker.ask(request, DeleteTopicsResponse).responses}

    _until_done(deleted)


def grow_topic(broker: KafkaBroker | KafkaCluster, name: str, partitions: int) -> None:
    """Give a topic more partitions, so that it has as many as said."""
    topic = _GrownTopic(name=name, count=partitions, assignments=None)
    request = _CreatePartitions(topics=(topic,), timeout=timedelta(seconds=30), validate_only=False)
    (grown,) = broker.ask(request, CreatePartitionsResponse).results
    assert grown.error_code == 0, grown


def reset_offsets(broker: KafkaBroker | KafkaCluster, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Let an empty group begin at other offsets of a topic, by partition."""

    def altered() -> set[str]:
        error, topics = group_requests.alter_offsets(broker, group_id, {topic: offsets})
        return {error}.union(*topics.values())

    _until_done(altered)


def delete_offsets(broker: KafkaBroker | KafkaCluster, group_id: str, topic: str) -> None:
    """Delete what is kept of a topic for an empty group."""

    def deleted() -> set[str]:
        error, topics = group_requests.delete_offsets(broker, group_id, [topic])
        return {error, *topics.values()}

    _until_done(deleted)


def delete_group(broker: KafkaBroker | KafkaCluster, group_id: str) -> None:
    """Delete an empty group."""
    _until_done(lambda: {group_requests.delete_group(broker, group_id)})


def describe_groups(broker: KafkaBroker | KafkaCluster) -> str:
    """Return what ``kafka-configs.sh --describe --entity-type groups`` prints."""
    return broker.tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", broker.address, "--describe", "--entity-type", "groups"
    )


def _until_done(ask: Callable[[], set[str]]) -> None:
    """Ask again as long as there is an error."""
    give_up_s = time.monotonic() + PATIENCE_S
    while errors := ask() - {"none"}:
        assert time.monotonic() < give_up_s, errors
        time.sleep(0.3)
