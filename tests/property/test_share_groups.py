"""The clients' side of share groups: `ShareGroupMachine` finds nothing in this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
from attrs import evolve
from hypothesis import settings

from sharestate import (
    KAFKA_4_3,
    PROFILES,
    AcknowledgementBatch,
    AcquiredRecords,
    ControlType,
    ErrorCode,
    FetchedRecords,
    InMemoryPersister,
    IsolationLevel,
    Leader,
    Profile,
    Quirk,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    TransactionIndex,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.testing.groups import (
    KAFKA_ALLOWANCES,
    GroupSettings,
    GuaranteeBrokenError,
    ShareGroupMachine,
)

KEY = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
PRODUCER_IDS = {"p1": 1, "p2": 2}


# ruff: noqa: D102 - what a machine implements has its docstring there


ALLOWANCES = tuple(KAFKA_ALLOWANCES.values())
"""The bugs of Kafka that its clients notice under the profiles of releases."""


class LeaderMachine(ShareGroupMachine):
    """A leader of this library, with a log in memory."""

    profile: ClassVar[Profile]
    renews = True
    delivers_ranges = True

    def start(self, settings: GroupSettings) -> None:
        self.log: list[RecordBatch] = []
        self.transactions = TransactionIndex()
        self.log_start = 0
        self.now_ms = 0
        self.isolation = IsolationLevel(settings.isolation_level)
        self.config = ShareConfig(
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            max_record_locks=settings.max_record_locks,
            renew_acknowledge_enable=settings.renew_acknowledge_enable,
        )
        self.persister = InMemoryPersister()
        entry = PartitionStateData(partition=KEY.partition)
        begin = InitializeStateParameters.of(KEY.group_id, KEY.topic_id, entry)
        self.persister.initialize_state(begin).result()
        self.leader = self.lead(leader_epoch=0)

    def lead(self, leader_epoch: int) -> Leader:
        """Return a new leader."""
        partition = SharePartition(KEY, leader_epoch=leader_epoch, profile=self.profile, config=self.config)
        leader = Leader(partition, self.persister, reset_offset=lambda _: self.log_start)
        leader.start(now_ms=self.now_ms).result()
        return leader

    def append(self, size: int, producer: str | None, control: ControlType | None = None) -> range:
        """Append a batch, and return its offsets."""
        first = self.transactions.next_offset
        producer_id = -1 if producer is None else PRODUCER_IDS[producer]
        batch = RecordBatch(first, first + size - 1, producer_id, producer is not None, control)
        self.transactions.append(batch)
        self.log.append(batch)
        return range(first, first + size)

    def produce(self, count: int, producer: str | None) -> range:
        return self.append(count, producer)

    def commit_transaction(self, producer: str) -> int:
        return self.append(1, producer, ControlType.COMMIT)[0]

    def abort_transaction(self, producer: str) -> int:
        return self.append(1, producer, ControlType.ABORT)[0]

    def fetch(self, member: str, max_records: int) -> tuple[AcquiredRecords, ...]:
        if not self.leader.can_acquire(now_ms=self.now_ms):
            return ()
        fetch_offset = self.leader.next_fetch_offset(now_ms=self.now_ms)
        if fetch_offset < self.log_start:
            self.leader.advance_log_start(self.log_start, now_ms=self.now_ms)
            return ()
        fetched = FetchedRecords.from_log(
            self.log, self.transactions, fetch_offset=fetch_offset, isolation=self.isolation
        )
        return self.leader.acquire(member, fetched, now_ms=self.now_ms, max_records=max_records)

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> None:
        future = self.leader.acknowledge(member, batches, now_ms=self.now_ms)
        self.answer_writes()
        future.result()

    def close_session(self, member: str) -> None:
        self.leader.release(member, now_ms=self.now_ms)
        self.answer_writes()

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        self.leader.poll(now_ms=self.now_ms)
        self.answer_writes()

    def answer_writes(self) -> None:
        """Let the writes fail that are held back: some are not stored, of others only the answer gets lost."""
        while self.persister.held:
            held = self.persister.held[0]
            if len(self.persister.requests) % 2:
                held.fail(ErrorCode.NOT_COORDINATOR)
            else:
                held.lose()
            self.leader.poll(now_ms=self.now_ms)

    def fail_writes(self) -> None:
        self.persister.is_holding = True

    def mend_writes(self) -> None:
        self.persister.is_holding = False

    def delete_records(self, before_offset: int) -> None:
        self.log_start = before_offset
        self.log = [batch for batch in self.log if batch.last_offset >= before_offset]

    def fail_over(self) -> None:
        self.leader.close()
        self.leader = self.lead(self.leader.partition.leader_epoch + 1)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_clients_get_what_they_may_expect(profile: Profile) -> None:
    """Whatever members, producers and leaders do, every guarantee holds; only releases may stall."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else ()}
    test = type("LeaderMachine", (LeaderMachine,), fields).TestCase  # type: ignore[attr-defined]
    test.settings = settings(max_examples=60, stateful_step_count=30)

    test().runTest()


class HolesMachine(LeaderMachine):
    """The same with a hole of one offset before each batch but the first, and without what leads to F4, F5 and F7."""

    delete_records = ShareGroupMachine.delete_records
    commit_transaction = ShareGroupMachine.commit_transaction  # type: ignore[assignment]
    abort_transaction = ShareGroupMachine.abort_transaction  # type: ignore[assignment]

    def append(self, size: int, producer: str | None, control: ControlType | None = None) -> range:
        del producer, control  # there are no transactions
        first = self.transactions.next_offset + bool(self.log)
        batch = RecordBatch(first, first + size - 1)
        self.transactions.append(batch)
        self.log.append(batch)
        return range(first, first + size)


def test_a_gap_of_the_log_that_nobody_passes_is_found() -> None:
    """B10 shows where the log has holes: the SPSO waits before one, and what comes after is never delivered."""
    quirk = frozenset({Quirk.STALLS_AT_NATURAL_GAP})
    fetch, leave, send = ("member_fetches", "m1", 1000), ("member_leaves", "m1"), ("producer_sends", 1, None)
    steps = [fetch, leave, fetch, send, fetch, send, leave, send, send, ("leader_fails_over",)]
    settings = GroupSettings(delivery_count_limit=2, max_record_locks=5)

    def run(profile: Profile) -> None:
        machine = type("Holes", (HolesMachine,), {"profile": profile})()
        machine.group_starts(settings=settings, count=1)
        for step in steps:
            machine.happens(event=step)
        machine.teardown()

    with pytest.raises(GuaranteeBrokenError, match="nothing_lost"):
        run(evolve(KAFKA_4_3, name="with B10", quirks=quirk))
    run(KAFKA_4_3.healed)
