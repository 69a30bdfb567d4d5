"""A node with one topic and one group, and members that send it requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from attrs import evolve

from sharestate import AcknowledgementBatch, AutoOffsetReset, InMemoryPersister, Profile, ShareConfig
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    GroupConfig,
    LogRecord,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareBroker,
    ShareFetchRequest,
    ShareFetchResponse,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.values.profiles import LATEST

TOPIC: Final = "orders"
GROUP: Final = "g"

GROUP_CONFIG: Final = GroupConfig(
    share=ShareConfig(auto_offset_reset=AutoOffsetReset.earliest(), record_lock_duration_ms=1000)
)
"""The settings of the group: it starts at the beginning of logs, and locks last a second."""

BATCH_BYTES: Final = 61 + 9
"""What a batch of one record with a key and a value of a byte takes: its overhead, and the record. [bytes]"""


class Node:
    """
    A node with a topic of some partitions, and a group whose state is initialized.

    Attributes:
        broker: The node.
        persister: Its persister.
        topic_id: The topic's id.
        now_ms: The time of the next request. [ms]
    """

    def __init__(
        self,
        partitions: int = 1,
        *,
        profile: Profile = LATEST,
        group: GroupConfig = GROUP_CONFIG,
        **settings: Any,  # noqa: ANN401 - fields of NodeConfig
    ) -> None:
        """Make it at time 0."""
        self.now_ms = 0
        self.persister = InMemoryPersister()
        self.broker = ShareBroker(NodeConfig(profile=profile, group=group, **settings), persister=self.persister)
        self.topic_id = self.create(TOPIC, partitions)
        self.initialize(GROUP, partitions)

    def create(self, name: str, partitions: int = 1) -> str:
        """Make a topic, and return its id."""
        request = CreateTopicsRequest(topics=[CreatableTopic(name=name, partition_count=partitions)])
        self.broker.call(request, now_ms=self.now_ms)
        topic = self.broker.topics.by_name(name)
        assert topic is not None
        return topic.topic_id

    def initialize(self, group_id: str, partitions: int, topic_id: str = "") -> None:
        """Initialize the state of a group, as the group coordinator does."""
        states = [PartitionStateData(partition=partition) for partition in range(partitions)]
        request = InitializeStateParameters.of(group_id, topic_id or self.topic_id, *states)
        self.broker.call(request, now_ms=self.now_ms)

    def produce(self, *counts: int, partition: int = 0, topic_id: str = "") -> None:
        """Append batches of so many records."""
        for count in counts:
            batch = ProducedBatch(records=[LogRecord(b"k", b"v")] * count)
            produced = ProducedPartition(topic_id or self.topic_id, partition, batch)
            self.broker.call(ProduceRequest(partitions=[produced]), now_ms=self.now_ms)

    def taken(self) -> dict[int, Any]:
        """Return the answers that are due, by their numbers."""
        return dict(self.broker.answers())

    def advance(self, ms: int) -> dict[int, Any]:
        """Let time pass, and return the answers that are due, by their numbers."""
        self.now_ms += ms
        return dict(self.broker.advance(self.now_ms))


class Member:
    """
    A member with a connection of its own.

    Attributes:
        epoch: The epoch of its next request.
    """

    def __init__(self, node: Node, name: str = "m1", group_id: str = GROUP) -> None:
        """Begin without a session."""
        self.node, self.name, self.group_id, self.epoch = node, name, group_id, 0

    def fetch(
        self,
        *partitions: int,
        acknowledge: dict[int, Iterable[AcknowledgementBatch]] | None = None,
        **fields: Any,  # noqa: ANN401 - fields of a ShareFetchRequest
    ) -> int:
        """Send a ShareFetch that lists *partitions*, or none, and return its number."""
        batches = acknowledge or {}
        listed = [
            PartitionOfRequest(self.node.topic_id, partition, list(batches.get(partition, ())))
            for partition in dict.fromkeys((*partitions, *batches))
        ]
        request = ShareFetchRequest(
            group_id=self.group_id, member_id=self.name, share_session_epoch=self.epoch, partitions=listed
        )
        self.epoch += 1
        return self.send(evolve(request, **fields))

    def got(self, *partitions: int, **fields: Any) -> ShareFetchResponse:  # noqa: ANN401 - as for fetch
        """Send a ShareFetch that does not wait, and return its answer."""
        number = self.fetch(*partitions, **{"max_wait_ms": 0, **fields})
        response = self.node.taken()[number]
        assert isinstance(response, ShareFetchResponse)
        return response

    def acquired(self, *partitions: int, **fields: Any) -> dict[int, list[tuple[int, ...]]]:  # noqa: ANN401 - as for fetch
        """Send a ShareFetch that does not wait, and return what was acquired, by partition."""
        return acquired(self.got(*partitions, **fields))

    def acknowledge(
        self,
        *batches: AcknowledgementBatch,
        partition: int = 0,
        **fields: Any,  # noqa: ANN401 - fields of a ShareAcknowledgeRequest
    ) -> ShareAcknowledgeResponse:
        """Send a ShareAcknowledge of one partition, and return its answer."""
        number = self.send(self.acknowledgement(*batches, partition=partition, **fields))
        response = self.node.taken()[number]
        assert isinstance(response, ShareAcknowledgeResponse)
        return response

    def acknowledgement(
        self,
        *batches: AcknowledgementBatch,
        partition: int = 0,
        **fields: Any,  # noqa: ANN401 - fields of a ShareAcknowledgeRequest
    ) -> ShareAcknowledgeRequest:
        """Return the next ShareAcknowledge."""
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=self.epoch,
            partitions=[PartitionOfRequest(self.node.topic_id, partition, batches)],
        )
        self.epoch += 1
        return evolve(request, **fields)

    def send(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> int:
        """Send a request, and return its number."""
        return self.node.broker.send(request, connection_id=self.name, now_ms=self.node.now_ms)

    def disconnect(self) -> None:
        """End the connection."""
        self.node.broker.disconnect(self.name, self.node.now_ms)
        self.epoch = 0


def acquired(response: ShareFetchResponse) -> dict[int, list[tuple[int, ...]]]:
    """Return what was acquired, by partition, in the order of the response."""
    return {each.partition: list(map(tuple, each.acquired_records)) for each in response.partitions}
