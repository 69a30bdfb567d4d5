"""A broker with a topic and a group, and members that fetch and acknowledge over its socket, one request at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    LogRecord,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareBroker,
)
from sharestate.broker.server import TestBroker
from sharestate.persister import InitializeStateParameters, PartitionStateData
from tests.support.wire_client import WireClient, id_of, uuid_of

GROUP: Final = "g"
TOPIC: Final = "orders"

SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 78, 79
VERSION: Final = 2

ACCEPT, RELEASE, REJECT = 1, 2, 3


def filled(broker: TestBroker, count: int, *, topic: str = TOPIC, group_id: str = GROUP, partition: int = 0) -> str:
    """
    Have *count* records written, each a batch, and a group begin at the first; return the topic's id.

    A topic that there is not is made, with one partition.
    """

    def fill(node: ShareBroker) -> str:
        now_ms = broker.now_ms
        if node.topics.by_name(topic) is None:
            node.call(CreateTopicsRequest(topics=[CreatableTopic(name=topic)]), now_ms=now_ms)
        made = node.topics.by_name(topic)
        assert made is not None
        for number in range(count):
            batch = ProducedBatch(records=[LogRecord(b"key", b"%d" % number)])
            place = ProducedPartition(made.topic_id, partition, batch)
            node.call(ProduceRequest(partitions=[place]), now_ms=now_ms)
        state = PartitionStateData(partition=partition, start_offset=0)
        begin = InitializeStateParameters.of(group_id, made.topic_id, state)
        node.send(begin, connection_id="", now_ms=now_ms)  # it may take its time, and comes before the read
        return made.topic_id

    return broker.run(fill)


class WireMember(WireClient):
    """
    A member of a group, with a connection of its own.

    Args:
        broker: The broker.
        topic_id: The topic, of which it fetches partition 0.
        group_id: Its group.
    """

    def __init__(self, broker: TestBroker, topic_id: str, group_id: str = GROUP) -> None:
        """Connect."""
        super().__init__(broker.port)
        self.member_id = id_of(uuid4())
        self._topic: UUID = uuid_of(topic_id)
        self._group_id = group_id
        self._epoch = 0

    def begin_fetch(self, *, max_wait_ms: int = 0, acknowledge: tuple[Any, ...] = (), max_records: int = 500) -> None:
        """Send a ShareFetch; *acknowledge* has ranges, each with the type."""
        partition = {"partition_index": 0, "acknowledgement_batches": batches_of(acknowledge)}
        self.request(
            SHARE_FETCH,
            VERSION,
            group_id=self._group_id,
            member_id=self.member_id,
            share_session_epoch=self._epoch,
            max_wait=timedelta(milliseconds=max_wait_ms),
            min_bytes=1,
            max_bytes=2**20,
            max_records=max_records,
            batch_size=max_records,
            topics=[{"topic_id": self._topic, "partitions": [partition]}],
        )
        self._epoch += 1

    def end_fetch(self) -> Any:  # noqa: ANN401 - a class of kio
        """Return the answer to the ShareFetch."""
        return self.response(SHARE_FETCH, VERSION)

    def fetch(self, **arguments: Any) -> list[tuple[int, int, int]]:  # noqa: ANN401 - of begin_fetch
        """Fetch, and return what was acquired: ranges with delivery counts."""
        self.begin_fetch(**arguments)
        return acquired_of(self.end_fetch())

    def begin_acknowledge(self, *ranges: tuple[int, int, int]) -> None:
        """Send a ShareAcknowledge of ranges, each with the type."""
        partition = {"partition_index": 0, "acknowledgement_batches": batches_of(ranges)}
        self.request(
            SHARE_ACKNOWLEDGE,
            VERSION,
            group_id=self._group_id,
            member_id=self.member_id,
            share_session_epoch=self._epoch,
            topics=[{"topic_id": self._topic, "partitions": [partition]}],
        )
        self._epoch += 1

    def acknowledge(self, *ranges: tuple[int, int, int]) -> int:
        """Acknowledge ranges, each with the type, and return the error code of the partition."""
        self.begin_acknowledge(*ranges)
        response = self.response(SHARE_ACKNOWLEDGE, VERSION)
        return int(response.error_code or response.responses[0].partitions[0].error_code)

    def beat(self, epoch: int, topics: list[str] | None = None) -> int:
        """Send a heartbeat, with *topics* where they change, and return the epoch that the answer has."""
        asked = {"group_id": self._group_id, "member_id": self.member_id, "member_epoch": epoch}
        names = None if topics is None else tuple(topics)
        return int(self.ask(SHARE_GROUP_HEARTBEAT, 1, **asked, rack_id=None, subscribed_topic_names=names).member_epoch)


def batches_of(ranges: tuple[tuple[int, int, int], ...]) -> list[dict[str, Any]]:
    """Return acknowledgement batches of the wire, one for each range."""
    return [
        {"first_offset": first, "last_offset": last, "acknowledge_types": (type_,)} for first, last, type_ in ranges
    ]


def acquired_of(response: Any) -> list[tuple[int, int, int]]:  # noqa: ANN401 - a class of kio
    """Return what a ShareFetch has acquired: ranges with delivery counts."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in response.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]
