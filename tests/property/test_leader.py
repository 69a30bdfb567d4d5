"""What is true of a leader whatever its persister and its dead-letter queue answer, and when."""

from __future__ import annotations

from concurrent.futures import Future
from random import Random
from typing import Any

import pytest
from attrs import Factory, define
from hypothesis import given
from hypothesis import strategies as st

from sharestate import (
    PROFILES,
    AcknowledgementBatch,
    DeadLetterFailedError,
    DeadLetterRequest,
    ErrorCode,
    FetchedRecords,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    InvalidRecordStateError,
    Leader,
    PollResult,
    Profile,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
)
from sharestate.dead_letters import HeldDeadLetterRequest
from sharestate.persister import HeldRequest, InitializeStateParameters, PartitionStateData

KEY = SharePartitionKey(group_id="g", topic_id="t", partition=0)
LOG_END = 40
LOCK_MS = 100
MEMBERS = ("m1", "m2")
TERMINAL = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
REJECT = 3
DONE = {1, REJECT}
"""The acknowledgement types after which a record is never delivered again: ACCEPT and REJECT."""

CODES = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_STATE_EPOCH,
)


@define
class Model:
    """A leader, its surroundings, its log of batches of five records, and what members were promised."""

    profile: Profile
    persister: InMemoryPersister = Factory(InMemoryPersister)
    queue: InMemoryDeadLetterQueue = Factory(InMemoryDeadLetterQueue)
    now_ms: int = 0
    promised: list[tuple[Future[None], set[int]]] = Factory(list)
    """What was promised, and the records that are done once the promise is kept."""

    rejected: list[tuple[Future[None], set[int]]] = Factory(list)
    """The rejections among them."""

    failed: list[DeadLetterRequest] = Factory(list)
    """The requests to the dead-letter queue that were reported as failed."""

    def lead(self, leader_epoch: int) -> Leader:
        """Return a new leader that has loaded what is persisted."""
        config = ShareConfig(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=3,
            max_record_locks=30,
            dead_letter_queue=self.profile.has_dead_letter_queue,
        )
        partition = SharePartition(KEY, leader_epoch=leader_epoch, profile=self.profile, config=config)
        leader = Leader(partition, self.persister, reset_offset=lambda _: 0, dead_letter_queue=self.queue)
        leader.start(now_ms=self.now_ms).result(timeout=0)
        return leader

    def step(self, leader: Leader, what: str, one: int, two: int) -> None:
        """Take one step; *one* and *two* say which."""
        member = MEMBERS[one % 2]
        match what:
            case "acquire":
                first = leader.partition.next_fetch_offset() // 5 * 5
                batches = [RecordBatch(at, at + 4) for at in range(first, min(LOG_END, first + 5 * (two % 3 + 1)), 5)]
                leader.acquire(member, FetchedRecords(fetch_offset=first, batches=batches), now_ms=self.now_ms)
            case "acknowledge":
                self.acknowledge(leader, member, two)
            case "release":
                self.promised.append((leader.release(member, now_ms=self.now_ms), set()))
            case "wait":
                self.now_ms += two
                self.note(leader.poll(now_ms=self.now_ms))
            case _:
                self.answer(what, one, CODES[two % len(CODES)])

    def acknowledge(self, leader: Leader, member: str, choice: int) -> None:
        """Acknowledge a part of what *member* holds."""
        runs = [run for batch in leader.partition.batches() for run in batch.runs if run.member_id == member]
        if not runs:
            return
        run = runs[choice % len(runs)]
        last = run.first_offset + choice % (run.last_offset - run.first_offset + 1)
        type_ = (1, 2, 3)[choice % 3]
        said = [AcknowledgementBatch(run.first_offset, last, (type_,))]
        try:
            future = leader.acknowledge(member, said, now_ms=self.now_ms)
        except InvalidRecordStateError:  # its lock has expired
            return
        records = set(range(run.first_offset, last + 1))
        self.promised.append((future, records if type_ in DONE else set()))
        if type_ == REJECT:
            self.rejected.append((future, records))

    def answer(self, how: str, which: int, code: ErrorCode) -> None:
        """Answer one of the requests that are held, in whatever way."""
        held: list[HeldRequest[Any, Any] | HeldDeadLetterRequest] = [*self.persister.held, *self.queue.held]
        if not held:
            return
        request = held[which % len(held)]
        match request, how:
            case HeldDeadLetterRequest(), "fail" | "throw":
                request.fail(OSError("full"))
            case HeldDeadLetterRequest(), "lose":
                request.lose(OSError("too late"))
            case HeldRequest(), "fail":
                request.fail(code)
            case HeldRequest(), "throw":
                request.throw(OSError("broken"))
            case HeldRequest(), "lose":
                request.lose()
            case _:
                request.answer()

    def note(self, result: PollResult) -> None:
        """Note which dead letters were not written."""
        errors = [error for error in result.errors if isinstance(error, DeadLetterFailedError)]
        self.failed += [error.request for error in errors if error.request is not None]

    def accounted_for(self) -> set[int]:
        """Return the records that have a dead letter, or of which it was reported that they may have none."""
        written = {int(dict(record.headers)["__dlq.errors.offset"]) for record in self.queue.records}
        return written | {
            offset for request in self.failed for offset in range(request.first_offset, request.last_offset + 1)
        }


def kept(promises: list[tuple[Future[None], set[int]]]) -> set[int]:
    """Return the records of the promises that were kept."""
    return {offset for future, offsets in promises if future.exception(timeout=0) is None for offset in offsets}


def done(partition: SharePartition) -> set[int]:
    """Return the records that *partition* never delivers again."""
    return set(range(partition.start_offset)) | {
        offset
        for batch in partition.batches()
        for run in batch.runs
        if run.state in TERMINAL
        for offset in range(run.first_offset, run.last_offset + 1)
    }


def steps(*answers: str) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    """Return lists of steps in which what is held is answered in one of the ways of *answers*."""
    kinds = ("acquire", "acknowledge", "acknowledge", "release", "wait", *answers, *answers)

    def draw(random: Random) -> list[tuple[str, int, int]]:
        # Of fewer steps, hardly any get as far as an answer to what follows on an answer.
        return [
            (random.choice(kinds), random.randrange(31), random.randrange(61)) for _ in range(random.randint(30, 60))
        ]

    return st.randoms(use_true_random=False).map(draw)  # half of the cost of a list of tuples


def lived(profile: Profile, taken: list[tuple[str, int, int]], *, closes: bool = False) -> tuple[Model, Leader]:
    """
    Return a leader after *taken*, with everything answered at last.

    If it *closes*, it has been replaced before the dead-letter queue has answered.
    """
    model = Model(profile)
    entry = PartitionStateData(partition=0)
    model.persister.initialize_state(InitializeStateParameters.of("g", "t", entry)).result(timeout=0)
    leader = model.lead(1)
    model.persister.is_holding = model.queue.is_holding = True
    for what, one, two in taken:
        model.step(leader, what, one, two)
        leader.partition.check()
    model.persister.is_holding = False
    if closes:
        while model.persister.held:
            model.answer("answer", 0, ErrorCode.NONE)
        model.note(leader.close())
        leader = model.lead(2)
    model.queue.is_holding = False
    while leader.unanswered:
        model.answer("answer", 0, ErrorCode.NONE)
        model.note(leader.poll(now_ms=model.now_ms))
        leader.partition.check()
    model.note(leader.poll(now_ms=model.now_ms))
    return model, leader


every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
with_a_queue = pytest.mark.parametrize(
    "profile",
    [profile for profile in PROFILES.values() if profile.has_dead_letter_queue],
    ids=lambda profile: profile.name,
)


@every_profile
@given(taken=steps("answer"))
def test_a_new_leader_goes_on_where_the_old_one_stopped(profile: Profile, taken: list[tuple[str, int, int]]) -> None:
    """When all writes were confirmed, in whatever order, a new leader agrees on what is done."""
    model, leader = lived(profile, taken)

    assert done(model.lead(2).partition) == done(leader.partition)


@every_profile
@given(taken=steps("answer", "fail", "lose", "throw"))
def test_confirmed_acknowledgements_are_not_lost(profile: Profile, taken: list[tuple[str, int, int]]) -> None:
    """Every future ends, and no record that its member was told is done is delivered again by a new leader."""
    model, _ = lived(profile, taken)

    for future, _ in model.promised:
        assert future.done()
        assert isinstance(future.exception(timeout=0), ShareStateError | None)
    assert done(model.lead(2).partition) >= kept(model.promised)


@pytest.mark.parametrize("closes", [False, True], ids=["one leader", "two leaders"])
@with_a_queue
@given(taken=steps("answer", "fail", "lose", "throw"))
def test_dead_letters_are_written_or_reported(
    profile: Profile,
    closes: bool,  # noqa: FBT001 - a parameter of the test
    taken: list[tuple[str, int, int]],
) -> None:
    """No dead letter of a rejected record gets lost in silence, and no record waits for the queue for ever."""
    model, leader = lived(profile, taken, closes=closes)

    assert model.accounted_for() >= kept(model.rejected)
    assert RecordState.ARCHIVING not in {run.state for batch in leader.partition.batches() for run in batch.runs}
