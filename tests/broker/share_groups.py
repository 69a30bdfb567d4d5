"""A share group of its own for tests, beside the records that a broker's group coordinator writes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from sharestate.broker.groups.records import GroupRecord, GroupRecordType, StatePartitionMetadataValue, decode_record
from sharestate.persister import PartitionIdLeaderEpochData, ReadSummaryParameters
from sharestate.persister.kafka import KafkaPersister
from sharestate.segments import LogReader
from sharestate.testing.servers import RawConnection
from sharestate.testing.servers.raw_members import JOIN, Beat, Membership, heartbeat
from tests.broker import group_requests
from tests.broker.group_requests import Description
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure

INTERVAL: Final = "share.assignment.interval.ms"
PARTITIONS: Final = 3
"""Of a topic, unless it grows."""

TYPES: Final = frozenset(map(int, GroupRecordType))


class Group:
    """
    A group of its own, with a topic of its own.

    Attributes:
        broker: The broker.
        group_id: The group.
        topic: The name of the topic.
        topic_id: Its id.
        to: The connection on which everything is asked.
    """

    def __init__(
        self,
        broker: KafkaBroker,
        to: RawConnection,
        topic: tuple[str, str],
        config: Mapping[str, str] = MappingProxyType({}),
        group_id: str | None = None,
    ) -> None:
        """Set the configs of the group, whose topic has this name and id."""
        self.broker, self.to = broker, to
        self.topic, self.topic_id = topic
        self.group_id = group_id or f"group-of-{self.topic}"
        configure(broker, self.group_id, {"share.auto.offset.reset": "latest", INTERVAL: "0", **config})

    def beat(self, member_id: str, epoch: int) -> Beat:
        """Return the answer to a heartbeat of a member, with the topic if it joins."""
        return heartbeat(self.to, self.group_id, member_id, epoch, [self.topic] if epoch == JOIN else None)

    def describe(self) -> Description:
        """Return what the broker says of the group."""
        return group_requests.describe(self.to, self.group_id)

    def records(self) -> list[GroupRecord]:
        """Return what is written of the group."""
        return [record for _, _, record in written(self.broker) if record.key.group_id == self.group_id]

    def is_initialized(self, partitions: int = PARTITIONS, topic_id: str | None = None) -> bool:
        """Return whether so many partitions of the topic, or of another one, have a state."""
        values = [record.value for record in self.records() if isinstance(record.value, StatePartitionMetadataValue)]
        topics = {topic.topic_id: topic.partitions for topic in values[-1].initialized_topics} if values else {}
        return len(topics.get(topic_id or self.topic_id, ())) == partitions

    def wait_until_initialized(self, partitions: int = PARTITIONS, topic_id: str | None = None) -> None:
        """Return when so many partitions of the topic, or of another one, have a state."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not self.is_initialized(partitions, topic_id):
            assert time.monotonic() < give_up_s, self.records()
            time.sleep(0.05)

    def start_offsets(self, partitions: int) -> list[int]:
        """Return the start offsets that the share coordinator has of the topic."""
        request = ReadSummaryParameters.of(
            self.group_id, self.topic_id, *(PartitionIdLeaderEpochData(partition=at) for at in range(partitions))
        )
        with KafkaPersister(self.broker.address) as persister:
            result = persister.read_summary(request).result(PATIENCE_S)
        found = [result.find(self.topic_id, at) for at in range(partitions)]
        return [entry.start_offset for entry in found if entry]


def written(broker: KafkaBroker) -> Iterator[tuple[bytes, bytes | None, GroupRecord]]:
    """Yield the records of share groups that a broker has written: their bytes, and what they say."""
    for batch in LogReader(broker.log_dir / "__consumer_offsets-0"):
        for record in batch.records():
            if record.key is not None and int.from_bytes(record.key[:2]) in TYPES:
                yield record.key, record.value, decode_record(record.key, record.value)


def kinds(records: list[GroupRecord]) -> list[GroupRecordType]:
    """Return the types of records."""
    return [record.key.type for record in records]


@contextmanager
def connected(broker: KafkaBroker) -> Iterator[RawConnection]:
    """Connect to a broker, which is the coordinator by now."""
    connection = RawConnection(broker.address, "tests")
    try:
        give_up_s = time.monotonic() + PATIENCE_S
        while Membership("any", []).coordinator(connection)[0] != "none":
            assert time.monotonic() < give_up_s
            time.sleep(0.1)
        yield connection
    finally:
        connection.close()


def known_topics(broker: KafkaBroker, to: RawConnection, name: str, count: int) -> list[tuple[str, str]]:
    """
    Make topics, and return their names and ids when the coordinator knows them, which is not at once.

    One group is looked at whose topic is made last: the coordinator hears of all in their order.
    """
    made = [(topic, broker.create_topic(topic, PARTITIONS)) for topic in map(f"{name}-{{}}".format, range(count + 1))]
    last = Group(broker, to, made.pop())
    give_up_s = time.monotonic() + PATIENCE_S
    while not last.is_initialized():
        assert last.beat("scout", JOIN).error == "none"
        assert time.monotonic() < give_up_s
        time.sleep(0.1)
    return made
