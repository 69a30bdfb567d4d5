"""What administrators do to topics and share groups of a broker: delete, reset, make again, describe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from kio.schema.alter_share_group_offsets.v0 import request as alter_schema
from kio.schema.alter_share_group_offsets.v0.response import AlterShareGroupOffsetsResponse
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.delete_share_group_offsets.v0 import request as delete_schema
from kio.schema.delete_share_group_offsets.v0.response import DeleteShareGroupOffsetsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse

from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import KafkaCluster

PATIENCE_S: Final = 30
"""How long something may be refused; a group is empty only when its last member has left or is forgotten. [s]"""

_AlterOffsets: Any = alter_schema.AlterShareGroupOffsetsRequest
_AlteredTopic: Any = alter_schema.AlterShareGroupOffsetsRequestTopic
_AlteredPartition: Any = alter_schema.AlterShareGroupOffsetsRequestPartition
_DeleteOffsets: Any = delete_schema.DeleteShareGroupOffsetsRequest
_DeletedTopic: Any = delete_schema.DeleteShareGroupOffsetsRequestTopic
_DeleteGroups: Any = DeleteGroupsRequest
_DeleteTopics: Any = DeleteTopicsRequest
_TopicState: Any = DeleteTopicState


def delete_topic(broker: KafkaBroker | KafkaCluster, name: str) -> None:
    """Delete a topic."""

    def deleted() -> set[str]:
        state = _TopicState(name=name, topic_id=None)
        request = _DeleteTopics(topics=(state,), timeout=timedelta(seconds=30))
        return {topic.error_code.name for topic in broker.ask(request, DeleteTopicsResponse).responses}

    _until_done(deleted)


def reset_offsets(broker: KafkaBroker | KafkaCluster, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Let an empty group begin at other offsets of a topic, by partition."""

    def altered() -> set[str]:
        partitions = tuple(_AlteredPartition(partition_index=at, start_offset=offset) for at, offset in offsets.items())
        request = _AlterOffsets(group_id=group_id, topics=(_AlteredTopic(topic_name=topic, partitions=partitions),))
        answer = broker.ask(request, AlterShareGroupOffsetsResponse)
        parts = {part.error_code.name for each in answer.responses for part in each.partitions}
        return {answer.error_code.name} | parts

    _until_done(altered)


def delete_offsets(broker: KafkaBroker | KafkaCluster, group_id: str, topic: str) -> None:
    """Delete what is kept of a topic for an empty group."""

    def deleted() -> set[str]:
        request = _DeleteOffsets(group_id=group_id, topics=(_DeletedTopic(topic_name=topic),))
        answer = broker.ask(request, DeleteShareGroupOffsetsResponse)
        return {answer.error_code.name, *(each.error_code.name for each in answer.responses)}

    _until_done(deleted)


def delete_group(broker: KafkaBroker | KafkaCluster, group_id: str) -> None:
    """Delete an empty group."""

    def deleted() -> set[str]:
        answer = broker.ask(_DeleteGroups(groups_names=(group_id,)), DeleteGroupsResponse)
        return {result.error_code.name for result in answer.results}

    _until_done(deleted)


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
