"""
Scenes that lead a broker of Kafka into one of its bugs, each in a group and a topic of its own.

A scene expects what the bug does, so that it fails where a broker does not show it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from threading import Thread
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias
from uuid import UUID

from attrs import evolve, frozen
from confluent_kafka import Consumer as RecordReader
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kio.schema.write_share_group_state.v1 import request as write_v1
from kio.schema.write_share_group_state.v1.response import WriteShareGroupStateResponse

from sharestate import StateBatch
from sharestate.conformance.brokers.cluster import ClusterUnderTest
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    WriteStateParameters,
)
from sharestate.persister.kafka import KafkaPersister
from sharestate.testing.servers import (
    ACCEPT,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    FetchLimits,
    Partition,
    RawConnection,
    RawMember,
)
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure
from tests.broker.scenarios import CLEANER, COMMITTED, ISOLATION, LIMIT, LOCK
from tests.broker.told_members import Consumer, Place, renews

Scene: TypeAlias = Callable[[Place], Iterator[str]]
"""Leads a broker into a bug; what it yields is said of the lines that come next."""

Record: TypeAlias = tuple[Partition, int, int]
"""A record that is held: its offset and delivery count."""

LOCKS: Final = MappingProxyType({"share.partition.max.record.locks": "100"})
"""The fewest that are allowed."""

STATE_TOPIC: Final = "__share_group_state"
NO_RECORD, FEW_RANGES, ANY_RECORD = "1", "250", "1048588"
"""How large a batch of the state topic may be: smaller than any, large enough for few ranges, as usual. [bytes]"""

LATEST: Final = MappingProxyType({"share.auto.offset.reset": "latest"})
"""Settings of a group that begins with what is written next."""

LETTERS: Final = "dlq.bugs"
QUEUE: Final = MappingProxyType({"errors.deadletterqueue.topic.name": LETTERS})
"""Settings of a group with a dead-letter queue."""

BROKER: Final = MappingProxyType(CLEANER)
"""Settings of a broker whose cleaner is quick; nothing else differs."""

SLOW: Final = MappingProxyType({"share.coordinator.append.linger.ms": "2000"})
"""Settings of a broker whose share coordinator waits for 2 s before it carries out a write."""

RETRIES_SOON: Final = MappingProxyType(
    {**SLOW, "group.share.initialize.retry.interval.ms": "3000", "offsets.commit.timeout.ms": "3000"}
)
"""The same, with a group coordinator that soon retries an initialization."""

SEGMENT_S: Final = 1
"""How old the segment of a topic has to be for the next record to begin another one. [s]"""

COMPACTED: Final = MappingProxyType(
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": str(1000 * SEGMENT_S)}
)
"""Settings of a topic that is soon cleaned."""

BATCH: Final = FetchLimits(max_records=60, batch_size=60)
"""As much as a log batch has."""

ONE_BATCH: Final = FetchLimits(max_records=1)
"""A log batch, however many records it has."""

ONE_RECORD: Final = FetchLimits(max_records=1, acquire_mode=RECORD_LIMIT)
"""A record, also of a log batch that has more (``share.acquire.mode=record_limit``)."""

TRIES: Final = 5
"""How often nothing has to come, in a tenth of a second each."""

ANSWERED_S: Final = 10
"""How long an answer may take that may never come. [s]"""

SENT_S: Final = 0.2
"""How long it may take until a broker has got a request, and has asked its share coordinator. [s]"""

LOGGED_S: Final = 0.5
"""How long a broker may take to log what it has answered. [s]"""

_StateBatch: Any = write_v1.StateBatch
_PartitionData: Any = write_v1.PartitionData
_StateData: Any = write_v1.WriteStateData
_WriteState: Any = write_v1.WriteShareGroupStateRequest


def full_gap_window(place: Place) -> Iterator[str]:
    """F1: a gap window is as large as records may be in flight."""
    yield "A member gets 0-119, in two log batches, and accepts 10-119."
    place.write(120, batch=60)
    before = _accepted(place, (10, 59), (60, 119))
    yield "The broker is restarted: its state has a gap, 0-9. A member gets it, and accepts it: all is done now."
    _restart(place.broker, before)
    with place.member() as consumer:
        _say(consumer, consumer.some(BATCH), ACCEPT)
        yield "60 records more are written, 120-179. Nobody gets them."
        place.write(60, batch=60)
        _expect_nothing(consumer)


def log_start_past_available(place: Place) -> Iterator[str]:
    """F4: the log start passes the last available records of a full share partition."""
    yield from _available_are_lost(place, "Records below 10 are deleted.", lambda: _delete_below(place, 10))


def compacted(place: Place) -> Iterator[str]:
    """F6: the last available records of a full share partition are compacted away."""

    def compact() -> None:
        for _ in range(2):  # the second begins a segment, so that the cleaner may read the first
            time.sleep(SEGMENT_S)
            place.write(60, batch=60)
        _wait_until_cleaned(place, 60)

    yield from _available_are_lost(
        place, "120-239 are written, with the keys of 0-59, which the cleaner removes.", compact
    )


def log_start_in_the_gap(place: Place) -> Iterator[str]:
    """F5: the log start moves into the gap that is fetched next."""
    yield "A member gets 0-19, and accepts 10-19."
    place.write(20, batch=20)
    before = _accepted(place, (10, 19))
    yield "The broker is restarted: its state has a gap, 0-9. Records below 5 are deleted. Nobody gets 5-9."
    _restart(place.broker, before)
    _delete_below(place, 5)
    with place.member() as consumer:
        _expect_nothing(consumer)


def left_below_log_start(place: Place) -> Iterator[str]:
    """F8: of a log batch that begins below the log start one record is taken, and others are left."""
    yield "A member gets 0-9, a log batch, and holds it. Records below 15 are deleted, which a fetch of another shows."
    place.write(20, batch=10)
    with place.member() as first, place.member() as second:
        first.some(ONE_BATCH)
        _delete_below(place, 15)
        _expect_nothing(second, tries=1)
        yield "The other fetches a single record (record_limit) of the log batch 10-19, and gets 10. Nobody gets 15-19."
        assert [offset for _, offset, _ in second.some(ONE_RECORD)] == [10]
        _expect_nothing(second)
        yield "10 records more are written, 20-29. Nobody gets them."
        place.write(10)
        _expect_nothing(second)


def aborted_transaction(place: Place) -> Iterator[str]:
    """F7: a transaction of as many records as may be in flight is aborted."""
    yield "120 records are written in a transaction, which is aborted. The group reads what is committed."
    _abort(place, 120, batch=60)
    with place.member() as consumer:
        _expect_nothing(consumer)
        yield "60 records more are written, without a transaction. Nobody gets them."
        place.write(60, batch=60)
        _expect_nothing(consumer)


def late_write(place: Place) -> Iterator[str]:
    """F3: a write that is retried comes after a later one; the two are sent in that order here."""
    with _Stored(place) as stored:
        yield "A leader's second write, of which the start offset is 20, comes first; then the first one, retried: 10."
        stored.initialize(0)
        stored.read()
        stored.write(20)
        stored.write(10)
        yield "The next leader begins at 10."
        assert stored.read() == 10


def reversed_batch(place: Place) -> Iterator[str]:
    """C1: a state batch ends before it begins, and meets another one."""
    with _Stored(place) as stored:
        yield "A write has a state batch from 5 to 2 beside another one."
        stored.initialize(0)
        try:
            stored.write_raw((4, 9, 4, 1), (5, 2, 2, 2))
        except OSError:
            yield "The write has no answer in 10 s, and no line: a thread of the coordinator never comes to an end."


def repeated_initialization(place: Place) -> Iterator[str]:
    """C2: an initialization is retried, and comes after a leader's write; it is sent in that order here."""
    with _Stored(place) as stored:
        yield "A share partition is initialized, read by a leader, and written."
        stored.initialize(-1)
        stored.read()
        stored.write(50, StateBatch(52, 56, 2, 1))
        yield "The same initialization comes again."
        stored.initialize(-1)
        yield "The next leader is told that nothing was ever written."
        assert stored.read() == -1


def answered_alike(place: Place) -> Iterator[str]:
    """C3: two writes are in one request, and the first of them fails."""
    yield "Three members get 0-9, 10-19 and 20-29. The state topic takes small batches from now on."
    place.write(30)
    with place.member() as first, place.member() as second, place.member() as third:
        held = [consumer.some(ONE_BATCH) for consumer in (first, second, third)]
        _bound_state_records(place, FEW_RANGES)
        yield (
            "The first accepts 0-9, and its write takes 2 s. Meanwhile the second accepts and rejects 10-19 by turns, "
            "which makes many ranges, and the third accepts 20-29. The write of the second is too large, and fails."
        )
        by_turns = (ACCEPT, REJECT) * (len(held[1]) // 2)
        with _said_meanwhile(first, held[0], ACCEPT), _said_meanwhile(second, held[1], *by_turns):
            time.sleep(LOGGED_S)  # the second comes first
            _say(third, held[2], ACCEPT)
        _bound_state_records(place, ANY_RECORD)
    yield "All three were told that it is done. The broker is restarted. A member gets 10-19 again."
    place.broker.stop()
    place.broker.start()
    with place.member() as consumer:
        assert [offset for _, offset, _ in consumer.some()] == [*range(10, 20)]


def start_moves_back(place: Place) -> Iterator[str]:
    """F2: the start offset moves back to the gap window, before records that were taken off the count."""
    yield "A member gets 0-29, in log batches 0-4, 5-9, 10-19 and 20-29; it accepts 12-13 and releases 20-25."
    place.write(10, batch=5)
    place.write(20, batch=10)
    before = place.lost_member()
    held = [record for _ in range(4) for record in before.some(ONE_BATCH)]
    _say(before, held, ACCEPT, (12, 13))
    _say(before, held, RELEASE, (20, 25))
    yield "The broker is restarted: its state has a gap, 0-11. Locks last 3 s from now on. A member gets 0-4."
    _restart(place.broker, before)
    configure(place.broker, place.name, {LOCK: "3000"})
    with place.member() as first, place.member() as second:
        first.some(ONE_BATCH)
        time.sleep(1)
        yield "Another one gets 5-9. Records below 15 are deleted, which a fetch shows."
        second.some(ONE_BATCH)
        _delete_below(place, 15)
        _expect_nothing(first)
        time.sleep(1)
        yield "The first lock expires. A fetch shows the log start again, which is then 16. The other lock expires."
        _expect_nothing(first)
        _delete_below(place, 16)
        _expect_nothing(first)
        time.sleep(1.5)
        yield "None of the records 16-29 is complete, so the lag is 14. Administrators see 16."
        assert _described(place) == (16, 16)


def counted_below_start(place: Place) -> Iterator[str]:
    """B22: records of an aborted transaction are archived below the start offset too, and counted."""
    yield "0-9 are written in a transaction, which is aborted. A member gets 0-10: the group reads uncommitted records."
    _abort(place, 10, batch=10)
    with place.member() as first, place.member() as second:
        held = first.some()
        yield "Records below 5 are deleted. 0-1 are released, so that a fetch shows it; 2-4 are not. 5-10 are released."
        _delete_below(place, 5)
        _say(first, held, RELEASE, (0, 1))
        _expect_nothing(second)
        _say(first, held, RELEASE, (5, 10))
        yield "The group is set to read committed records: a fetch archives 2-9. 10 is accepted. 11-20 are written."
        configure(place.broker, place.name, {ISOLATION: COMMITTED})
        time.sleep(LOGGED_S)
        _say(second, second.some(), ACCEPT)
        place.write(10)
        yield "5-10 are complete, which are six records. 11-20 are not, so the lag is 10. Administrators see 7."
        assert _described(place) == (5, 7)


def archived_uncounted(place: Place) -> Iterator[str]:
    """B23: a rejection in the last attempt, whose lock expires before its write fails."""
    yield "A member gets 0-4 and releases them. It gets them again, in their last attempt, and rejects them."
    place.write(5, batch=5)
    with place.member() as consumer:
        _say(consumer, consumer.some(), RELEASE)
        with _said_meanwhile(consumer, consumer.some(), REJECT):
            yield "The write takes 2 s. Meanwhile the lock of 1 s expires. It fails: the state topic takes no records."
            _bound_state_records(place, NO_RECORD)
        _bound_state_records(place, ANY_RECORD)
        configure(place.broker, place.name, {LOCK: "30000"})
        place.write(10, batch=5)
        yield "It takes records again. The member gets 5-14, accepts 5-9, and then 10."
        held = consumer.some()
        _say(consumer, held, ACCEPT, (5, 9))
        _say(consumer, held, ACCEPT, (10, 10))
        yield "11-14 are not complete, so the lag is 4. Administrators see 9. The dead-letter queue has got nothing."
        assert _described(place) == (10, 9)
        assert not _has_letters(place)


def lower_count_not_stored(place: Place) -> Iterator[str]:
    """B24: a write fails, and a later one, which has counted its records, does not."""
    yield "Two members get 0-9 and 10-19. The first accepts and rejects by turns, which is written in many ranges."
    place.write(20)
    with place.member() as first, place.member() as second:
        many, few = first.some(ONE_BATCH), second.some(ONE_BATCH)
        by_turns = ACCEPT, REJECT
        with _said_meanwhile(first, many, *by_turns * (len(many) // 2)):
            yield "The write takes 2 s, and fails: the state topic takes small batches. Meanwhile 10-12 are accepted."
            _bound_state_records(place, FEW_RANGES)
            _say(second, few, ACCEPT, (10, 12))
        _bound_state_records(place, ANY_RECORD)
        yield "13-14 are accepted."
        _say(second, few, ACCEPT, (13, 14))
        yield "10-14 are complete, which are five of twenty, so the lag is 15. Administrators see 7."
        assert _described(place) == (0, 7)


def advance_throws(place: Place) -> Iterator[str]:
    """B25: the log start passes records whose rejection is not written yet."""
    yield "A member gets 0-9, renews 5, and rejects all."
    place.write(20, batch=10)
    with place.member() as first, place.member() as second:
        held = first.some(ONE_BATCH)
        first.say(held[5:6], renews, renews=True)
        with _said_meanwhile(first, held, REJECT):
            yield "The write takes 2 s. Meanwhile records below 15 are deleted, which a fetch of another member shows."
            _delete_below(place, 15)
            _expect_nothing(second, tries=1)
        yield "It gets the rest of the log batch 10-19, and accepts it; then 20-29, which are written."
        _say(second, second.some(), ACCEPT)
        place.write(10)
        _say(second, second.some(), ACCEPT)
        yield "All is done, and the start offset stays. The dead-letter queue has got nothing."
        assert _described(place) == (15, 0)
        assert not _has_letters(place)


def lost_initialization(place: Place) -> Iterator[str]:
    """B26: the first initialization of a topic is lost."""
    with _Stored(evolve(place, name="others")) as stored:
        stored.initialize(0)  # so that the share coordinator is there
    place.write(10)
    yield "There are records 0-9. A member joins a group that begins with the latest. Its initialization takes 2 s."
    member = RawMember(place.broker.address, place.name, place.topics)
    while member.heartbeat() != "none":
        time.sleep(SENT_S)
    yield "Meanwhile the broker is killed, and started again. The member gets what was written before it had joined."
    place.broker.kill()
    place.broker.start()
    member.hang_up()
    member.join()
    records = Consumer(member).some()
    assert [offset for _, offset, _ in records] == [*range(10)]
    member.leave()


@frozen
class Act:
    """A scene, and what it takes."""

    scene: Scene
    config: Mapping[str, str] = LOCKS
    """The group's."""

    topic_config: Mapping[str, str] = MappingProxyType({})
    """The topic's."""

    broker_config: Mapping[str, str] = BROKER
    """The broker's; scenes share a broker."""

    releases: tuple[str, ...] = ("4.3.1", "4.4.0")
    """Those that show the bug."""

    @property
    def kafka(self) -> str:
        """The release whose excerpt is on the page: the latest that shows the bug."""
        return self.releases[-1]


ACTS: Final[Mapping[str, Act]] = MappingProxyType(
    {
        "F1": Act(full_gap_window),
        "F2": Act(start_moves_back),
        "F3": Act(late_write, releases=("4.3.1",)),
        "F4": Act(log_start_past_available),
        "F5": Act(log_start_in_the_gap),
        "F6": Act(compacted, topic_config=COMPACTED),
        "F7": Act(aborted_transaction, config={**LOCKS, ISOLATION: COMMITTED}),
        "F8": Act(left_below_log_start, {}),
        "B22": Act(counted_below_start),
        "B23": Act(archived_uncounted, {**QUEUE, LIMIT: "2", LOCK: "1000"}, broker_config=SLOW, releases=("4.4.0",)),
        "B24": Act(lower_count_not_stored, {}, broker_config=SLOW, releases=("4.4.0",)),
        "B25": Act(advance_throws, QUEUE, broker_config=SLOW, releases=("4.4.0",)),
        "B26": Act(lost_initialization, LATEST, broker_config=RETRIES_SOON, releases=("4.4.0",)),
        "C2": Act(repeated_initialization),
        "C3": Act(answered_alike, {}, broker_config=SLOW),
        "C1": Act(reversed_batch),  # the last: some brokers are no good after it
    }
)
"""The scenes, by the bugs that they show."""


def _available_are_lost(place: Place, how: str, lose: Callable[[], None]) -> Iterator[str]:
    """All that may be in flight is, and the available records among it are lost."""
    yield "A member gets 0-119, in two log batches, accepts 10-119 and releases 0-9."
    place.write(120, batch=60)
    with place.member() as consumer:
        held = consumer.some(BATCH)
        _say(consumer, held, ACCEPT, (10, 59))
        _say(consumer, consumer.some(BATCH), ACCEPT)
        _say(consumer, held, RELEASE, (0, 9))
        yield how
        lose()
        yield "60 records more are written. Nobody gets them."
        place.write(60, batch=60)
        _expect_nothing(consumer)


def _accepted(place: Place, *ranges: tuple[int, int]) -> Consumer:
    """Return a member that has fetched a log batch for each of *ranges*, which it accepts; the rest it holds."""
    consumer = place.lost_member()
    for each in ranges:
        _say(consumer, consumer.some(BATCH), ACCEPT, each)
    return consumer


def _say(consumer: Consumer, records: list[Record], how: int, offsets: tuple[int, int] | None = None) -> None:
    """Acknowledge records that follow each other, or those at *offsets* only, in one range."""
    (partition, first, _), (_, last, _) = records[0], records[-1]
    consumer.member.acknowledge({partition: [(*(offsets or (first, last)), (how,))]})


@contextmanager
def _said_meanwhile(consumer: Consumer, records: list[Record], *how: int) -> Iterator[None]:
    """Acknowledge records, each as said or all alike, and go on before that is answered; wait for it in the end."""
    (partition, first, _), (_, last, _) = records[0], records[-1]
    saying = Thread(target=consumer.member.acknowledge, args=({partition: [(first, last, how)]},))
    saying.start()
    time.sleep(SENT_S)
    yield
    saying.join()


def _restart(broker: KafkaBroker, consumer: Consumer) -> None:
    """Stop the broker and start it again; a member that was there does not come back."""
    broker.stop()
    broker.start()
    consumer.member.hang_up()


def _delete_below(place: Place, offset: int) -> None:
    at = TopicPartition(place.topic, 0, offset)
    admin = AdminClient({"bootstrap.servers": place.broker.address})  # without a name it would be gone too early
    admin.delete_records([at])[at].result(PATIENCE_S)


def _expect_nothing(consumer: Consumer, tries: int = TRIES) -> None:
    for _ in range(tries):
        records = consumer.take(BATCH)
        assert not records, records


def _abort(place: Place, count: int, batch: int) -> None:
    """Write records in a transaction, and abort it."""
    producer = Producer(
        {
            "bootstrap.servers": place.broker.address,
            "transactional.id": place.name,
            "linger.ms": 10_000,
            "batch.num.messages": batch,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(place.topic, value=b"value", partition=0)
    producer.flush(PATIENCE_S)
    producer.abort_transaction(PATIENCE_S)


def _bound_state_records(place: Place, size: str) -> None:
    """Let the topic of the share coordinator take batches of so many bytes only, and return when that is known."""
    entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, STATE_TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": place.broker.address})
    admin.incremental_alter_configs([topic])[topic].result(PATIENCE_S)
    time.sleep(LOGGED_S)


def _wait_until_cleaned(place: Place, first: int) -> None:
    """Return when the log begins with the record at offset *first*."""
    limits = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
    give_up_s = time.monotonic() + PATIENCE_S
    offset: int | None = None
    while offset != first:
        assert time.monotonic() < give_up_s, offset
        reader = RecordReader({"bootstrap.servers": place.broker.address, "group.id": "cleaned", **limits})
        reader.assign([TopicPartition(place.topic, 0, 0)])
        (record,) = reader.consume(1, PATIENCE_S)
        offset = record.offset()
        reader.close()


def _described(place: Place) -> tuple[int, int]:
    """Return the start offset of a group, and its lag, as administrators see it."""
    with closing(ClusterUnderTest(place.broker.address)) as cluster:
        return cluster.group_offsets(place.name, place.topic)


def _has_letters(place: Place) -> bool:
    """Return whether there is a topic with dead letters: the first one makes it."""
    admin = AdminClient({"bootstrap.servers": place.broker.address})
    return LETTERS in admin.list_topics(timeout=PATIENCE_S).topics


class _Stored:
    """What a persister asks a broker's share coordinator about one share partition."""

    def __init__(self, place: Place) -> None:
        self._key = place.name, place.broker.create_topic(f"{place.topic}-stored", 1)
        self._address = place.broker.address
        self._persister = KafkaPersister(place.broker.address, take_over=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._persister.close()

    def initialize(self, start_offset: int) -> None:
        entry = PartitionStateData(partition=0, state_epoch=1, start_offset=start_offset)
        self._persister.initialize_state(InitializeStateParameters.of(*self._key, entry)).result(PATIENCE_S)

    def read(self) -> int | None:
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=1)
        read = self._persister.read_state(ReadStateParameters.of(*self._key, entry)).result(PATIENCE_S)
        found = read.find(self._key[1], 0)
        return None if found is None else found.start_offset

    def write(self, start_offset: int, *batches: StateBatch) -> None:
        entry = PartitionStateBatchData(
            partition=0, state_epoch=1, leader_epoch=1, start_offset=start_offset, state_batches=batches
        )
        self._persister.write_state(WriteStateParameters.of(*self._key, entry)).result(PATIENCE_S)

    def write_raw(self, *batches: tuple[int, int, int, int]) -> None:
        """Write state batches that no persister takes, and wait for the answer."""
        rows = tuple(
            _StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        )
        head = {"state_epoch": 1, "leader_epoch": 1, "start_offset": 0, "delivery_complete_count": -1}
        partition = _PartitionData(partition=0, state_batches=rows, **head)
        topic = _StateData(topic_id=UUID(bytes=topic_id_bytes(self._key[1])), partitions=(partition,))
        request = _WriteState(group_id=self._key[0], topics=(topic,))
        with closing(RawConnection(self._address, "persister", patience_s=ANSWERED_S)) as connection:
            connection.ask(request, WriteShareGroupStateResponse)
