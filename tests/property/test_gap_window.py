"""A new leader whose gap window is about as large as what may be in flight gets all of it done."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_3,
    KIP_932,
    AcknowledgementBatch,
    AcknowledgeType,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    Profile,
    Quirk,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sharestate import Effects

LIVES: Final = 500
STEPS: Final = 30
PATIENCE: Final = 60
"""After so many fetches, of which none meets a hindrance any more, everything is done."""
BEYOND: Final = 12
"""How many records of the log nobody has acquired yet. [records]"""
LOCK_MS: Final = 100
MEMBERS: Final = ("m1", "m2")
KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
PERSISTED: Final = (RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
TERMINAL: Final = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}

HEALED: Final = [KAFKA_4_3.healed, KIP_932]
WAITING: Final = evolve(KAFKA_4_3.healed, quirks=frozenset({Quirk.WAITS_AT_WINDOW_END}))


class Life:
    """A share partition from the moment at which its new leader reads what the old one has persisted."""

    def __init__(self, profile: Profile, seed: int) -> None:
        """Read a state with gaps; the log has the records of all of them."""
        self.random = Random(seed)  # noqa: S311 - a replayable life
        most = self.random.randint(4, 12)
        end = most + self.random.randint(-3, 6)
        batches, offset = [], 0
        while offset < end:
            last = min(offset + self.random.randrange(4), end - 1)
            if last == end - 1 or self.random.random() < 0.6:
                batches.append(StateBatch(offset, last, self.random.choice(PERSISTED), 1))
            offset = last + 1
        self.log = range(end + BEYOND)
        self.now_ms = 0
        self.pending: list[int] = []
        self.final: set[int] = set()
        """Writes of expiries, where nothing would pass what they have archived if they failed."""
        self.partition = SharePartition(
            SharePartitionKey(group_id="g", topic_id="t", partition=0),
            profile=profile,
            config=ShareConfig(max_record_locks=most, delivery_count_limit=3, record_lock_duration_ms=LOCK_MS),
        )
        self.partition.initialize()
        self.partition.read_succeeded(PersistedState(start_offset=0, state_batches=batches))

    @property
    def is_done(self) -> bool:
        """Whether the SPSO has passed the whole log."""
        return self.partition.start_offset > self.log[-1]

    def live(self) -> None:
        """Let members do what they like, and the persister too."""
        for _ in range(STEPS):
            self.random.choice(
                [self.fetch, self.fetch, self.acknowledge, self.acknowledge, self.release, self.expire]
            )()
            if self.random.random() < 0.6:
                self.answer(self.random.choice([True, True, False]))

    def finish(self) -> None:
        """Let one member accept whatever it is given, every lock expire, and every write succeed."""
        for _ in range(PATIENCE):
            self.now_ms += LOCK_MS + 1
            self.expire()
            while self.pending:
                self.answer(is_confirmed=True)
            self.fetch()
            for first, last in self.held(MEMBERS[0]):
                self.say(MEMBERS[0], [AcknowledgementBatch(first, last, (AcknowledgeType.ACCEPT,))])

    def fetch(self) -> None:
        """Let the first member, or in the end whoever comes, acquire what is to be fetched next."""
        offset = self.partition.next_fetch_offset()
        rest = [found for found in self.log if found >= offset]
        if not rest or not self.partition.can_acquire():
            return
        size = self.random.randint(1, 5)
        parts = [rest[index : index + size] for index in range(0, len(rest), size)][:2]
        batches = [RecordBatch(part[0], part[-1]) for part in parts]
        fetched = FetchedRecords(fetch_offset=offset, batches=batches)
        member = self.random.choice(MEMBERS) if self.random.random() < 0.5 else MEMBERS[0]
        self.command(lambda: self.partition.acquire(member, fetched, now_ms=self.now_ms))

    def acknowledge(self) -> None:
        """Let a member say something of one range that it holds."""
        member = self.random.choice(MEMBERS)
        held = self.held(member)
        if held:
            first, last = self.random.choice(held)
            low = self.random.randint(first, last)
            high = self.random.randint(low, last)
            self.say(member, [AcknowledgementBatch(low, high, (self.random.choice(KINDS),))])

    def held(self, member: str) -> list[tuple[int, int]]:
        """Return the ranges that *member* holds."""
        return [
            (max(run.first_offset, self.partition.start_offset), run.last_offset)
            for batch in self.partition.batches()
            for run in batch.runs
            if run.member_id == member and run.last_offset >= self.partition.start_offset
        ]

    def say(self, member: str, batches: Sequence[AcknowledgementBatch]) -> None:
        """Acknowledge."""
        self.command(lambda: self.partition.acknowledge(member, batches, now_ms=self.now_ms))

    def release(self) -> None:
        """Close a session."""
        self.command(lambda: self.partition.release(self.random.choice(MEMBERS), now_ms=self.now_ms))

    def expire(self) -> None:
        """Let some time pass, and the locks with it."""
        self.now_ms += self.random.randrange(LOCK_MS)
        answered = len(self.pending)
        while self.command(lambda: self.partition.expire_next(now_ms=self.now_ms)):
            pass
        if not self.partition.profile.advances_after_failed_expiry:
            self.final.update(self.pending[answered:])

    def answer(self, is_confirmed: bool) -> None:  # noqa: FBT001 - the outcome
        """Answer one of the writes."""
        if self.pending:
            number = self.pending.pop(self.random.randrange(len(self.pending)))
            if is_confirmed or number in self.final:
                self.command(lambda: self.partition.write_succeeded(number))
            else:
                self.command(lambda: self.partition.write_failed(number, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def command(self, run: Callable[[], Effects | None]) -> bool:
        """Run a command, and hold against it every record of the log that the SPSO passes without being done."""
        before = {
            offset: run.state
            for batch in self.partition.batches()
            for run in batch.runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        start = self.partition.start_offset
        effects = run()
        self.partition.check()
        passed = range(start, self.partition.start_offset)
        assert [offset for offset in self.log if offset in passed and before.get(offset) not in TERMINAL] == []
        self.pending += [] if effects is None else [write.number for write in effects.writes]
        return effects is not None


def stalls(profile: Profile, seed: int) -> bool:
    """Return whether a life ends without everything done."""
    life = Life(profile, seed)
    life.live()
    life.finish()
    return not life.is_done


@pytest.mark.parametrize("profile", HEALED, ids=lambda profile: profile.name)
def test_healed_of_b17_everything_is_done_in_the_end(profile: Profile) -> None:
    """However large the window, and whatever the members and the persister do before."""
    assert [seed for seed in range(LIVES) if stalls(profile, seed)] == []


def test_with_b17_some_share_partitions_stall_for_ever() -> None:
    """The same lives, without any other bug: those whose window is full do not go on."""
    assert sum(stalls(WAITING, seed) for seed in range(LIVES)) > LIVES // 20
