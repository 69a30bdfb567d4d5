"""
A share partition at work: a leader sends its writes and dead letters, takes the answers and expires acquisition locks.

Waiting fetches look again after a poll whose result says so, with ``wake`` (rule 16). It is set

- by ``acknowledge`` and ``release``, as they are submitted, and by ``_take_outcome`` as their write is answered;
- by ``_carry_out``, where the effects of a command say so: the SPSO has advanced, or an expired lock was written;
- by ``_take_state``, as the initialization ends;
- by ``_fence``.

Source:
    SharePartitionManager (Kafka 4.3.1), as far as it concerns one share partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from math import inf
from threading import TIMEOUT_MAX
from time import monotonic, monotonic_ns
from typing import Any, TypeVar

from attrs import frozen

from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.errors import (
    LeaderStateError,
    NotLeaderOrFollowerError,
    RequestRefusedError,
    ShareStateError,
)
from sharestate.leader import observed
from sharestate.leader.answers import (
    Written,
    answer_read,
    answer_write,
    dead_letter_failure,
    read_answer,
    send_dead_letters,
    send_read,
    send_write,
    write_answer,
)
from sharestate.leader.observed import LeaderEvent, Observation, Observer
from sharestate.leader.outbox import Outbox, done_future
from sharestate.partition.acknowledgement_form import acknowledgements
from sharestate.partition.lifecycle import FENCING, Lifecycle, initialize_refusal
from sharestate.partition.share_partition import MAX_POLL_RECORDS, SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import a_callable, brief_repr, expect, refuse
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import NOTHING, Effects, Transition
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.offset_reset import AutoOffsetReset
from sharestate.values.records import AcquiredRecords, AcquireMode
from sharestate.values.requests import WriteShareGroupState

T = TypeVar("T")


def monotonic_ms() -> int:
    """Return the time of the clock that never goes back, like Kafka's timers of acquisition locks. [ms]"""
    return monotonic_ns() // 1_000_000


@frozen(kw_only=True)
class PollResult:
    """
    The result of a poll: everything since the last one, commands included.

    Attributes:
        wake: Whether fetches that wait for records should try again.
        next_deadline_ms: When to poll again at the latest, because a lock expires; None if none is held. [ms]
        transitions: The record transitions and their causes; empty unless the share partition records them.
        errors: The errors that no future reports: of failed writes, such as those of expired locks, and of dead letters
            that were not written.
    """

    wake: bool
    next_deadline_ms: int | None
    transitions: tuple[Transition, ...]
    errors: tuple[ShareStateError, ...]


class Leader:
    """
    One share partition and its persister, for callers that poll.

    **Who polls.** The caller. A leader has no thread and no clock: it takes the persister's answers, completes the
    futures and expires the acquisition locks while ``poll``, ``wait`` or another command runs, and at no other time.
    Call ``poll`` when ``notify`` was called and when ``next_deadline_ms`` has come; or ``wait`` for one future. An
    answer that is there when the persister's method returns is taken at once.

    Every command takes the caller's time: what is due by ``now_ms`` happens before the command.

    Futures are done when the persister has answered and the answer was taken. Waiting for one without a timeout raises
    LeaderStateError as long as it is not done, because who waits does not poll. Cancelling does nothing: a write
    cannot be taken back.

    Args:
        partition: The share partition. Read it as you like; give commands to the leader. One that was restored and is
            ACTIVE needs no ``start``.
        persister: Stores its state. Its answers are final: it retries by itself.
        reset_offset: Returns the offset at which to start if none is persisted; raises if the log does not know.
        dead_letter_queue: Takes the dead letters, if the group's settings ask for any. Without one they fail.
        notify: Called by each arrival of an answer, in the thread in which it arrives.
        observer: Called at the end of a command with what has happened since the last call, in order. It must not call
            the leader; if it raises, the command has taken place nevertheless.
        wakes_when_stored: Whether waiting fetches look again when what a member has done is stored; in Kafka they do
            not, unless the SPSO has advanced.
        advances_past_split: Whether the SPSO advances where Kafka's advance throws (B7): after a write that succeeds
            when the SPSO lies past the end of a split batch.

    Raises:
        LeaderStateError: *partition* was restored with requests pending. Their answers went to another leader: report
            them to the share partition before you bind it (``write_succeeded``, ``write_failed``,
            ``dead_letter_answered``; a write of unknown outcome has failed), or load the state again.

    >>> from sharestate import AcknowledgementBatch, AutoOffsetReset, InMemoryPersister, RecordBatch, SharePartitionKey
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0))
    >>> future = persister.initialize_state(begin)
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> offsets = {AutoOffsetReset.earliest(): 0, AutoOffsetReset.latest(): 10}
    >>> leader = Leader(partition, persister, reset_offset=offsets.__getitem__)
    >>> leader.start(now_ms=0).result()
    >>> fetched = FetchedRecords(fetch_offset=10, batches=[RecordBatch(10, 14)])
    >>> leader.acquire("m1", fetched, now_ms=1)
    (AcquiredRecords(first_offset=10, last_offset=14, delivery_count=1),)
    >>> leader.acknowledge("m1", [AcknowledgementBatch(10, 12, (1,))], now_ms=2).result()
    >>> for batch in persister.stored("g", "t", 0).state_batches:
    ...     print(*batch)
    10 12 2 1
    >>> partition.start_offset, leader.poll(now_ms=3).next_deadline_ms
    (13, 30002)
    >>> leader.poll(now_ms=30_002)
    PollResult(wake=True, next_deadline_ms=None, transitions=(), errors=())

    Not thread-safe: one caller at a time.
    """

    def __init__(  # noqa: PLR0913 - what a leader is made of
        self,
        partition: SharePartition,
        persister: Persister,
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        dead_letter_queue: DeadLetterQueue | None = None,
        notify: Callable[[], None] | None = None,
        observer: Observer | None = None,
        wakes_when_stored: bool = True,
        advances_past_split: bool = True,
    ) -> None:
        """Bind *partition* to *persister*; nothing is sent yet."""
        self._partition = expect(partition, SharePartition, "partition")
        _expect_nothing_pending(partition)
        self._persister = persister
        self._dead_letter_queue = dead_letter_queue
        self._reset_offset = a_callable(reset_offset, "reset_offset")
        self._outbox = Outbox(None if notify is None else a_callable(notify, "notify"))
        self._observer = None if observer is None else a_callable(observer, "observer")
        self._wakes_when_stored = expect(wakes_when_stored, bool, "wakes_when_stored")
        self._advances_past_split = expect(advances_past_split, bool, "advances_past_split")
        self._observations: list[Observation] = []
        self._now_ms = 0
        self._wake = False
        self._transitions: list[Transition] = []
        self._errors: list[ShareStateError] = []
        self._is_closed = False

    @property
    def partition(self) -> SharePartition:
        """The share partition, to read."""
        return self._partition

    @property
    def is_closed(self) -> bool:
        """True once ``close`` was called."""
        return self._is_closed

    @property
    def unanswered(self) -> tuple[Future[None], ...]:
        """The futures of requests whose answers were not taken yet, dead letters included, in the order of sending."""
        return self._outbox.unanswered

    # ---- life

    def start(self, *, now_ms: int) -> Future[None]:
        """
        Load the persisted state.

        Returns:
            A future that is done when the share partition is ACTIVE. If it fails the share partition is FAILED: make
            another one and another leader.

        Raises:
            ShareStateError: The share partition is not EMPTY, or the leader is closed.
        """
        self._catch_up(now_ms)
        read = self.partition.initialize()
        self._note(observed.Started(self.partition.profile, self.partition.config))
        future = self._outbox.send(partial(send_read, self._persister, read), self._take_state)
        self._outbox.take_answers()
        self._report()
        return future

    def fence(self, *, now_ms: int) -> None:
        """Stop acquiring because another leader takes over; pending writes go on with the old epochs."""
        self._catch_up(now_ms)
        self._fence()
        self._report()

    def configure(self, config: ShareConfig, *, now_ms: int) -> None:
        """Apply the settings of *config* that the profile allows to change."""
        self._catch_up(now_ms)
        self._run(lambda: self.partition.configure(config), lambda: observed.Configured(config))

    def poll(self, *, now_ms: int) -> PollResult:
        """
        Take the answers that have arrived and expire the locks that are due, one by one (rule 16).

        Returns:
            Everything since the last poll, commands included.

        Raises:
            TimeReversedError: *now_ms* is before the time of an earlier command.
            NotLeaderOrFollowerError: The leader is closed.
        """
        self._catch_up(now_ms)
        self._report()
        return self._result(self.partition.next_deadline_ms())

    def wait(self, future: Future[None], *, clock: Callable[[], int], timeout_s: float = inf) -> None:
        """
        Block until *future* is done, and do meanwhile what ``poll`` does; the next poll returns what has happened.

        Args:
            future: A future of this leader.
            clock: Returns the time that commands get as ``now_ms``, such as ``monotonic_ms``. [ms]
            timeout_s: How long to wait at most. [s]

        Raises:
            ShareStateError: The error of *future*: refused or not persisted.
            TimeoutError: It is not done in time; it still may be, later.
            LeaderStateError: It is a future of another leader, which this one never completes.
        """
        expect(future, Future, "future")
        a_callable(clock, "clock")
        give_up_s = monotonic() + _duration_s(timeout_s)
        while not future.done():
            if future not in self.unanswered:
                message = "the future belongs to another leader: wait there"
                raise LeaderStateError(message)
            self._outbox.arrival.clear()  # before answers are taken, so that none arrives unseen
            now_ms = clock()
            self._catch_up(now_ms)
            self._report()
            if not future.done():
                self._outbox.arrival.wait(self._patience_s(now_ms, give_up_s))
        future.result()

    def close(self) -> PollResult:
        """
        Stop for good: the share partition is fenced, and every later command is refused.

        Answers that have arrived are taken. Futures without an answer fail with NotLeaderOrFollowerError: their writes
        may be stored or not. Dead letters without an answer may be written or not; their records stay ARCHIVING in the
        persisted state, and the next leader enqueues them again.

        Returns:
            Everything since the last poll.
        """
        self._outbox.take_answers()
        if not self._is_closed:
            self._note(observed.Fenced())
        self._is_closed = True
        self.partition.fence()
        self._outbox.abandon(self._closed())
        self._report()
        return self._result(next_deadline_ms=None)

    def expect_open(self) -> None:
        """
        Check that the leader is not closed.

        Raises:
            NotLeaderOrFollowerError: It is.
        """
        if self._is_closed:
            raise self._closed()

    def __getstate__(self) -> dict[str, Any]:
        """
        Return what a copy has of it.

        Raises:
            LeaderStateError: A request has no answer yet, which would never come to the copy.
        """
        if self._outbox.unanswered:
            message = f"requests of the leader of {self.partition.key} are not answered yet"
            raise LeaderStateError(message)
        return {**vars(self), "_outbox": self._outbox.notify}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the state of another one."""
        vars(self).update(state)
        self._outbox = Outbox(state["_outbox"])

    # ---- records

    def can_acquire(self, *, now_ms: int) -> bool:
        """Return whether a fetch could acquire records: see ``SharePartition.can_acquire``."""
        return self._ask(self._partition.can_acquire, now_ms)

    def next_fetch_offset(self, *, now_ms: int) -> int:
        """Return the offset at which to fetch from the log: see ``SharePartition.next_fetch_offset``."""
        return self._ask(self._partition.next_fetch_offset, now_ms)

    def acquire(  # noqa: PLR0913 - what a fetch request says
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        now_ms: int,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        is_untold: bool = False,
    ) -> tuple[AcquiredRecords, ...]:
        """
        Acquire fetched records for a member: see ``SharePartition.acquire``.

        Nothing is acquired while the state is being loaded; the poll that takes it wakes waiting fetches.

        Args:
            member_id: The member.
            fetched: What it has fetched.
            now_ms: The caller's time. [ms]
            max_records: The most records to acquire.
            batch_size: The size of new batches. [records]
            mode: Whether *max_records* may be exceeded.
            is_untold: Whether the member does not learn of them, as where Kafka's acquire throws (B8): what
                observers get says so.

        Raises:
            LeaderStateError: ``start`` was not called, so that nothing would ever be acquired.
            InitializationError: The state could not be loaded.
            ShareStateError: It is refused: see ``SharePartition.acquire``.
        """
        self._catch_up(now_ms)
        self._expect_started()
        effects, _ = self._run(
            lambda: self._partition.acquire(
                member_id, fetched, now_ms=now_ms, max_records=max_records, batch_size=batch_size, mode=mode
            ),
            lambda: observed.Acquired(member_id, fetched, max_records, batch_size, mode, is_untold),
        )
        return effects.acquired

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], *, now_ms: int) -> Future[None]:
        """
        Acknowledge records that a member has acquired.

        Returns:
            A future that is done when it is persisted, or fails with the error for the member.

        Raises:
            ShareStateError: It is refused: see ``SharePartition.acknowledge``.
        """
        self._catch_up(now_ms)
        self._wake = True  # rule 16: waiting fetches look again, whatever the outcome
        if self._observer is not None:
            batches = acknowledgements(batches)  # an iterator can be read once only
        return self._write(
            lambda: self._partition.acknowledge(member_id, batches, now_ms=now_ms),
            lambda: observed.Acknowledged(member_id, tuple(batches)),
        )

    def release(self, member_id: str, *, now_ms: int) -> Future[None]:
        """
        Release all records that a member has acquired, because its share session was closed (rule 16).

        Returns:
            A future that is done when it is persisted, or fails with the error for the member.
        """
        self._catch_up(now_ms)
        self._wake = True
        return self._write(
            lambda: self._partition.release(member_id, now_ms=now_ms),
            lambda: observed.Released(member_id),
        )

    def advance_log_start(self, offset: int, *, now_ms: int) -> None:
        """Advance the log start offset to *offset*; ignored if that is not above the SPSO."""
        self._catch_up(now_ms)
        self._run(lambda: self.partition.advance_log_start(offset), lambda: observed.LogStartAdvanced(offset))

    # ---- behind the commands

    def _catch_up(self, now_ms: int) -> None:
        if self._is_closed:
            raise self._closed()
        self._outbox.take_answers()
        effects = self._partition.expire_next(now_ms=now_ms)
        self._now_ms = now_ms
        while effects is not None:
            self._note(observed.LockExpired(), effects)
            self._carry_out(effects)
            effects = self._partition.expire_next(now_ms=now_ms)

    def _expect_started(self) -> None:
        # A broker's fetch is never here: it waits for the initialization, and fails with it (rule 16).
        lifecycle, key = self._partition.lifecycle, self._partition.key
        if lifecycle is Lifecycle.EMPTY:
            message = f"the state of {key} was not loaded: call start before records are acquired"
            raise LeaderStateError(message)
        if lifecycle is Lifecycle.FAILED:
            raise initialize_refusal(lifecycle, key)

    def _result(self, next_deadline_ms: int | None) -> PollResult:
        """Return everything since the last result."""
        # rule 16
        result = PollResult(
            wake=self._wake,
            next_deadline_ms=next_deadline_ms,
            transitions=tuple(self._transitions),
            errors=tuple(self._errors),
        )
        self._wake = False
        self._transitions.clear()
        self._errors.clear()
        return result

    def _patience_s(self, now_ms: int, give_up_s: float) -> float:
        """Return how long an arrival may be waited for: until a lock expires, or *give_up_s* has come. [s]"""
        left_s = give_up_s - monotonic()
        if left_s <= 0:
            message = "the persister has not answered in time"
            raise TimeoutError(message)
        deadline_ms = self.partition.next_deadline_ms()
        return min(left_s, TIMEOUT_MAX if deadline_ms is None else (deadline_ms - now_ms) / 1000, TIMEOUT_MAX)

    def _ask(self, question: Callable[[], T], now_ms: int) -> T:
        """Return the answer to a *question* that may clear ``find_next``."""
        self._catch_up(now_ms)
        if self._observer is None:
            return question()
        before = self._partition.find_next
        answer = question()
        if before is not self._partition.find_next:
            self._note(observed.FindNextCleared())
        self._report()
        return answer

    def _write(self, command: Callable[[], Effects], event: Callable[[], LeaderEvent]) -> Future[None]:
        """Run a member's *command*, and return its future."""
        _, futures = self._run(command, event, is_awaited=True)
        return futures[0] if futures else done_future()

    def _run(
        self, command: Callable[[], Effects], event: Callable[[], LeaderEvent], *, is_awaited: bool = False
    ) -> tuple[Effects, list[Future[None]]]:
        """Run *command* and carry out its effects; *event* makes what an observer gets."""
        try:
            effects = command()
        except RequestRefusedError as refusal:
            self._transitions += refusal.transitions
            if self._observer is not None:
                self._note(event(), Effects(error=refusal, transitions=refusal.transitions))
                self._report()
            raise
        if self._observer is not None:
            self._note(event(), effects)
        futures = self._carry_out(effects, is_awaited=is_awaited)
        if self._observer is not None:
            self._report()
        return effects, futures

    def _carry_out(self, effects: Effects, *, is_awaited: bool = False) -> list[Future[None]]:
        # rule 16
        self._wake |= effects.wake
        self._transitions += effects.transitions
        futures = [
            self._outbox.send(
                partial(send_write, self._persister, write),
                partial(self._take_outcome, write, is_awaited=is_awaited),
            )
            for write in effects.writes
        ]
        for request in effects.dead_letters:
            self._outbox.send_later(
                partial(send_dead_letters, self._dead_letter_queue, request), partial(self._take_dead_letters, request)
            )
        self._outbox.take_answers()
        return futures

    def _fence(self) -> None:
        # rule 16
        self._note(observed.Fenced())
        self._carry_out(self.partition.fence())
        self._wake = True

    def _take_state(self, future: Future[Any]) -> ShareStateError | None:
        # rule 16
        offsets: list[int] = []

        def find_offset(reset: AutoOffsetReset) -> int:
            offsets.append(self._reset_offset(reset))
            return offsets[0]

        answer = read_answer(future, self.partition.key)
        effects = answer_read(self.partition, answer, find_offset)
        found = offsets[0] if offsets else None
        self._note(observed.StateRead(self.partition.leader_epoch, answer, found, self.partition.lifecycle), effects)
        self._carry_out(effects)
        self._wake = True
        return effects.error

    def _take_outcome(
        self, write: WriteShareGroupState, future: Future[Any], *, is_awaited: bool
    ) -> ShareStateError | None:
        # rule 16
        answer = write_answer(future, self._partition.key)
        stays = not self._advances_past_split and self._partition.is_past_split_batch
        effects = answer_write(self._partition, write.number, answer, advances=not stays)
        if self._observer is not None:
            self._note(observed.WriteAnswered(write, answer, stays and isinstance(answer, Written)), effects)
        self._carry_out(effects)
        self._wake |= is_awaited and self._wakes_when_stored  # what a member has released can be acquired only now
        if effects.error is not None and not is_awaited:
            self._errors.append(effects.error)
        elif effects.error is not None and effects.error.code in FENCING:
            self._fence()
        return effects.error

    def _take_dead_letters(self, request: DeadLetterRequest, future: Future[Any]) -> ShareStateError | None:
        # rule 21.3
        error = dead_letter_failure(future, request)
        if error is not None:
            self._errors.append(error)
        effects = self.partition.dead_letter_answered(request.number)
        self._note(observed.DeadLetterAnswered(request, error), effects)
        self._carry_out(effects)
        return error

    def _note(self, event: LeaderEvent, effects: Effects = NOTHING) -> None:
        """Keep *event* for the observer, if there is one; what happens often looks before it makes one."""
        if self._observer is not None:
            self._observations.append(Observation(self.partition.key, self._now_ms, event, effects))

    def _report(self) -> None:
        """Call the observer, if there is one and something has happened."""
        if self._observer is not None and self._observations:
            observations = tuple(self._observations)
            self._observations.clear()  # first, so that one that raises gets nothing twice
            self._observer(observations)

    def _closed(self) -> ShareStateError:
        return NotLeaderOrFollowerError(f"the leader of {self.partition.key} is closed")


def _duration_s(timeout_s: Any) -> float:  # noqa: ANN401 - whatever the caller has passed
    if not isinstance(timeout_s, int | float) or not timeout_s >= 0:  # NaN is not less than 0 either
        refuse(f"expected a number of seconds, got {brief_repr(timeout_s)}", "timeout_s")
    return timeout_s


def _expect_nothing_pending(partition: SharePartition) -> None:
    snapshot = partition.snapshot()
    pending = [f"write {write.number}" for write in snapshot.writes]
    pending += [f"dead-letter request {row.number}" for row in snapshot.dead_letters]
    pending += ["the read"] * snapshot.is_read_pending
    if pending:
        message = (
            f"{partition.key} was restored with requests whose answers never come here: {', '.join(pending)}; "
            "report their outcomes to the share partition first, or load its state again"
        )
        raise LeaderStateError(message)
