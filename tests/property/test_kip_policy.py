"""The KIP's write policy against the plainest form of its rule, one offset at a time and without anything merged."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sharestate import KAFKA_4_3, KIP_932, Amendment, KipWritePolicy, Profile, RecordState, StateBatch
from sharestate.partition import write_policies
from sharestate.partition.advance import start_offset_after
from sharestate.partition.state import WriteContent
from sharestate.partition.write_policies import ExpiredRecords, KipWrites, UnsureRecords, merged
from sharestate.testing.generator.mix import STEPS, WILD, Mix
from sharestate.testing.generator.operations import converse, seeded
from sharestate.testing.persisters.failover_runs import (
    FailoverError,
    FailoverRun,
    FailoverStep,
    in_memory,
    random_steps,
)
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.values.snapshot import KipMemoryRow, KipWriteRow
from tests.support.failover_runs import seeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sharestate.partition.batches import Batch
    from sharestate.partition.state import PartitionState
    from sharestate.values.requests import PersistedState

HISTORIES: Final = 250
LATE: Final = Mix(trouble=70, steps={**STEPS, "complete": 4, "log": 20})
"""Many writes without an answer, and much that happens to the log."""
TERMINAL: Final = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


class Record(NamedTuple):
    """A record as a write counts on it."""

    state: int
    delivery_count: int


class Records(dict[int, Record]):
    """The cached records by their offsets."""

    def is_durable(self, _batch: Batch, offset: int) -> bool:
        """Return whether the record at *offset* is terminal."""
        return self[offset].state in TERMINAL

    def durable_last(self, batch: Batch) -> int:
        """Return the last offset of *batch* up to which every record is terminal."""
        last = batch.first_offset - 1
        while last < batch.last_offset and self[last + 1].state in TERMINAL:
            last += 1
        return last


class Unanswered(NamedTuple):
    """A write that was not answered."""

    start_offset: int
    end_offset: int
    expired: Mapping[int, Record]


class Plain:
    """The rule as it is written down: every write is planned from all the writes that are unanswered."""

    def __init__(self, policy: KipWritePolicy) -> None:
        """Begin without knowing anything."""
        self.policy = policy
        self.stored_start = -1
        self.durable_end = 0
        self.unanswered: dict[int, Unanswered] = {}

    def on_initialized(self, state: PartitionState, persisted: PersistedState) -> None:
        """Take note of what is persisted."""
        self.stored_start = persisted.start_offset
        self.durable_end = max([persisted.start_offset, *(batch.last_offset + 1 for batch in persisted.state_batches)])
        if persisted.start_offset == -1:
            self.unanswered[state.next_write] = Unanswered(state.start_offset, state.start_offset, {})

    def content(self, ledger: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:
        """Return the next write."""
        changed: dict[int, Record] = {}
        for first, last, state, count in entries:
            changed |= dict.fromkeys(range(max(first, ledger.start_offset), last + 1), Record(state, count))
        content = self.planned(ledger, changed)
        start, said = content
        end = max((batch.last_offset + 1 for batch in said), default=start)
        expired = changed.items() if is_final else ()
        before = {offset: Record(RecordState.ACQUIRED, count) for offset, (_, count) in expired}
        self.unanswered[ledger.next_write] = Unanswered(start, end, before)
        if not self.policy.has(Amendment.PLAN_ON_CONFIRMED):
            self.durable_end = max(self.durable_end, end)
        return content

    def planned(self, ledger: PartitionState, changed: Mapping[int, Record]) -> WriteContent:
        """Return the short form where it is allowed, else the long one."""
        has = self.policy.has
        records = self.records(ledger, changed)
        start = start_offset_after(ledger, records)
        end = max(self.durable_end, ledger.start_offset)
        last = max(changed)
        is_short = self.policy.has_short_form and start > ledger.start_offset and end <= start
        is_outstanding = any(write.start_offset != -1 for write in self.unanswered.values())
        if has(Amendment.OWN_CHANGES_DURABLE) and last >= start:
            is_short = False
        if has(Amendment.START_KNOWN_FIRST) and self.stored_start == -1:
            is_short = False
        if has(Amendment.ONE_START_AT_A_TIME) and (is_outstanding or start < self.stored_start):
            is_short = False
        if is_short:
            return start, ()
        if self.policy.bound is not None and self.stored_start != -1 and not is_outstanding:  # noqa: SIM102 - the bound
            if start - self.stored_start >= self.policy.bound:
                covered = range(start, max(end, last + 1))
                return start, batches({offset: records[offset] for offset in covered if offset in records})
        said = {offset: records[offset] for offset in records if end <= offset <= last} | {
            offset: record for offset, record in changed.items() if offset < end
        }
        must_say_start = has(Amendment.START_KNOWN_FIRST) and self.stored_start == -1
        return ledger.start_offset if must_say_start else -1, batches(said)

    def records(self, ledger: PartitionState, changed: Mapping[int, Record]) -> Records:
        """Return the cached records as the write counts on them."""
        records = Records()
        is_confirmed_only = self.policy.has(Amendment.PLAN_ON_CONFIRMED)
        for batch in ledger.in_flight:
            for first, last, cell in batch.runs(batch.first_offset, batch.last_offset):
                cell = cell.rollback if cell.rollback is not None and is_confirmed_only else cell  # noqa: PLW2901 - as confirmed
                record = Record(cell.state, cell.delivery_count)
                for offset in range(first, last + 1):
                    records[offset] = record
        expired = [write.expired for write in reversed(self.unanswered.values())] if is_confirmed_only else []
        for layer in [*expired, changed]:
            records.update({offset: record for offset, record in layer.items() if offset in records})
        return records

    def on_confirmed(self, number: int) -> None:
        """Take note of an outcome."""
        write = self.unanswered.pop(number)
        self.durable_end = max(self.durable_end, write.end_offset)
        self.stored_start = max(self.stored_start, write.start_offset)

    def on_failed(self, number: int) -> None:
        """Take note of an outcome."""
        write = self.unanswered.pop(number)
        if self.stored_start != -1:
            self.stored_start = max(self.stored_start, write.start_offset)


def batches(records: Mapping[int, Record]) -> tuple[StateBatch, ...]:
    """Return *records* as they are persisted, neighbors that are equal in one."""
    merged: list[StateBatch] = []
    for offset, (state, count) in sorted(records.items()):
        if state == RecordState.ACQUIRED:
            state, count = RecordState.AVAILABLE, count - 1  # noqa: PLW2901 - as if it had not been delivered
        if merged and merged[-1][1:] == (offset - 1, state, count):
            merged[-1] = StateBatch(merged[-1].first_offset, offset, state, count)
        else:
            merged.append(StateBatch(offset, offset, state, count))
    return tuple(merged)


class Compared(KipWrites):
    """The policy itself, whose every write is held against the plain form, and against a policy that was restored."""

    written = 0
    has_expired_again = False
    """Whether some record had expired in two writes that were unanswered."""

    def __init__(self, policy: KipWritePolicy, memory: KipMemoryRow | None = None) -> None:
        """Begin with nothing, as every leader of a run does."""
        super().__init__(policy, memory)
        self.plain = Plain(policy)

    def on_initialized(self, state: PartitionState, persisted: PersistedState) -> WriteContent | None:
        """Take note of what is persisted."""
        self.plain.on_initialized(state, persisted)
        return super().on_initialized(state, persisted)

    def content(self, ledger: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:
        """Compare."""
        restored = KipWrites(self.plain.policy, self.snapshot()).content(ledger, entries, is_final=is_final)
        content = super().content(ledger, entries, is_final=is_final)
        assert content == restored
        assert content == self.plain.content(ledger, entries, is_final=is_final)
        Compared.written += 1
        expiries = [offset for write in self.plain.unanswered.values() for offset in write.expired]
        Compared.has_expired_again |= len(set(expiries)) < len(expiries)
        return content

    def on_confirmed(self, number: int) -> None:
        """Take note of an outcome."""
        self.plain.on_confirmed(number)
        super().on_confirmed(number)

    def on_failed(self, number: int) -> None:
        """Take note of an outcome."""
        self.plain.on_failed(number)
        super().on_failed(number)


class Restored(KipWrites):
    """The policy itself, whose every write is held against that of a policy restored just before it."""

    written = 0

    def content(self, state: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:
        """Compare."""
        restored = KipWrites(self._policy, self.snapshot()).content(state, entries, is_final=is_final)
        content = super().content(state, entries, is_final=is_final)
        assert content == restored
        Restored.written += 1
        return content


def slow_life(seed: int) -> list[FailoverStep]:
    """Return a run in which some of the answers never come."""
    random = Random(seed)  # noqa: S311 - a replayable run
    share = random.random()
    return [
        step
        for _ in range(2)
        for step in random_steps(random)
        if step.kind not in {"answer", "crash"} or random.random() < share
    ]


@pytest.fixture(scope="module")
def slow_lives() -> list[list[FailoverStep]]:
    """Return the runs for each policy."""
    return [slow_life(seed) for seed in range(HISTORIES)]


@pytest.mark.parametrize(
    "policy",
    [
        KipWritePolicy(),
        KipWritePolicy(bound=3),
        KipWritePolicy(has_short_form=False),
        *(KipWritePolicy(amendments=frozenset(Amendment) - {amendment}) for amendment in Amendment),
    ],
    ids=lambda policy: f"{'-'.join(sorted(policy.amendments))}-{policy.bound}-{policy.has_short_form}",
)
def test_every_write_is_that_of_the_plain_rule(
    policy: KipWritePolicy, slow_lives: list[list[FailoverStep]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is unanswered, and however often a record expired meanwhile; so is that of a restored policy."""
    monkeypatch.setattr(write_policies, "KipWrites", Compared)
    Compared.written, Compared.has_expired_again = 0, False
    profile = evolve(KIP_932, write_policy=policy)
    for life in slow_lives:
        try:
            FailoverRun(profile, in_memory()).run(life)
        except FailoverError:  # without one of the amendments records are lost, which is another test's subject
            assert len(policy.amendments) < len(Amendment)

    assert Compared.written > HISTORIES
    assert Compared.has_expired_again


@pytest.mark.parametrize(
    "profile",
    [
        KIP_932,
        evolve(KIP_932, write_policy=KipWritePolicy(bound=20)),
        evolve(KIP_932, expires_per_call=False, advances_after_failed_expiry=True),
        evolve(KAFKA_4_3, write_policy=KipWritePolicy()),
    ],
    ids=["kip", "bound", "expiry by expiry", "with the bugs"],
)
@pytest.mark.parametrize("mix", [WILD, LATE], ids=["wild", "late"])
def test_what_is_kept_from_write_to_write_changes_none(
    profile: Profile, mix: Mix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever compaction, aborted transactions, log starts, gaps and failed writes do to the records meanwhile."""
    monkeypatch.setattr(write_policies, "KipWrites", Restored)
    Restored.written = 0
    for seed in seeds(HISTORIES // 2):
        for _ in converse(seeded(seed, mix), InProcessServer(profile)):
            pass

    assert Restored.written > HISTORIES


@given(st.data())
def test_a_record_that_has_expired_again_counts_as_before_the_oldest_unanswered_write(data: st.DataObject) -> None:
    """Whatever ranges the writes carry, and in whatever order they are answered."""
    expired = ExpiredRecords()
    rows: dict[int, KipWriteRow] = {}
    for number in range(data.draw(st.integers(1, 12), "steps")):
        is_answer: bool = data.draw(st.booleans(), "is an answer")
        if rows and is_answer:
            expired.remove(rows.pop(data.draw(st.sampled_from(sorted(rows)), "write")))
        else:
            offsets = data.draw(st.lists(st.integers(0, 12), unique=True, max_size=8), "boundaries")
            bounds = sorted(offsets)[: len(offsets) // 2 * 2]
            ranges = [(first, last - 1) for first, last in zip(bounds[::2], bounds[1::2], strict=True)]
            owned = tuple(StateBatch(first, last, RecordState.ACQUIRED, number) for first, last in ranges)
            rows[number] = KipWriteRow(number, -1, 13, owned)
            expired.add(rows[number])

        plain = {
            offset: count
            for row in sorted(rows.values(), reverse=True)
            for first, last, _, count in row.expired
            for offset in range(first, last + 1)
        }
        low, high = sorted(data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12)), "range"))
        found = expired.between(low, high)
        assert {
            offset: count for first, last, _, count in found for offset in range(max(first, low), min(last, high) + 1)
        } == {offset: count for offset, count in plain.items() if low <= offset <= high}
        assert all(first <= high and last >= low for first, last, *_ in found)
        assert list(found) == sorted(found)
    for row in rows.values():
        expired.remove(row)
    assert expired.between(0, 13) == []


@given(st.data())
def test_what_was_looked_at_is_kept_until_it_is_forgotten(data: st.DataObject) -> None:
    """Whatever ranges are asked for, also from lower offsets on, and whatever changes where it is forgotten."""
    unsure, offsets = UnsureRecords(), st.integers(0, 12)
    counts = data.draw(st.lists(st.none() | st.integers(0, 1), min_size=13, max_size=13), "delivery counts")

    def look(first_offset: int, last_offset: int) -> list[StateBatch]:
        records = enumerate(counts[first_offset : last_offset + 1], first_offset)
        return [StateBatch(at, at, RecordState.AVAILABLE, count) for at, count in records if count is not None]

    for _ in range(data.draw(st.integers(1, 12), "steps")):
        low, high = sorted(data.draw(st.tuples(offsets, offsets), "range"))
        if data.draw(st.booleans(), "is forgotten"):
            counts[low : high + 1] = [0 if count is None else 1 - count for count in counts[low : high + 1]]
            unsure.forget(low, high)
            low, high = sorted(data.draw(st.tuples(offsets, offsets), "range"))
        assert tuple(unsure.between(low, high, look)) == merged(look(low, high))
