"""The library's group coordinator beside a broker's: the same requests, the same answers, the same records."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse

from sharestate import ShareStateError
from sharestate.broker.groups import (
    GROUP_PROFILES,
    AlteredOffsets,
    AssignmentOrder,
    ClusterTopic,
    GroupCoordinator,
    GroupCoordinatorSettings,
    GroupEffects,
    OffsetDeletion,
    PartitionOffset,
    ShareGroupHeartbeat,
    TopicOffsets,
    alter_offsets,
    delete_groups,
    delete_offsets,
    describe_groups,
    groups_deleted,
    heartbeat_error,
    offsets_altered,
    offsets_deleted,
)
from sharestate.broker.groups.records import GroupRecord, TargetAssignmentMetadataValue
from sharestate.coordinator.wire import topic_id_text
from sharestate.persister import InMemoryPersister, PartitionErrorData, Result
from sharestate.segments import segment_files
from sharestate.testing.servers import RawConnection
from sharestate.testing.servers.raw_members import JOIN, LEAVE, Beat, heartbeat
from tests.broker import group_requests
from tests.broker.administration import delete_topic, grow_topic
from tests.broker.conftest import RACK, SETTINGS
from tests.broker.group_requests import DescribedMember, Description
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S
from tests.broker.share_groups import PARTITIONS, Group, connected, known_topics, written

pytestmark = pytest.mark.broker

_Metadata: Any = MetadataRequest
PROFILES: Final = {"4.3.1": "kafka-4.3", "4.4.0": "kafka-4.4"}
SEED: Final = int(os.environ.get("SEED", "1"))
STEPS: Final = 150
"""How many requests are drawn. [requests]"""

MEMBERS: Final = ("A", "B", "C", "D")
CLIENT_ID: Final = "tests"
CLIENT_HOST: Final = "/127.0.0.1"
"""Who sends the heartbeats, as a broker sees it (``connected``)."""

GROUP_SETTINGS: Final = GroupCoordinatorSettings(
    max_size=int(SETTINGS["group.share.max.size"]),
    assignment_interval_ms=0,
    initialize_retry_interval_ms=int(SETTINGS["group.share.initialize.retry.interval.ms"]),
    offsets_commit_timeout_ms=int(SETTINGS["offsets.commit.timeout.ms"]),
)


class Beside:
    """
    A group of a broker, and the library's coordinator, which gets the same requests.

    Attributes:
        group: The broker's group.
        coordinator: The library's coordinator.
        records: What the library has written.
    """

    def __init__(self, group: Group, topics: Iterable[tuple[str, str]]) -> None:
        """Begin without members; *topics* are names and ids."""
        self.group = group
        profile = GROUP_PROFILES[PROFILES[group.broker.kafka]]
        self.coordinator = GroupCoordinator(profile, GROUP_SETTINGS, order=AssignmentOrder.JAVA)
        self.coordinator.update_topics(topic(name, topic_id, PARTITIONS) for name, topic_id in topics)
        self.records: list[GroupRecord] = []
        self._persister = InMemoryPersister()

    def heartbeat(
        self, member_id: str, epoch: int, names: Iterable[str] | None = None, rack_id: str | None = None
    ) -> Beat:
        """Send a heartbeat to both, which answer and write the same, and return the answer."""
        names = None if names is None else tuple(names)
        answer = heartbeat(self.group.to, self.group.group_id, member_id, epoch, names, rack_id)
        self.take(answer, member_id, epoch, names, rack_id)
        return answer

    def take(
        self, answer: Beat, member_id: str, epoch: int, names: Iterable[str] | None = None, rack_id: str | None = None
    ) -> None:
        """Let the library have a heartbeat that the broker has answered already."""
        request = ShareGroupHeartbeat(
            group_id=self.group.group_id,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack_id,
            topic_names=names,
            client_id=CLIENT_ID,
            client_host=CLIENT_HOST,
        )
        assert in_order(self._answer(request)) == in_order(answer)
        self.agree()

    def _answer(self, request: ShareGroupHeartbeat) -> Beat:
        refused = heartbeat_error(request)
        if refused:
            return Beat(ErrorCode(refused.error_code).name, 0, None)
        try:
            effects = self.coordinator.heartbeat(request, now_ms())
        except ShareStateError as error:
            return Beat(ErrorCode(error.code).name, 0, None)
        self._told(effects)
        if effects.initialize:
            result = self._persister.initialize_state(effects.initialize).result()
            answered = self._in_order_of_brokers(result)
            self._told(self.coordinator.initialization_answered(effects.initialize, answered, now_ms()))
        return Beat("none", effects.response.member_epoch, effects.response.assignment)

    def _in_order_of_brokers(self, result: Result[PartitionErrorData]) -> Result[PartitionErrorData]:
        """Return an answer with its topics in the order of the map of DefaultStatePersister (Kafka 4.3.1)."""
        topics = {each.topic_id: each for each in result.topics}
        order = self.coordinator.state.tables.order
        return evolve(result, topics=tuple(topics[topic_id] for topic_id in order.of_found_topics(topics)))

    def alter(self, name: str, offsets: Mapping[int, int]) -> None:
        """Alter offsets at both, which answer and write the same."""
        error, topics = group_requests.alter_offsets(self.group.to, self.group.group_id, {name: offsets})
        answers: dict[str, list[str]] = {}
        asked = TopicOffsets(topic_name=name, offsets=tuple(PartitionOffset(*each) for each in offsets.items()))
        try:
            effects = alter_offsets(self.coordinator, self.group.group_id, [asked], now_ms())
        except ShareStateError as refused:
            expected = ErrorCode(refused.code).name
        else:
            expected = "none"
            answers = self._altered(effects)
        assert (error, topics) == (expected, answers)
        self.agree()

    def _altered(self, effects: GroupEffects[AlteredOffsets]) -> dict[str, list[str]]:
        """Initialize what is altered, and return the errors of the topics' partitions."""
        self._told(effects)
        altered = effects.response
        if effects.initialize:
            result = self._persister.initialize_state(effects.initialize).result()
            final = offsets_altered(self.coordinator, altered, effects.initialize, result, now_ms())
            self._told(final)
            altered = final.response
        return {each.topic_name: [ErrorCode(code).name for _, code in each.errors] for each in altered.topics}

    def delete_offsets(self, name: str) -> None:
        """Delete offsets at both, which answer and write the same."""
        error, topics = group_requests.delete_offsets(self.group.to, self.group.group_id, [name])
        answers: dict[str, str] = {}
        try:
            effects = delete_offsets(self.coordinator, self.group.group_id, [name], now_ms())
        except ShareStateError as refused:
            expected = ErrorCode(refused.code).name
        else:
            expected = "none"
            answers = self._deleted(effects)
        assert (error, topics) == (expected, answers)
        self.agree()

    def _deleted(self, effects: GroupEffects[OffsetDeletion]) -> dict[str, str]:
        """Delete the state of topics, and return their errors."""
        self._told(effects)
        deletion = effects.response
        for request in effects.delete:
            result = self._persister.delete_state(request).result()
            final = offsets_deleted(self.coordinator, deletion, request, result, now_ms())
            self._told(final)
            deletion = final.response
        return {name: ErrorCode(code).name for name, code in deletion.errors}

    def delete(self) -> None:
        """Delete the group at both, which answer and write the same."""
        error = group_requests.delete_group(self.group.to, self.group.group_id)
        effects = delete_groups(self.coordinator, [self.group.group_id], now_ms())
        self._told(effects)
        results = {request.group_id: self._persister.delete_state(request).result() for request in effects.delete}
        final = groups_deleted(self.coordinator, effects.response, results, now_ms())
        self._told(final)
        assert {self.group.group_id: error} == {
            group_id: ErrorCode(code).name for group_id, code in final.response.errors.items()
        }
        self.agree()

    def grow(self, name: str, topic_id: str, partitions: int, member_id: str, epoch: int) -> int:
        """Give a topic more partitions, and return the member's epoch when the broker has noticed."""
        grow_topic(self.group.broker, name, partitions)
        give_up_s = time.monotonic() + PATIENCE_S
        while (answer := self.group.beat(member_id, epoch)).epoch == epoch:
            assert time.monotonic() < give_up_s
        self.coordinator.update_topics([topic(name, topic_id, partitions)])
        self.take(answer, member_id, epoch)
        return answer.epoch

    def forget(self, name: str, topic_id: str) -> None:
        """Delete a topic that the group has state of."""
        delete_topic(self.group.broker, name)
        self.coordinator.update_topics(deleted=[topic_id])
        self._told(self.coordinator.forget_topics([topic_id], now_ms()))
        self.agree()

    def _told(self, effects: GroupEffects[Any]) -> None:
        self.records += effects.records
        self.coordinator.committed(len(effects.records))

    def agree(self) -> None:
        """Check that both have written the same, and describe the group alike."""
        give_up_s = time.monotonic() + PATIENCE_S
        while len(found := self.group.records()) < len(self.records):
            assert time.monotonic() < give_up_s, self.records[len(found) :]
            time.sleep(0.01)
        assert [timeless(record) for record in found] == [timeless(record) for record in self.records]
        assert description(self.coordinator, self.group.group_id) == in_any_order(self.group.describe())


def topic(name: str, topic_id: str, partitions: int) -> ClusterTopic:
    """Return a topic of the broker."""
    return ClusterTopic(topic_id=topic_id, name=name, partition_count=partitions, partition_racks=[[RACK]] * partitions)


def now_ms() -> int:
    """Return the time."""
    return time.time_ns() // 1_000_000


def in_order(answer: Beat) -> Beat:
    """Return an answer with partitions that ascend: each class of Java's has an order of its own for them."""
    assigned = answer.assigned
    return answer._replace(assigned=assigned and {each: tuple(sorted(assigned[each])) for each in sorted(assigned)})


def timeless(record: GroupRecord) -> GroupRecord:
    """Return a record without the time of an assignment, but for whether it has one."""
    if isinstance(record.value, TargetAssignmentMetadataValue):
        return evolve(record, value=evolve(record.value, assignment_timestamp=bool(record.value.assignment_timestamp)))
    return record


def description(coordinator: GroupCoordinator, group_id: str) -> Description:
    """Return what the library says of a group, as the wire has it."""
    (group,) = describe_groups(coordinator, [group_id])
    members = {
        each.member_id: DescribedMember(each.epoch, each.rack_id, each.topic_names, each.assigned)
        for each in group.members
    }
    error = ErrorCode(group.error_code).name
    given = Description(error, group.state, group.epoch, group.assignment_epoch, group.assignor, members)
    return in_any_order(given)


def in_any_order(group: Description) -> Description:
    """Return a description with partitions and topics that ascend."""
    members = {
        name: each._replace(
            subscribed=tuple(sorted(each.subscribed)),
            assigned={topic_id: tuple(sorted(numbers)) for topic_id, numbers in each.assigned.items()},
        )
        for name, each in group.members.items()
    }
    return group._replace(members=members)


@pytest.fixture(scope="module")
def to(broker: KafkaBroker) -> Iterator[RawConnection]:
    """A connection to the broker, which is the coordinator."""
    with connected(broker) as connection:
        yield connection


@pytest.fixture(scope="module")
def topics(broker: KafkaBroker, to: RawConnection) -> Iterator[tuple[str, str]]:
    """The names and ids of topics that the coordinator knows."""
    return iter(known_topics(broker, to, "letters", 4))


def test_both_answer_and_write_the_same(
    broker: KafkaBroker, to: RawConnection, topics: Iterator[tuple[str, str]]
) -> None:
    """Members join, stay, change topics and leave, with epochs right and wrong; offsets are altered and deleted."""
    given = [next(topics), next(topics)]
    beside = Beside(Group(broker, to, given[0]), given)
    draw = random.Random(SEED)  # noqa: S311 - no secret
    epochs: dict[str, int] = {}
    for _ in range(STEPS):
        step(beside, draw, [name for name, _ in given], epochs)


def step(beside: Beside, draw: random.Random, names: list[str], epochs: dict[str, int]) -> None:
    """Send a request that is drawn, and note the epoch that it brings."""
    member_id, name = draw.choice(MEMBERS), draw.choice(names)
    known = epochs.get(member_id, JOIN)
    kind = draw.choices(("stay", "wrong", "wish", "leave", "alter", "delete"), (8, 2, 4, 3, 1, 1))[0]
    if kind == "alter":
        beside.alter(name, {draw.randrange(4): draw.randrange(9)})
    elif kind == "delete":
        beside.delete_offsets(name)
    elif kind == "leave":
        beside.heartbeat(member_id, LEAVE)
        epochs.pop(member_id, None)
    else:
        epoch = known + draw.choice((-2, -1, 1)) if kind == "wrong" else known
        wanted = draw.sample(names, draw.randint(1, 2)) if epoch == JOIN or kind == "wish" else None
        answer = beside.heartbeat(member_id, epoch, wanted, draw.choice((None, None, "rack-2")))
        if answer.error == "none":
            epochs[member_id] = answer.epoch
            if answer.epoch == LEAVE:
                del epochs[member_id]


def test_both_notice_what_becomes_of_topics(
    broker: KafkaBroker, to: RawConnection, topics: Iterator[tuple[str, str]]
) -> None:
    """One grows, one is deleted; then the group is deleted, too."""
    grows, goes = next(topics), next(topics)
    beside = Beside(Group(broker, to, grows), [grows, goes])
    epoch = beside.heartbeat("A", JOIN, [grows[0], goes[0]]).epoch
    epoch = beside.heartbeat("A", epoch).epoch
    epoch = beside.grow(*grows, 5, "A", epoch)
    epoch = beside.heartbeat("A", epoch).epoch
    beside.forget(*goes)
    beside.heartbeat("A", epoch)
    beside.heartbeat("A", LEAVE)
    beside.delete()


def test_what_is_loaded_is_the_brokers_group(broker: KafkaBroker, to: RawConnection) -> None:
    """
    A coordinator that replays all that the broker has written describes each of its groups as it does.

    With KEEP_GROUPS=directory in the environment both are kept there, for tests without a broker.
    """
    coordinator = GroupCoordinator(GROUP_PROFILES[PROFILES[broker.kafka]], order=AssignmentOrder.JAVA)
    cluster: Any = to.ask(
        _Metadata(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False),
        MetadataResponse,
    )
    topics = {each.name: (topic_id_text(each.topic_id.bytes), len(each.partitions)) for each in cluster.topics}
    coordinator.update_topics(topic(name, *each) for name, each in topics.items())
    records = [record for _, _, record in written(broker)]
    coordinator.load(records, now_ms())
    groups = {
        group_id: in_any_order(group_requests.describe(to, group_id))
        for group_id in sorted({record.key.group_id for record in records})
    }
    kept = os.environ.get("KEEP_GROUPS")
    if kept:
        keep(Path(kept), broker, {"topics": topics, "groups": groups})

    assert {group_id: description(coordinator, group_id) for group_id in groups} == groups


def keep(directory: Path, broker: KafkaBroker, described: Mapping[str, Any]) -> None:
    """Keep what a broker has written and said of its groups."""
    directory.mkdir(parents=True, exist_ok=True)
    (log,) = segment_files(broker.log_dir / "__consumer_offsets-0")
    (directory / f"{broker.kafka}.log.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    (directory / f"{broker.kafka}.json").write_text(json.dumps(described, indent=1) + "\n")
