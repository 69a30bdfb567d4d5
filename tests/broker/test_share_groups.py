"""Members of share groups beside a broker's group coordinator: what it answers, and the records that it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Final, Literal, NamedTuple

import pytest

from sharestate.broker.groups.metadata_hash import metadata_hash, topic_hash
from sharestate.broker.groups.records import (
    GroupMetadataValue,
    GroupRecord,
    GroupRecordType,
    StatePartitionMetadataValue,
    TargetAssignmentMetadataValue,
    decode_record,
    encode_record,
)
from sharestate.persister import PartitionIdLeaderEpochData, ReadSummaryParameters
from sharestate.persister.kafka import KafkaPersister
from sharestate.segments import LogReader
from tests.broker import group_requests
from tests.broker.administration import delete_topic, grow_topic
from tests.broker.group_requests import JOIN, LEAVE, Beat, Description, heartbeat, partitions_of
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure, produce
from tests.broker.notes import nobody
from tests.broker.raw_members import Membership
from tests.broker.share_sessions import RawConnection, ShareSession

pytestmark = pytest.mark.broker

RACK: Final = "rack-1"
"""Of the broker (``SETTINGS``)."""

MEMBERS: Final = 10
"""How many a group may have (``SETTINGS``)."""

MEMBER, GROUP, TARGET_EPOCH, TARGET, CURRENT, STATE = GroupRecordType
_NUMBERS: Final = count()


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

    def __init__(self, broker: KafkaBroker, to: RawConnection, partitions: int, config: Mapping[str, str]) -> None:
        """Make the topic, and set the configs of the group."""
        number = next(_NUMBERS)
        self.broker, self.to = broker, to
        self.group_id, self.topic = f"group-{number}", f"topic-{number}"
        self.topic_id = broker.create_topic(self.topic, partitions)
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

    def wait_for(self, holds: Callable[[list[GroupRecord]], bool]) -> list[GroupRecord]:
        """Return what is written of the group as soon as *holds* is true of it."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not holds(records := self.records()):
            assert time.monotonic() < give_up_s, records
            time.sleep(0.05)
        return records

    def wait_until_initialized(self, partitions: int) -> None:
        """Return when so many partitions of the topic have a state."""

        def holds(records: list[GroupRecord]) -> bool:
            values = [record.value for record in records if isinstance(record.value, StatePartitionMetadataValue)]
            topics = {topic.topic_id: topic for topic in values[-1].initialized_topics} if values else {}
            return self.topic_id in topics and len(topics[self.topic_id].partitions) == partitions

        self.wait_for(holds)

    def start_offsets(self, partitions: int) -> list[int]:
        """Return the start offsets that the share coordinator has of the topic."""
        request = ReadSummaryParameters.of(
            self.group_id, self.topic_id, *(PartitionIdLeaderEpochData(partition=at) for at in range(partitions))
        )
        with KafkaPersister(self.broker.address) as persister:
            result = persister.read_summary(request).result(PATIENCE_S)
        found = [result.find(self.topic_id, at) for at in range(partitions)]
        return [entry.start_offset for entry in found if entry]


INTERVAL: Final = "share.assignment.interval.ms"
TIMEOUT: Final = "share.session.timeout.ms"


def written(broker: KafkaBroker) -> Iterator[tuple[bytes, bytes | None, GroupRecord]]:
    """Yield the records of share groups that a broker has written: their bytes, and what they say."""
    for batch in LogReader(broker.log_dir / "__consumer_offsets-0"):
        for record in batch.records():
            if int.from_bytes(record.key[:2]) in GroupRecordType:
                yield record.key, record.value, decode_record(record.key, record.value)


def kinds(records: list[GroupRecord]) -> list[GroupRecordType]:
    """Return the types of records."""
    return [record.key.type for record in records]


@pytest.fixture(scope="module")
def to(broker: KafkaBroker) -> Iterator[RawConnection]:
    """A connection to the broker, which is the coordinator by now."""
    connection = RawConnection(broker.address, "tests")
    give_up_s = time.monotonic() + PATIENCE_S
    while Membership("any", [], None, nobody).coordinator(connection)[0] != "none":
        assert time.monotonic() < give_up_s
        time.sleep(0.1)
    yield connection
    connection.close()
