"""Members of share groups beside a broker's group coordinator: what it answers, and the records that it writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sharestate.broker.groups.metadata_hash import NO_TOPICS, metadata_hash, topic_hash
from sharestate.broker.groups.records import (
    GroupMetadataValue,
    GroupRecordType,
    StatePartitionMetadataValue,
    TargetAssignmentMetadataValue,
    encode_record,
)
from sharestate.testing.servers import FetchLimits, RawConnection, RawShareSession
from sharestate.testing.servers.raw_members import JOIN, LEAVE, Beat, heartbeat, partitions_of
from tests.broker import group_requests
from tests.broker.administration import delete_topic, grow_topic
from tests.broker.conftest import RACK, RELEASES, SETTINGS, running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure, produce
from tests.broker.share_groups import INTERVAL, Group, connected, kinds, known_topics, written

pytestmark = pytest.mark.broker

MEMBERS: Final = 10
"""How many a group may have (``SETTINGS``)."""

TIMEOUT: Final = "share.session.timeout.ms"
TOPICS: Final = 15
"""How many are made before the first test."""

COMPLETED: Final = "Completed request:"
INITIALIZE: Final = '"requestApiKeyName":"INITIALIZE_SHARE_GROUP_STATE"'
MEMBER, GROUP, TARGET_EPOCH, TARGET, CURRENT, STATE = GroupRecordType


@pytest.fixture(scope="module")
def to(broker: KafkaBroker) -> Iterator[RawConnection]:
    """A connection to the broker, which is the coordinator."""
    with connected(broker) as connection:
        yield connection


@pytest.fixture(scope="module")
def topics(broker: KafkaBroker, to: RawConnection) -> Iterator[tuple[str, str]]:
    """The names and ids of topics that the coordinator knows."""
    return iter(known_topics(broker, to, "parcels", TOPICS))


@pytest.fixture
def group(broker: KafkaBroker, to: RawConnection, topics: Iterator[tuple[str, str]]) -> Group:
    """A group without members, and a topic with three partitions."""
    return Group(broker, to, next(topics))


@pytest.fixture
def member(group: Group) -> Group:
    """A group with a member A, of epoch 3, that has all partitions; its epoch before was 2."""
    assert group.beat("A", JOIN) == Beat("none", 2, {})
    group.wait_until_initialized()
    assert group.beat("A", 2) == Beat("none", 3, {group.topic_id: (0, 1, 2)})
    return group


# ---- joining and leaving


def test_a_member_has_partitions_when_they_have_a_state(group: Group) -> None:
    """The first heartbeat brings epoch 2 and nothing else, the one after the initialization epoch 3 and all."""
    assert group.beat("A", JOIN) == Beat("none", 2, {})
    group.wait_until_initialized()
    assigned = group.beat("A", 2)
    unchanged = group.beat("A", 3)

    assert assigned == Beat("none", 3, {group.topic_id: (0, 1, 2)})
    assert unchanged == Beat("none", 3, None)
    joining = [MEMBER, GROUP, TARGET, TARGET_EPOCH, CURRENT, STATE]
    assert kinds(group.records()) == [*joining, STATE, GROUP, TARGET, TARGET_EPOCH, CURRENT]


def test_the_next_heartbeat_brings_what_others_leave(member: Group) -> None:
    """Two members share the partitions; whoever stays has them all, once he asks."""
    first = member.beat("B", JOIN)
    second = member.beat("A", 3)
    assert (first.epoch, second.epoch) == (4, 4)
    assert first.assigned
    assert second.assigned
    assert sorted([*first.assigned[member.topic_id], *second.assigned[member.topic_id]]) == [0, 1, 2]

    left = member.beat("B", LEAVE)
    described = member.describe()
    assert left == Beat("none", LEAVE, None)
    assert (described.epoch, described.assignment_epoch) == (5, 4)
    assert described.members["A"].assigned == second.assigned
    assert member.beat("A", 4) == Beat("none", 5, {member.topic_id: (0, 1, 2)})


def test_a_group_is_described(member: Group) -> None:
    """With its epochs, and each member with its rack, topics and partitions."""
    heartbeat(member.to, member.group_id, "B", JOIN, [member.topic, "nowhere"], "rack-7")

    described = member.describe()
    assert described[:5] == ("none", "Stable", 4, 4, "simple")
    assert {name: each[:3] for name, each in described.members.items()} == {
        "A": (3, None, (member.topic,)),
        "B": (4, "rack-7", ("nowhere", member.topic)),
    }


def test_who_says_nothing_is_forgotten(member: Group) -> None:
    """After the session timeout a member has left, as if it had said so."""
    configure(member.broker, member.group_id, {TIMEOUT: "1000"})
    silent = member.beat("B", JOIN)
    assert silent.epoch == 4
    answer = member.beat("A", 3)
    give_up_s = time.monotonic() + PATIENCE_S
    while answer.epoch < 5:
        assert (answer.error, time.monotonic() < give_up_s) == ("none", True)
        time.sleep(0.2)
        answer = member.beat("A", answer.epoch)

    assert answer == Beat("none", 5, {member.topic_id: (0, 1, 2)})
    assert member.beat("B", silent.epoch) == Beat("unknown_member_id", 0, None)


# ---- refused


BEATS: Final = [
    ("A", 3, "none"),
    ("A", 2, "none"),
    ("A", 4, "fenced_member_epoch"),
    ("A", 1, "fenced_member_epoch"),
    ("A", 0, "none"),
    ("A", -2, "invalid_request"),
    ("B", 3, "unknown_member_id"),
    ("B", -1, "unknown_member_id"),
    ("", 0, "invalid_request"),
]
"""Heartbeats to a group with a member A of epoch 3, which had epoch 2 before, and their errors."""


def test_epochs_are_checked(member: Group) -> None:
    """A member may repeat its epoch and the one before, and join again without having left."""
    assert [(name, epoch, member.beat(name, epoch).error) for name, epoch, _ in BEATS] == BEATS


def test_a_group_that_does_not_exist(group: Group) -> None:
    """Who joins makes it, or who alters its offsets."""
    to, group_id, topic = group.to, group.group_id, group.topic

    assert [group.beat("A", epoch).error for epoch in (1, LEAVE)] == ["group_id_not_found"] * 2
    assert group.describe()[:2] == ("group_id_not_found", "")
    assert group_requests.delete_group(to, group_id) == "group_id_not_found"
    assert group_requests.delete_offsets(to, group_id, [topic]) == ("group_id_not_found", {})
    assert group_requests.start_offsets(to, group_id, {topic: [0]}) == {topic: {0: -1}}
    assert group_requests.alter_offsets(to, group_id, {topic: {0: 7}}) == ("none", {topic: ["none"]})
    assert group.describe()[:4] == ("none", "Empty", 1, 1)
    assert group_requests.start_offsets(to, group_id, {topic: [0]}) == {topic: {0: 7}}


@pytest.mark.parametrize(("topics", "rack_id"), [(None, None), ([], None), (["any"], "")])
def test_who_joins_says_what_he_wants(to: RawConnection, topics: list[str] | None, rack_id: str | None) -> None:
    """Topics, and a rack that has a name or none."""
    assert heartbeat(to, "none-yet", "A", JOIN, topics, rack_id).error == "invalid_request"


def test_a_full_group(group: Group) -> None:
    """It takes nobody else; whoever is in it stays, and makes room by leaving."""
    answers = [group.beat(str(number), JOIN) for number in range(MEMBERS)]
    assert {answer.error for answer in answers} == {"none"}

    assert group.beat("late", JOIN) == Beat("group_max_size_reached", 0, None)
    assert group.beat("0", answers[0].epoch).error == "none"
    assert group.beat("1", LEAVE).error == "none"
    assert group.beat("late", JOIN).error == "none"


# ---- between releases


def test_the_last_to_leave(member: Group) -> None:
    """From 4.4 on it takes the assignment epoch along, and who comes next is assigned at once (R60)."""
    configure(member.broker, member.group_id, {INTERVAL: "15000"})
    known = len(member.records())
    member.beat("A", LEAVE)
    left = member.records()[known:]
    empty = member.describe()
    again = member.beat("A", JOIN)

    healed = member.broker.kafka != "4.3.1"
    assert kinds(left) == [CURRENT, TARGET, MEMBER, GROUP, *[TARGET_EPOCH] * healed]
    assert [record.value for record in left[:4]] == [None, None, None, GroupMetadataValue(4, 0)]
    assert [record.value for record in left[4:]] == [TargetAssignmentMetadataValue(4, 0)] * healed
    assert empty[:4] == ("none", "Empty", 4, 4 if healed else 3)
    assert again == (Beat("none", 5, {member.topic_id: (0, 1, 2)}) if healed else Beat("none", 3, {}))


def test_a_topic_that_grows(member: Group) -> None:
    """From 4.4 on its new partitions are read from the beginning, whatever the group's reset policy (R59)."""
    grow_topic(member.broker, member.topic, 5)
    produce(member.broker, member.topic, 5, partition=4)
    epoch = wait_for_epoch(member, "A", 3, 4)
    member.wait_until_initialized(5)
    is_read = member.broker.kafka != "4.3.1"
    assert member.start_offsets(5) == [-1, -1, -1, *[0 if is_read else -1] * 2]

    assert member.beat("A", epoch) == Beat("none", 5, {member.topic_id: (0, 1, 2, 3, 4)})
    assert (first_delivered(member, 4) == 0) == is_read


@pytest.mark.parametrize("kafka", RELEASES)
def test_a_lost_first_initialization(kafka: str, tmp_path: Path) -> None:
    """
    If it is sent again, a topic that is new to the group is read from the beginning as well, from 4.4 on (B26).

    It is lost here because there is no share coordinator: its topic wants three brokers, until it is made by hand.
    """
    away = {
        "share.coordinator.state.topic.replication.factor": "3",
        "group.share.initialize.retry.interval.ms": "1000",
        "offsets.commit.timeout.ms": "1000",
    }
    with running(kafka, tmp_path, {**SETTINGS, **away}) as broker, connected(broker) as to:
        group = Group(broker, to, ("parcels", broker.create_topic("parcels", 1)))
        states = 0
        give_up_s = time.monotonic() + PATIENCE_S
        while states < 2:
            assert group.beat("A", JOIN).error == "none"
            assert time.monotonic() < give_up_s
            states = kinds(group.records()).count(STATE)
            time.sleep(0.1)
        broker.create_topic("__share_group_state", 3)
        while len(sent := initializations(broker)) < 2:
            assert time.monotonic() < give_up_s
            time.sleep(0.1)

        assert sent == ([(0, -1)] * 2 if kafka == "4.3.1" else [(0, -1), (0, 0)])
        assert group.start_offsets(1) == [sent[-1][1]]


def initializations(broker: KafkaBroker) -> list[tuple[int, int]]:
    """Return the partition and start offset of each InitializeShareGroupState that was answered without an error."""
    lines = broker.request_log.read_text().splitlines()
    logged = (json.loads(line.partition(COMPLETED)[2]) for line in lines if INITIALIZE in line and COMPLETED in line)
    return [
        (partition["partition"], partition["startOffset"])
        for request in logged
        for topic in request["request"]["topics"]
        for partition in topic["partitions"]
        if '"errorCode":0' in json.dumps(request["response"], separators=(",", ":"))
    ]


def wait_for_epoch(group: Group, member_id: str, epoch: int, wanted: int) -> int:
    """Send heartbeats until one brings the wanted epoch, and return it."""
    give_up_s = time.monotonic() + PATIENCE_S
    while epoch < wanted:
        answer = group.beat(member_id, epoch)
        assert answer.error == "none"
        assert time.monotonic() < give_up_s
        epoch = answer.epoch
    return epoch


def first_delivered(group: Group, partition: int) -> int:
    """Return the first offset that a member gets of a partition, to which records are written all the time."""
    session = RawShareSession(group.broker.address, group.group_id, "A")
    wanted = partitions_of({group.topic_id: (partition,)})
    give_up_s = time.monotonic() + PATIENCE_S
    acquired: list[tuple[int, int, int]] = []
    while not acquired:
        assert time.monotonic() < give_up_s
        fetched = session.fetch(wanted, limits=FetchLimits())
        assert fetched.error == "none"
        acquired = fetched.acquired.get(wanted[0], [])
        produce(group.broker, group.topic, 1, partition=partition)
    session.hang_up()
    return acquired[0][0]


# ---- records


def test_records_have_the_brokers_bytes(member: Group) -> None:
    """All that it has written so far, of any group, decoded and encoded again."""
    records = list(written(member.broker))

    assert {record.key.type for _, _, record in records} == set(GroupRecordType)
    assert [encode_record(record) for _, _, record in records] == [(key, value) for key, value, _ in records]


def test_the_hash_is_the_brokers(member: Group, topics: Iterator[tuple[str, str]]) -> None:
    """Of a topic whose broker has a rack, of two such topics, and after one has grown."""
    other, other_id = next(topics)
    heartbeat(member.to, member.group_id, "A", 3, [other, member.topic])
    member.wait_until_initialized(topic_id=other_id)
    assert member.beat("A", 4).epoch == 5
    grow_topic(member.broker, member.topic, 5)
    wait_for_epoch(member, "A", 5, 6)

    def hash_of(name: str, topic_id: str, partitions: int) -> int:
        return topic_hash(name, topic_id=topic_id, partition_racks=[[RACK]] * partitions)

    alone = {member.topic: hash_of(member.topic, member.topic_id, 3)}
    both = {**alone, other: hash_of(other, other_id, 3)}
    grown = {**both, member.topic: hash_of(member.topic, member.topic_id, 5)}
    found = [record.value for record in member.records() if isinstance(record.value, GroupMetadataValue)]
    assert [(value.epoch, value.metadata_hash) for value in found[:5]] == [
        (epoch, metadata_hash(topics)) for epoch, topics in enumerate([alone, alone, both, both, grown], 2)
    ]


# ---- what administrators do


def test_offsets_are_altered_and_deleted(member: Group) -> None:
    """Only of an empty group, and only of what exists; the state epoch is that of the group."""
    to, group_id, topic = member.to, member.group_id, member.topic
    assert group_requests.alter_offsets(to, group_id, {topic: {0: 5}}) == ("non_empty_group", {})
    assert group_requests.delete_offsets(to, group_id, [topic]) == ("non_empty_group", {})
    assert group_requests.delete_group(to, group_id) == "non_empty_group"
    member.beat("A", LEAVE)

    altered = group_requests.alter_offsets(to, group_id, {topic: {0: 5, 7: 1}, "nowhere": {0: 1}})
    assert altered == (
        "none",
        {topic: ["none", "unknown_topic_or_partition"], "nowhere": ["unknown_topic_or_partition"]},
    )
    assert group_requests.start_offsets(to, group_id, None) == {topic: {0: 5, 1: -1, 2: -1}}

    deleted = group_requests.delete_offsets(to, group_id, [topic, "nowhere"])
    assert deleted == ("none", {topic: "none", "nowhere": "unknown_topic_or_partition"})
    assert group_requests.delete_offsets(to, group_id, [topic]) == ("none", {topic: "unknown_topic_or_partition"})
    assert group_requests.start_offsets(to, group_id, None) == {}


def test_a_group_is_deleted(member: Group) -> None:
    """Its state goes first, then all that is known of it."""
    member.beat("A", LEAVE)
    known = len(member.records())

    assert group_requests.delete_group(member.to, member.group_id) == "none"
    assert member.describe().error == "group_id_not_found"
    gone = member.records()[known:]
    assert kinds(gone) == [STATE, TARGET_EPOCH, STATE, GROUP]
    assert [record.value for record in gone[1:]] == [None] * 3
    assert member.start_offsets(3) == [-1, -1, -1]


def test_a_topic_is_deleted(member: Group) -> None:
    """The group forgets its state, and the next heartbeat takes its partitions away."""
    delete_topic(member.broker, member.topic)
    member.wait_until_initialized(0)
    wait_for_epoch(member, "A", 3, 4)

    assert member.describe().members["A"].assigned == {}
    metadata, _, _, _ = member.records()[-4:]
    assert metadata.value == GroupMetadataValue(4, NO_TOPICS)
    states = [record.value for record in member.records() if record.key.type == STATE]
    assert states[-1] == StatePartitionMetadataValue((), (), ())
