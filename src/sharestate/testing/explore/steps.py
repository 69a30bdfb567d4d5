"""What an event makes of a state, and what is said to the leader in the line protocol meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from attrs import field, frozen

from sharestate.conversation.to_json import KEY
from sharestate.coordinator import COORDINATOR_PROFILES, LATEST_COORDINATOR, CoordinatorProfile
from sharestate.coordinator.records import ShareUpdate
from sharestate.coordinator.stored_state import StoredState, after_update
from sharestate.errors import ErrorCode, InvariantError, ShareStateError
from sharestate.json_lines import Json
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.testing.explore.configuration import LOCK_DURATION_MS, Configuration, log_batch_json, stored_json
from sharestate.testing.explore.events import Event, ExploredEventKind
from sharestate.testing.explore.explored_state import ExploredState, Left, UnansweredWrite
from sharestate.testing.explore.step_limit import STEP_LIMIT_S, begin_step, end_step
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.checks import refuse
from sharestate.values.effects import Cause, Effects, Transition
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.profiles import Profile, Quirk
from sharestate.values.records import AcquiredRecords, RecordState
from sharestate.values.requests import PersistedState, StateBatch, WriteShareGroupState
from sharestate.values.transaction_index import TransactionIndex

BETWEEN_LOCKS_MS: Final = 60_000
"""The time before locks begin, so that those of different fetches expire one after the other. [ms]"""

_FAILURE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE

_NOT_FINISHED: Final = frozenset(
    {Cause.READ, Cause.PASSED, Cause.ROLLED_BACK, Cause.BELOW_LOG_START, Cause.COMPACTED_AWAY}
)
"""The causes of transitions that finish no record; what is gone the log does not have."""

_GIVES_UP: Final = frozenset({Cause.RELEASED, Cause.LOCK_EXPIRED, Cause.SESSION_CLOSED, Cause.ARCHIVED_AT_LIMIT})
"""The causes of transitions that finish a record only if it was delivered often enough."""


class Step(NamedTuple):
    """
    What an event has made of a state.

    Attributes:
        event: The event.
        after: The state after it.
        acquired: What a member has acquired by it.
        transitions: Which records have changed, and why.
        requests: What was said to the leader in the line protocol.
        error: The type and the text of the exception that it has raised; empty for none. The state is that before.
    """

    event: Event
    after: ExploredState
    acquired: tuple[AcquiredRecords, ...]
    transitions: tuple[Transition, ...]
    requests: tuple[Json, ...]
    error: str = ""


@frozen(kw_only=True)
class ExploredGroup:
    """All that a leader has around it, and that stays as it is during an exploration."""

    configuration: Configuration
    profile: Profile
    transactions: TransactionIndex = field(init=False)

    @transactions.default
    def _index(self) -> TransactionIndex:
        return TransactionIndex(self.configuration.log)

    @property
    def coordinator(self) -> CoordinatorProfile:
        """The rules of the share coordinator; without bugs, those of the newest release."""
        return COORDINATOR_PROFILES.get(self.profile.name, LATEST_COORDINATOR)

    def isolation(self, state: ExploredState) -> IsolationLevel:
        """Return the isolation level of the group in *state*."""
        return IsolationLevel.READ_UNCOMMITTED if state.left.switches else self.configuration.isolation

    def readable_end(self, state: ExploredState) -> int:
        """Return the offset before which fetches end: the last stable offset, if the group reads what is committed."""
        is_committed = self.isolation(state) is IsolationLevel.READ_COMMITTED
        return self.transactions.last_stable_offset if is_committed else self.transactions.next_offset

    def fetched(self, state: ExploredState, offset: int, batches: int) -> FetchedRecords:
        """Return what a fetch of so many batches brings."""
        log = [self.configuration.log[position] for position in state.log]
        return FetchedRecords.from_log(
            log, self.transactions, fetch_offset=offset, max_batches=batches, isolation=self.isolation(state)
        )

    def begin(self) -> Step:
        """
        Return the step to the state in the beginning.

        Raises:
            MalformedInputError: What is stored is nothing that a share coordinator stores.
        """
        configuration = self.configuration
        stored = configuration.stored
        left = Left(
            configuration.failures,
            configuration.failovers,
            configuration.log_starts,
            configuration.compactions,
            configuration.switches,
        )
        leading = Leading(self, SharePartition(KEY))
        error = leading.take_over(stored, 0)
        if error is not None:
            refuse(f"expected what a share coordinator stores: {error}", "stored")
        finished = {
            offset
            for first, last, state, _ in stored.state_batches
            if state in TERMINAL
            for offset in range(first, last + 1)
        } | set(range(stored.start_offset))
        before = ExploredState(
            leading.partition.snapshot(),
            0,
            tuple(range(len(configuration.log))),
            0,
            stored,
            (),
            left,
            frozenset(),
            frozenset(finished),
        )
        return leading.step(before, Event(ExploredEventKind.FAIL_OVER), before)


class Leading:
    """A leader during one event: what it is asked and what comes of it."""

    def __init__(self, surroundings: ExploredGroup, partition: SharePartition) -> None:
        """Go on with *partition*, which is changed."""
        self.surroundings = surroundings
        self.partition = partition
        self.requests: list[Json] = []
        self.acquired: tuple[AcquiredRecords, ...] = ()
        self.transitions: list[Transition] = []
        self.writes: list[WriteShareGroupState] = []

    def take_over(self, stored: PersistedState, leader_epoch: int) -> ShareStateError | None:
        """Let a new leader read *stored*; return the error if it does not take it over."""
        configuration = self.surroundings.configuration
        self.partition = SharePartition(
            KEY,
            leader_epoch=leader_epoch,
            profile=self.surroundings.profile,
            config=configuration.share_config,
            record_transitions=True,
        )
        config = {
            "max_record_locks": configuration.max_record_locks,
            "delivery_count_limit": configuration.delivery_count_limit,
            "record_lock_duration_ms": LOCK_DURATION_MS,
            **({"dlq_topic": "dlq"} if configuration.dead_letter_queue else {}),
        }
        self.say("open", leader_epoch=leader_epoch, config=config)
        self.say("default_answer", answer="hold")
        self.say("default_dlq_answer", answer="hold")
        self.say("initialize", answer=stored_json(stored))
        self.partition.initialize()
        effects = self.partition.read_succeeded(stored)
        self.carry_out(effects)
        return effects.error

    def say(self, op: str, **members: Json) -> None:
        """Note a request."""
        self.requests.append({"op": op, **members})

    def carry_out(self, effects: Effects) -> None:
        """Note what a command has done."""
        self.acquired += effects.acquired
        self.transitions += effects.transitions
        self.writes += effects.writes

    def expire(self, now_ms: int) -> None:
        """Handle the locks that have expired."""
        while (effects := self.partition.expire_next(now_ms=now_ms)) is not None:
            self.carry_out(effects)

    def step(
        self,
        before: ExploredState,
        event: Event,
        changed: ExploredState,
        *,
        accepted: tuple[int, ...] = (),
        is_stored: bool = False,
    ) -> Step:
        """
        Return the step from *before* to *changed*, with what the leader has come to.

        What it sends will confirm that *accepted* are; a write that was answered *is_stored* or not.
        """
        sent = [
            UnansweredWrite(write.number, write.start_offset, tuple(write.state_batches), accepted)
            for write in self.writes
        ]
        after = changed._replace(
            leader=self.partition.snapshot(),
            sent=(*changed.sent, *sent),
            finished=_finished(
                before.finished,
                self.transitions,
                self.surroundings.configuration.delivery_count_limit,
                is_stored=is_stored,
            ),
        )
        return Step(event, after, self.acquired, tuple(self.transitions), tuple(self.requests))


def _finished(
    before: frozenset[int], transitions: Iterable[Transition], limit: int, *, is_stored: bool
) -> frozenset[int]:
    """
    Return what is finished after *transitions*, with this delivery limit.

    What was rolled back is not, unless it is stored all the same, or was archived meanwhile.
    """
    finished = set(before)
    for change in transitions:
        offsets = range(change.first_offset, change.last_offset + 1)
        if change.state in TERMINAL and change.cause not in _NOT_FINISHED:
            if change.cause not in _GIVES_UP or change.delivery_count >= limit:
                finished.update(offsets)
        elif change.cause is Cause.ROLLED_BACK and not is_stored and change.state is not RecordState.ARCHIVED:
            finished.difference_update(offsets)
    return before if finished == before else frozenset(finished)


def take(surroundings: ExploredGroup, state: ExploredState, partition: SharePartition, event: Event) -> Step | None:
    """
    Return the step from *state* by *event*; None if nothing is asked of the leader.

    *partition* is the leader of *state*, and is changed, but for events WITHOUT_LEADER. An exception is a step, too,
    whose last request has raised it.
    """
    leading = Leading(surroundings, partition)
    begin_step(STEP_LIMIT_S)
    try:
        step = _TAKE[event.kind](leading, state, event)
        if step is not None:
            _expect_writes(step.after)
    except Exception as error:  # noqa: BLE001 - whatever it is, a conversation shows how to get there
        return Step(event, state, (), (), tuple(leading.requests), raised(error))
    finally:
        end_step()
    return step


def _expect_writes(state: ExploredState) -> None:
    """Assert that the leader waits for the writes that wait for an answer, by whose names states differ."""
    known, sent = {write.number for write in state.leader.writes}, {each.number for each in state.sent}
    if not sent <= known:
        message = f"the leader waits for the writes {sorted(known)}, and {sorted(sent)} are sent"
        raise InvariantError(message)


def raised(error: Exception) -> str:
    """Return the type of *error*, and what it says."""
    return f"{type(error).__name__}: {error}"


# ---- members


def fetchable(surroundings: ExploredGroup, state: ExploredState, partition: SharePartition) -> int:
    """Return the most batches that a fetch brings in *state*; 1 if it is out of range. *partition* is changed."""
    if not partition.can_acquire():
        return 0
    offset = partition.next_fetch_offset()
    return 1 if offset < state.log_start else len(surroundings.fetched(state, offset, max(1, len(state.log))).batches)


def _fetch(leading: Leading, state: ExploredState, event: Event) -> Step:
    partition = leading.partition
    leading.say("can_acquire")
    partition.can_acquire()
    leading.say("next_fetch_offset")
    offset = partition.next_fetch_offset()
    if offset < state.log_start:
        leading.say("log_start", offset=state.log_start)
        leading.carry_out(partition.advance_log_start(state.log_start))
        return leading.step(state, event, state)
    batches, size = event.numbers
    fetched = leading.surroundings.fetched(state, offset, batches)
    now_ms = _let_time_pass(leading, state)
    mode = leading.surroundings.configuration.mode
    leading.say(
        "acquire",
        member=event.member,
        mode=mode.value,
        batch_size=500,
        max_records=size,
        fetch_offset=offset,
        batches=[log_batch_json(batch) for batch in fetched.batches],
        aborted=[list(aborted) for aborted in fetched.aborted_transactions],
        isolation=fetched.isolation.value,
    )
    leading.carry_out(partition.acquire(event.member, fetched, now_ms=now_ms, max_records=size, mode=mode))
    return leading.step(state, event, state)


def has_time(state: ExploredState) -> bool:
    """Return whether time may pass in *state* before the next deadline; else locks that begin are as old as others."""
    now_ms = state.leader.now_ms
    left = (lock.deadline_ms - now_ms for lock in state.leader.locks if lock.deadline_ms >= now_ms)
    return all(each // 2 for each in left)  # half of it passes, and the deadline does not come


def _let_time_pass(leading: Leading, state: ExploredState) -> int:
    """Let some time pass in which no lock expires, if none is due already, and return the time. [ms]"""
    now_ms = state.leader.now_ms
    deadline = leading.partition.next_deadline_ms()
    if deadline is not None and deadline <= now_ms:
        return now_ms
    room = LOCK_DURATION_MS if deadline is None else deadline - now_ms - 1
    passed = BETWEEN_LOCKS_MS if room > BETWEEN_LOCKS_MS else room // 2
    leading.say("advance", ms=passed)
    return now_ms + passed


def _acknowledge(leading: Leading, state: ExploredState, event: Event) -> Step:
    first, last, type_ = event.numbers
    held = [
        (max(first, run.first_offset), min(last, run.last_offset))
        for batch in leading.partition.batches()
        for run in batch.runs
        if run.member_id == event.member and run.first_offset <= last and run.last_offset >= first
    ]
    batches = [AcknowledgementBatch(low, high, (type_,)) for low, high in held]
    now_ms = _let_time_pass(leading, state) if type_ == AcknowledgeType.RENEW else state.leader.now_ms
    leading.say("acknowledge", member=event.member, batches=[[low, high, [type_]] for low, high in held])
    leading.carry_out(leading.partition.acknowledge(event.member, batches, now_ms=now_ms))
    offsets = [offset for low, high in held for offset in range(low, high + 1)]
    accepted = tuple(offsets) if type_ == AcknowledgeType.ACCEPT else ()
    return leading.step(state, event, state, accepted=accepted)


def _close(leading: Leading, state: ExploredState, event: Event) -> Step:
    leading.say("release", member=event.member)
    leading.carry_out(leading.partition.release(event.member, now_ms=state.leader.now_ms))
    return leading.step(state, event, state)


def _deadline(leading: Leading, state: ExploredState, event: Event) -> Step | None:
    deadline = leading.partition.next_deadline_ms()
    if deadline is None:
        return None
    now_ms = max(deadline, state.leader.now_ms)  # a lock that begins again may be due at once (rule 1.7)
    leading.say("advance", ms=now_ms - state.leader.now_ms)
    leading.expire(now_ms)
    if leading.writes and len(state.sent) >= leading.surroundings.configuration.writes:
        return None  # it waits for answers; where nothing waits, all that expires at once is written at once
    return leading.step(state, event, state)


# ---- writes and dead letters


def _store(leading: Leading, state: ExploredState, event: Event) -> Step:
    (number,) = event.numbers
    sent = _sent(state, number)
    after = state._replace(
        stored=stored_after(state.stored, sent, leading.surroundings.coordinator),
        sent=tuple(each._replace(is_stored=True) if each.number == number else each for each in state.sent),
    )
    return _without_leader(event, after)


def stored_after(stored: PersistedState, write: UnansweredWrite, rules: CoordinatorProfile) -> PersistedState:
    """Return what the share coordinator has after *write*."""
    start_offset = write.start_offset
    if not rules.lets_start_offset_move_back:
        start_offset = max(start_offset, stored.start_offset)
    update = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=start_offset, state_batches=write.state_batches)
    before = StoredState(
        state_epoch=0, start_offset=stored.start_offset, highest_state_epoch=0, state_batches=stored.state_batches
    )
    after = after_update(before, update, rules.combine)
    return PersistedState(
        start_offset=after.start_offset, state_batches=tuple(StateBatch(*batch) for batch in after.state_batches)
    )


def _sent(state: ExploredState, number: int) -> UnansweredWrite:
    return next(each for each in state.sent if each.number == number)


def _without(state: ExploredState, number: int) -> tuple[UnansweredWrite, ...]:
    return tuple(each for each in state.sent if each.number != number)


def _succeed(leading: Leading, state: ExploredState, event: Event) -> Step:
    (number,) = event.numbers
    leading.say("complete", write=number, answer="ok")
    leading.carry_out(leading.partition.write_succeeded(number))
    after = state._replace(sent=_without(state, number), confirmed=state.confirmed.union(_sent(state, number).accepted))
    return leading.step(state, event, after)


def _fail(leading: Leading, state: ExploredState, event: Event) -> Step:
    (number,) = event.numbers
    leading.say("complete", write=number, answer={"error": _FAILURE.name})
    leading.carry_out(leading.partition.write_failed(number, _FAILURE))
    if not leading.partition.profile.has(Quirk.EXPIRES_IN_MEMORY_ONLY):
        leading.expire(state.leader.now_ms)  # what was rolled back may have expired
    left = state.left._replace(failures=state.left.failures - 1)
    after = state._replace(sent=_without(state, number), left=left)
    return leading.step(state, event, after, is_stored=_sent(state, number).is_stored)


def _dead_letter(leading: Leading, state: ExploredState, event: Event) -> Step:
    (number,) = event.numbers
    leading.say("complete", dlq=number, answer="ok")
    leading.carry_out(leading.partition.dead_letter_answered(number))
    return leading.step(state, event, state)


# ---- the log and the leader


def _log_start(leading: Leading, state: ExploredState, event: Event) -> Step:
    (offset,) = event.numbers
    log = leading.surroundings.configuration.log
    left = state.left._replace(log_starts=state.left.log_starts - 1)
    kept = tuple(position for position in state.log if log[position].last_offset >= offset)
    return _without_leader(event, state._replace(log=kept, log_start=offset, left=left))


def _compact(_leading: Leading, state: ExploredState, event: Event) -> Step:
    left = state.left._replace(compactions=state.left.compactions - 1)
    kept = tuple(position for position in state.log if position not in event.numbers)
    return _without_leader(event, state._replace(log=kept, left=left))


def _switch(_leading: Leading, state: ExploredState, event: Event) -> Step:
    return _without_leader(event, state._replace(left=state.left._replace(switches=0)))


def _without_leader(event: Event, after: ExploredState) -> Step:
    return Step(event, after, acquired=(), transitions=(), requests=())


def _fail_over(leading: Leading, state: ExploredState, event: Event) -> Step:
    leading.take_over(state.stored, state.leader_epoch + 1)
    left = state.left._replace(failovers=state.left.failovers - 1)
    after = state._replace(leader_epoch=state.leader_epoch + 1, sent=(), left=left)
    return leading.step(state, event, after)


_TAKE: Final[Mapping[ExploredEventKind, Callable[[Leading, ExploredState, Event], Step | None]]] = MappingProxyType(
    {
        ExploredEventKind.FETCH: _fetch,
        ExploredEventKind.ACKNOWLEDGE: _acknowledge,
        ExploredEventKind.CLOSE: _close,
        ExploredEventKind.DEADLINE: _deadline,
        ExploredEventKind.STORE: _store,
        ExploredEventKind.SUCCEED: _succeed,
        ExploredEventKind.FAIL: _fail,
        ExploredEventKind.DEAD_LETTER: _dead_letter,
        ExploredEventKind.LOG_START: _log_start,
        ExploredEventKind.COMPACT: _compact,
        ExploredEventKind.SWITCH: _switch,
        ExploredEventKind.FAIL_OVER: _fail_over,
    }
)
"""What carries out each kind of event."""

WITHOUT_LEADER: Final = frozenset(
    {
        ExploredEventKind.STORE,
        ExploredEventKind.LOG_START,
        ExploredEventKind.COMPACT,
        ExploredEventKind.SWITCH,
        ExploredEventKind.FAIL_OVER,
    }
)
"""The events of which the leader hears nothing, or never: it stays as it is."""
