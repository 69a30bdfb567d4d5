"""A node under random requests: whatever comes is answered once, and in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquireMode,
    AutoOffsetReset,
    ErrorCode,
    InMemoryPersister,
    IsolationLevel,
    Profile,
    ShareConfig,
)
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    GroupConfig,
    LogRecord,
    NodeAnswer,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ProduceResponse,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData

GROUP = "g"


# ruff: noqa: D102 - what a machine implements has its docstring there


def create_topic(broker: ShareBroker, count: int) -> str:
    """Make a topic with *count* partitions, and return its id."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name="orders", partition_count=count)])
    broker.call(request, now_ms=broker.now_ms)
    topic = broker.topics.by_name("orders")
    assert topic is not None
    return topic.topic_id


def produce(broker: ShareBroker, topic_id: str, partition: int, batch: ProducedBatch) -> int:
    """Append a batch, and return its first offset."""
    response = broker.call(
        ProduceRequest(partitions=[ProducedPartition(topic_id, partition, batch)]), now_ms=broker.now_ms
    )
    assert isinstance(response, ProduceResponse)
    (result,) = response.partitions
    assert result.error_code is ErrorCode.NONE
    return result.base_offset


def initialize_group(broker: ShareBroker, topic_id: str, count: int, group_id: str = GROUP) -> None:
    """Let a node's coordinator initialize the state of a group for the partitions of a topic."""
    states = [PartitionStateData(partition=partition) for partition in range(count)]
    broker.call(InitializeStateParameters.of(group_id, topic_id, *states), now_ms=broker.now_ms)


MEMBERS = ("m1", "m2", "m3")
GROUPS = (GROUP, "h")
PARTITIONS = 3


class CrowdMachine(RuleBasedStateMachine):
    """Members of two groups that fetch three partitions, each on a connection of its own."""

    profile: ClassVar[Profile]
    is_late: ClassVar[bool]
    """Whether the persister answers late."""

    @initialize(
        limit=st.sampled_from([2, 5]), isolation=st.sampled_from(list(IsolationLevel)), locks=st.sampled_from([4, 200])
    )
    def begin(self, limit: int, isolation: IsolationLevel, locks: int) -> None:
        share = ShareConfig(
            max_record_locks=locks,
            delivery_count_limit=limit,
            record_lock_duration_ms=1000,
            auto_offset_reset=AutoOffsetReset.earliest(),
        )
        self.persister = InMemoryPersister()
        config = NodeConfig(profile=self.profile, group=GroupConfig(share=share, isolation_level=isolation))
        self.broker = ShareBroker(config, persister=self.persister)
        self.topic_id = create_topic(self.broker, PARTITIONS)
        for group_id in GROUPS:
            initialize_group(self.broker, self.topic_id, PARTITIONS, group_id)
        self.persister.is_holding = self.is_late
        self.now_ms = 0
        self.epochs: dict[tuple[str, str], int] = {}
        self.held: dict[tuple[str, str, int], list[int]] = {}
        self.deadlines: dict[int, int] = {}
        self.asked: dict[int, tuple[str, str]] = {}

    def take(self, answers: Sequence[NodeAnswer]) -> None:
        """Note what was answered."""
        for number, response in answers:
            del self.deadlines[number]  # each is answered once
            group_id, member = self.asked[number]
            for each in getattr(response, "partitions", ()):
                for first, last, _ in getattr(each, "acquired_records", ()):
                    self.held.setdefault((group_id, member, each.partition), []).extend(range(first, last + 1))

    def send(
        self, request: ShareFetchRequest | ShareAcknowledgeRequest, member: tuple[str, str], deadline_ms: int
    ) -> None:
        """Send a request on the member's connection."""
        number = self.broker.send(request, connection_id="/".join(member), now_ms=self.now_ms)
        self.deadlines[number], self.asked[number] = deadline_ms, member
        self.take(self.broker.answers())

    @rule(data=st.data(), group_id=st.sampled_from(GROUPS), member=st.sampled_from(MEMBERS))
    def member_fetches(self, data: st.DataObject, group_id: str, member: str) -> None:
        key = group_id, member
        epoch = self.epochs.get(key, 0)
        wait_ms = data.draw(st.sampled_from([0, 10, 500]))
        listed = data.draw(st.permutations(range(PARTITIONS)))[: data.draw(st.integers(1, PARTITIONS))]
        partitions = [
            PartitionOfRequest(self.topic_id, each, self.some_of(data, (*key, each)) if epoch else ())
            for each in (listed if epoch == 0 or data.draw(st.booleans()) else [])
        ]
        request = ShareFetchRequest(
            group_id=group_id,
            member_id=member,
            share_session_epoch=epoch,
            partitions=partitions,
            max_wait_ms=wait_ms,
            min_bytes=data.draw(st.sampled_from([0, 1, 100, 1000])),
            max_bytes=data.draw(st.sampled_from([0, 1, 100, 2**20])),
            max_records=data.draw(st.sampled_from([0, 1, 3, 500])),
            batch_size=data.draw(st.sampled_from([0, 1, 500])),
            share_acquire_mode=data.draw(st.sampled_from(list(AcquireMode))),
        )
        self.epochs[key] = epoch + 1
        self.send(request, key, self.now_ms + wait_ms)

    @rule(data=st.data(), group_id=st.sampled_from(GROUPS), member=st.sampled_from(MEMBERS))
    def member_acknowledges(self, data: st.DataObject, group_id: str, member: str) -> None:
        key = group_id, member
        epoch = self.epochs.get(key, 0)
        partitions = [
            PartitionOfRequest(self.topic_id, each, self.some_of(data, (*key, each))) for each in range(PARTITIONS)
        ]
        final = data.draw(st.sampled_from([False, False, True]))
        request = ShareAcknowledgeRequest(
            group_id=group_id, member_id=member, share_session_epoch=-1 if final else epoch, partitions=partitions
        )
        if epoch:
            self.epochs[key] = 0 if final else epoch + 1
        self.send(request, key, self.now_ms)

    def some_of(self, data: st.DataObject, key: tuple[str, str, int]) -> list[AcknowledgementBatch]:
        """Return acknowledgements of some of what a member holds, or believes to."""
        offsets = sorted(set(self.held.pop(key, [])))[: data.draw(st.integers(0, 4))]
        kind = data.draw(st.sampled_from([1, 2, 3]))
        return [AcknowledgementBatch(offset, offset, (kind,)) for offset in offsets]

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 4))
    def producer_sends(self, partition: int, count: int) -> None:
        produce(self.broker, self.topic_id, partition, ProducedBatch(records=[LogRecord(b"k", b"v")] * count))

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def records_are_deleted(self, partition: int) -> None:
        log = self.broker.log("orders", partition)
        log.advance_log_start((log.log_start_offset + log.high_watermark) // 2)

    @rule(ms=st.sampled_from([0, 1, 10, 400, 1001]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self.broker.advance(self.now_ms))

    @rule()
    def time_passes_to_the_next_deadline(self) -> None:
        self.now_ms = max(self.now_ms, self.broker.next_deadline_ms() or 0)
        self.take(self.broker.advance(self.now_ms))

    @rule(group_id=st.sampled_from(GROUPS), member=st.sampled_from(MEMBERS))
    def connection_ends(self, group_id: str, member: str) -> None:
        key = group_id, member
        self.broker.disconnect("/".join(key), self.now_ms)
        self.epochs.pop(key, None)
        for number in [number for number in self.deadlines if self.asked[number] == key]:
            del self.deadlines[number]

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def leader_fails_over(self, partition: int) -> None:
        self.broker.fail_over("orders", partition, self.now_ms)

    @rule()
    def node_starts_again(self) -> None:
        self.broker.restart(self.now_ms)
        self.epochs.clear()
        self.deadlines.clear()

    @precondition(lambda self: not self.is_late)
    @rule()
    def a_copy_goes_on(self) -> None:
        self.broker = self.broker.copy(persister=self.persister)

    @precondition(lambda self: self.persister.held)
    @rule(data=st.data())
    def persister_answers(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.persister.held))
        how = data.draw(st.sampled_from(["answer", "answer", "lose", "fail"]))
        held.fail(ErrorCode.NOT_COORDINATOR) if how == "fail" else getattr(held, how)()
        self.take(self.broker.advance(self.now_ms))

    @invariant()
    def answers_come_in_time(self) -> None:
        """Only what waits for the persister is answered after its deadline."""
        overdue = [number for number, deadline_ms in self.deadlines.items() if deadline_ms <= self.now_ms]
        assert self.is_late or not overdue

    @invariant()
    def no_fetch_waits_for_nothing(self) -> None:
        """A fetch that waits would find nothing if it looked again."""
        fetches = self.broker._fetches  # noqa: SLF001 - nobody else has to know what waits
        for number in fetches.waiting:
            assert not fetches._try(fetches.waiting[number], self.now_ms)  # noqa: SLF001

    @invariant()
    def share_partitions_are_sound(self) -> None:
        """The invariants of each share partition hold, and nothing is due any more."""
        for group_id in GROUPS:
            for each in range(PARTITIONS):
                partition = self.broker.share_partition(group_id, "orders", each)
                if partition is not None:
                    partition.check()
        deadline_ms = self.broker.next_deadline_ms()
        assert deadline_ms is None or deadline_ms > self.now_ms

    def teardown(self) -> None:
        """In the end everything is answered."""
        self.persister.is_holding = False
        while self.persister.held:
            self.persister.held[0].answer()
            self.take(self.broker.advance(self.now_ms))
        self.take(self.broker.advance(self.now_ms + 500))
        assert not self.deadlines


@pytest.mark.parametrize(
    ("profile", "is_late"),
    [(KAFKA_4_2, False), (KAFKA_4_3, False), (KAFKA_4_4, False), (KAFKA_4_4.healed, False), (KAFKA_4_4.healed, True)],
    ids=lambda value: getattr(value, "name", "late" if value else "at-once"),
)
def test_every_request_is_answered_once_and_in_time(profile: Profile, is_late: bool) -> None:  # noqa: FBT001 - a parameter
    """Whatever is sent, each request has one answer, at its deadline at the latest, and no fetch sleeps too long."""
    test = type("CrowdMachine", (CrowdMachine,), {"profile": profile, "is_late": is_late}).TestCase  # type: ignore[attr-defined]
    test.settings = settings(max_examples=40, stateful_step_count=40)

    test().runTest()
