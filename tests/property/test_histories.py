"""What a history writer writes replays to the same life, whatever the persister and the queue answer, and when."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import Factory, define, evolve
from hypothesis import given
from hypothesis import strategies as st

from sharestate import (
    PROFILES,
    AbortedTransaction,
    AcknowledgementBatch,
    AcquireMode,
    AutoOffsetReset,
    ControlType,
    ErrorCode,
    FetchedRecords,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    IsolationLevel,
    Leader,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
)
from sharestate.dead_letters import HeldDeadLetterRequest
from sharestate.history import OUTPUTS, Event, HistoryWriter, Replay
from sharestate.history.arrow import EventDecoder, encode_events
from sharestate.history.events import read_event, write_event
from sharestate.json_lines import read_json, write_json
from sharestate.persister import HeldRequest, InitializeStateParameters, PartitionStateData

KEY = SharePartitionKey(group_id="g", topic_id="t", partition=0)
LOCK_MS = 100
MEMBERS = ("m1", "m2", "")
CODES = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
COMMANDS = ("fetch", "fetch", "acknowledge", "acknowledge", "acknowledge", "release", "log_start", "configure", "ask")
ANSWERS = ("answer", "answer", "fail", "lose", "throw")
Step = tuple[str, int, int]


@define
class Life:
    """A leader after another, and the events that they have written."""

    profile: Profile
    persister: InMemoryPersister = Factory(InMemoryPersister)
    queue: InMemoryDeadLetterQueue = Factory(InMemoryDeadLetterQueue)
    events: list[Event] = Factory(list)
    writer: HistoryWriter = Factory(lambda life: HistoryWriter(life.events.extend), takes_self=True)
    leader: Leader | None = None
    now_ms: int = 0
    leader_epoch: int = 0

    @property
    def config(self) -> ShareConfig:
        """The config with which leaders begin."""
        return ShareConfig(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=3,
            max_record_locks=30,
            auto_offset_reset=AutoOffsetReset.earliest(),
            dead_letter_queue=self.profile.has_dead_letter_queue,
        )

    def lead(self) -> Leader:
        """Let the next leader take over."""
        self.leader_epoch += 1
        partition = SharePartition(KEY, leader_epoch=self.leader_epoch, profile=self.profile, config=self.config)
        leader = Leader(
            partition,
            self.persister,
            reset_offset=lambda _: 3,
            dead_letter_queue=self.queue,
            observer=self.writer,
        )
        holding = self.persister.is_holding
        self.persister.is_holding = False
        leader.start(now_ms=self.now_ms)
        self.persister.is_holding = holding
        self.leader = leader
        return leader

    def step(self, leader: Leader, what: str, one: int, two: int) -> None:
        """Take one step; *one* and *two* say which."""
        member = MEMBERS[one % 3]
        match what:
            case "fetch":
                self.fetch(leader, member, one, two)
            case "acknowledge":
                self.acknowledge(leader, member, one, two)
            case "release":
                leader.release(member, now_ms=self.now_ms)
            case "log_start":
                leader.advance_log_start(leader.partition.start_offset + two % 4, now_ms=self.now_ms)
            case "configure":
                config = evolve(self.config, record_lock_duration_ms=LOCK_MS + one, delivery_count_limit=2 + two % 3)
                leader.configure(config, now_ms=self.now_ms)
            case "ask":
                (leader.can_acquire if one % 2 else leader.next_fetch_offset)(now_ms=self.now_ms)
            case _:
                self.happen(leader, what, one, two)

    def happen(self, leader: Leader, what: str, one: int, two: int) -> None:
        """Let something happen that no member asks for."""
        match what:
            case "wait":
                self.now_ms += two
            case "poll":
                leader.poll(now_ms=self.now_ms)
            case "take_over":
                if one % 2:
                    leader.fence(now_ms=self.now_ms)
                self.lead()
            case "hold":
                self.persister.is_holding = self.queue.is_holding = one % 3 > 0
            case _:
                self.answer(what, one, CODES[two % len(CODES)])

    def fetch(self, leader: Leader, member: str, one: int, two: int) -> None:
        """Fetch batches of five records, of which every fourth belongs to an aborted transaction."""
        offset = leader.next_fetch_offset(now_ms=self.now_ms)
        first = offset // 5
        batches = [
            RecordBatch(
                5 * at, 5 * at + 3 + at % 2, at % 4 - 1, at % 4 == 3, ControlType.ABORT if at % 12 == 11 else None
            )
            for at in range(first, first + 1 + two % 3)
        ]
        leader.acquire(
            member,
            FetchedRecords(
                fetch_offset=offset,
                batches=batches,
                aborted_transactions=[AbortedTransaction(2, 0)],
                isolation=list(IsolationLevel)[one % 5 // 4],
            ),
            now_ms=self.now_ms,
            max_records=1 + two,
            batch_size=1 + one,
            mode=list(AcquireMode)[one % 2],
        )

    def acknowledge(self, leader: Leader, member: str, one: int, two: int) -> None:
        """Acknowledge a part of what is in flight, which *member* may hold or not."""
        runs = [run for batch in leader.partition.batches() for run in batch.runs]
        if not runs:
            return
        run = runs[two % len(runs)]
        last = run.first_offset + two % (run.last_offset - run.first_offset + 1)
        said = [AcknowledgementBatch(run.first_offset, last, ((one + two) % 5,))]
        owner = member if one % 7 == 6 else run.member_id
        try:
            leader.acknowledge(owner, said, now_ms=self.now_ms)
        except ShareStateError:  # refused, which is what the history says too
            return

    def answer(self, how: str, which: int, code: ErrorCode) -> None:
        """Answer one of the requests that are held, in whatever way."""
        held: list[HeldRequest[Any, Any] | HeldDeadLetterRequest] = [*self.persister.held, *self.queue.held]
        if not held:
            return
        request = held[which % len(held)]
        match request, how:
            case HeldDeadLetterRequest(), "answer":
                request.answer()
            case HeldDeadLetterRequest(), _:
                request.fail(OSError("full"))
            case HeldRequest(), "fail":
                request.fail(code)
            case HeldRequest(), "throw":
                request.throw(OSError("broken"))
            case HeldRequest(), "lose":
                request.lose()
            case _:
                request.answer()


KINDS = (*COMMANDS, *ANSWERS, *ANSWERS, "wait", "wait", "poll", "hold", "take_over")


def steps_of(drawn: list[bytes]) -> list[Step]:
    """Return the steps of which three bytes say one each: 0 is the first kind, and the least number."""
    in_threes = iter(b"".join(drawn))
    return [
        (KINDS[what * len(KINDS) >> 8], one * 31 >> 8, two * 61 >> 8)
        for what, one, two in zip(in_threes, in_threes, in_threes, strict=True)
    ]


steps = st.lists(st.binary(min_size=15, max_size=15), min_size=5, max_size=12).map(steps_of)
"""Steps in fives: Hypothesis draws fifteen bytes in half the time that it takes for the three values of a step."""


def lived(profile: Profile, taken: list[Step]) -> Life:
    """Return a life after *taken*."""
    life = Life(profile)
    entry = PartitionStateData(partition=0)
    life.persister.initialize_state(InitializeStateParameters.of("g", "t", entry)).result(timeout=0)
    life.lead()
    for what, one, two in taken:
        assert life.leader is not None
        life.step(life.leader, what, one, two)
    return life


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
@given(taken=steps)
def test_a_recorded_life_replays_to_the_same(profile: Profile, taken: list[Step]) -> None:
    """Every acquisition, answer and write is as observed, and the share partition ends as the leader's."""
    life = lived(profile, taken)
    assert life.leader is not None
    life.leader.configure(life.config, now_ms=life.now_ms)
    replay = Replay((KEY.group_id, KEY.topic_id, KEY.partition), outputs=frozenset({"difference"}))

    differences = [row.values for event in life.events for row in replay.apply(event)]

    assert differences == []
    assert replay.snapshot() == life.leader.partition.snapshot()


@given(taken=steps, cut=st.integers(0, 200))
def test_a_recorded_life_goes_through_files_and_restarts(taken: list[Step], cut: int) -> None:
    """A life that was written as JSON, as Arrow, and replayed in two parts, makes the same rows as in one."""
    life = lived(PROFILES["kafka-4.4"], taken)
    everything = frozenset(OUTPUTS)
    through_json = [read_event(read_json(write_json(write_event(event)))) for event in life.events]
    through_arrow = list(EventDecoder().decode(encode_events(life.events)))
    whole = Replay(life.events[0].key, outputs=everything)
    first = Replay(life.events[0].key, outputs=everything)

    expected = [row for event in through_json for row in whole.apply(event)] + whole.finish()
    rows = [row for event in through_arrow[:cut] for row in first.apply(event)]
    second = Replay.restore(first.state(), outputs=everything)
    rows += [row for event in through_arrow[cut:] for row in second.apply(event)] + second.finish()

    assert through_json == through_arrow
    assert rows == expected
