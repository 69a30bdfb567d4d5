"""A node under random requests: whatever comes is answered once, in time, and no record is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import settings

from sharestate import (
    PROFILES,
    AcknowledgementBatch,
    AcquiredRecords,
    AutoOffsetReset,
    ControlType,
    ErrorCode,
    InMemoryPersister,
    IsolationLevel,
    Profile,
    RecordState,
    ShareConfig,
)
from sharestate.broker.node import (
    GroupConfig,
    LogRecord,
    NodeAnswer,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.testing.groups import Allowance, GroupSettings, Guarantee, ShareGroupMachine

PRODUCER_IDS = {"p1": 1, "p2": 2}
GROUP = "g"


# ruff: noqa: D102 - what a machine implements has its docstring there


class NodeMachine(ShareGroupMachine):
    """A node with one partition and one group, whose members have connections of their own."""

    profile: ClassVar[Profile]
    renews = True
    delivers_ranges = True

    def start(self, settings: GroupSettings) -> None:
        share = ShareConfig(
            max_record_locks=settings.max_record_locks,
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            renew_acknowledge_enable=settings.renew_acknowledge_enable,
            auto_offset_reset=AutoOffsetReset.earliest(),
        )
        group = GroupConfig(share=share, isolation_level=IsolationLevel(settings.isolation_level))
        self.persister = InMemoryPersister()
        self.broker = ShareBroker(NodeConfig(profile=self.profile, group=group), persister=self.persister)
        self.topic_id = self.broker.create_topic("orders", 1).topic_id
        initialize_group(self.broker, self.topic_id, 1)
        self.epochs: dict[str, int] = {}
        self.answered: list[NodeAnswer] = []
        self.now_ms = 0

    def produce(self, count: int, producer: str | None) -> range:
        batch = ProducedBatch(
            records=[LogRecord(b"k", b"v")] * count,
            producer_id=PRODUCER_IDS[producer] if producer else -1,
            producer_epoch=0 if producer else -1,
            is_transactional=producer is not None,
        )
        first, last = self.broker.append("orders", 0, batch, self.now_ms).batch[:2]
        return range(first, last + 1)

    def commit_transaction(self, producer: str) -> None:
        self.end(producer, ControlType.COMMIT)

    def abort_transaction(self, producer: str) -> None:
        self.end(producer, ControlType.ABORT)

    def end(self, producer: str, control: ControlType) -> None:
        log = self.broker.log("orders", 0)
        log.append_marker(control, producer_id=PRODUCER_IDS[producer], producer_epoch=0, now_ms=self.now_ms)

    def fetch(self, member: str, max_records: int) -> tuple[AcquiredRecords, ...]:
        epoch = self.epochs.get(member, 0)
        partitions = [PartitionOfRequest(self.topic_id, 0)] if epoch == 0 else []
        response = self.ask(
            ShareFetchRequest(
                group_id=GROUP,
                member_id=member,
                share_session_epoch=epoch,
                partitions=partitions,
                max_wait_ms=0,
                max_records=max_records,
                share_acquire_mode=self.acquire_mode,
            ),
            member,
        )
        self.epochs[member] = epoch + 1
        return response.partitions[0].acquired_records if response.partitions else ()

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        if member not in self.epochs or self.broker.share_partition(GROUP, "orders", 0) is None:
            self.fetch(member, max_records=0)  # which opens a session, and the share partition of another leader
        response = self.ask(
            ShareAcknowledgeRequest(
                group_id=GROUP,
                member_id=member,
                share_session_epoch=self.epochs.get(member, 0),
                partitions=[PartitionOfRequest(self.topic_id, 0, list(batches))],
                is_renew_ack=any(4 in types for *_, types in batches),
            ),
            member,
        )
        if response.error_code:
            return response.error_code
        self.epochs[member] += 1
        return response.partitions[0].error.error_code

    def close_session(self, member: str) -> None:
        if self.epochs.pop(member, 0):
            request = ShareAcknowledgeRequest(group_id=GROUP, member_id=member, share_session_epoch=-1)
            assert self.ask(request, member).error_code is ErrorCode.NONE

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        assert self.broker.advance(self.now_ms) == ()
        self.answer_writes()

    def delete_records(self, before_offset: int) -> None:
        self.broker.log("orders", 0).advance_log_start(before_offset)

    def fail_over(self) -> None:
        self.broker.fail_over("orders", 0, self.now_ms)
        self.answer_writes()

    def fail_writes(self) -> None:
        self.persister.is_holding = True

    def mend_writes(self) -> None:
        self.persister.is_holding = False

    def ask(self, request: ShareFetchRequest | ShareAcknowledgeRequest, member: str) -> Any:  # noqa: ANN401 - of either kind
        number = self.broker.send(request, connection_id=member, now_ms=self.now_ms)
        self.answer_writes()
        (answer,) = (*self.answered, *self.broker.answers())
        self.answered.clear()
        assert answer.number == number
        return answer.response

    def answer_writes(self) -> None:
        """Let the requests fail that are held back: some are not carried out, of others only the answer gets lost."""
        while self.persister.held:
            held = self.persister.held[0]
            if len(self.persister.requests) % 2:
                held.fail(ErrorCode.NOT_COORDINATOR)
            else:
                held.lose()
            self.answered += self.broker.advance(self.now_ms)


def initialize_group(broker: ShareBroker, topic_id: str, count: int) -> None:
    """Let a node's coordinator initialize the state of a group for the partitions of a topic."""
    states = [PartitionStateData(partition=partition) for partition in range(count)]
    broker.call(InitializeStateParameters.of(GROUP, topic_id, *states), now_ms=broker.now_ms)


def stalls_in_the_gap(machine: NodeMachine) -> bool:
    """Return whether a gap of the previous leader is fetched next, though the SPSO has passed it."""
    partition = machine.broker.share_partition(GROUP, "orders", 0)
    window = partition and partition.gap_window
    return bool(partition and window and window.first_offset < partition.start_offset)


def is_full_of_terminal_records(machine: NodeMachine) -> bool:
    """Return whether nothing beyond what is in flight can be acquired, and nothing in flight is to be delivered."""
    partition = machine.broker.share_partition(GROUP, "orders", 0)
    assert partition is not None
    states = {run.state for batch in partition.batches() for run in batch.runs}
    size = partition.end_offset - partition.start_offset + 1
    is_full = size >= partition.config.max_record_locks
    return is_full and states <= {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


ALLOWANCES = (
    # The bugs of Kafka that clients notice under the profiles of releases: docs/kafka-bugs.md.
    Allowance("F5", Guarantee.NOTHING_LOST, stalls_in_the_gap),
    Allowance("F4 and F7", Guarantee.NOTHING_LOST, is_full_of_terminal_records),
)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_clients_get_what_they_may_expect(profile: Profile) -> None:
    """Whatever members, producers and leaders do, every guarantee holds; only releases may stall."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else ()}
    test = type("NodeMachine", (NodeMachine,), fields).TestCase  # type: ignore[attr-defined]
    test.settings = settings(max_examples=60, stateful_step_count=30)

    test().runTest()
