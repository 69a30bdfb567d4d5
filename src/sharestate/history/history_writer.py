"""Leaders that write their share partitions' histories, so that any program that embeds the library can make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define

from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.errors import ErrorCode, MalformedInputError, RequestRefusedError, ShareStateError
from sharestate.history.columns import ERROR_NAMES, AppendedBatch
from sharestate.history.events import Event
from sharestate.leader.answers import Loaded, Refused, Written, dead_letter_failure, read_answer, write_answer
from sharestate.leader.async_leader import AsyncLeader
from sharestate.leader.leader import Leader, PollResult, monotonic_ms
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import MAX_POLL_RECORDS, SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.acknowledgements import AcknowledgementBatch, acknowledgements
from sharestate.values.checks import expect
from sharestate.values.config import AutoOffsetReset, ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects, Transition
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AcquiredRecords, AcquireMode
from sharestate.values.requests import WriteShareGroupState

_SETTINGS: Final = ("max_record_locks", "delivery_count_limit", "record_lock_duration_ms", "renew_acknowledge_enable")


T = TypeVar("T")


def _not_observed(_result: object) -> None:
    """Return the response of an event that has none."""


@define
class _Entry:
    """An event whose response may still be missing."""

    kind: str
    member_id: str | None
    request: dict[str, Any] | None
    at_us: int = 0
    response: dict[str, Any] | None = None


class HistoryWriter(Leader):
    """
    A ``Leader`` that writes what happens as a history.

    Its history is in causal order. It has every config, read, fetch, acknowledgement, close, expired lock, outcome, log
    start, fence and dead letter, and replays without differences to the same share partition. Reads of the log are in
    the fetches; there are no ``log`` events.

    Args:
        partition: The share partition, which has not read its state yet: a history begins with that.
        persister: As for ``Leader``.
        write: Takes the next events, such as the ``write`` of ``create_history``; called after each command.
        reset_offset: As for ``Leader``.
        dead_letter_queue: As for ``Leader``.
        notify: As for ``Leader``.
        epoch_us: The Unix time at which ``now_ms`` is 0. [µs since 1970]
        first_seq: The number of the first event: that after the last one of the leader before this one.

    >>> from sharestate import InMemoryPersister, RecordBatch, SharePartitionKey
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0, start_offset=0))
    >>> future = persister.initialize_state(begin)
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> events = []
    >>> leader = HistoryWriter(partition, persister, events.extend, reset_offset=lambda _: 0)
    >>> leader.start(now_ms=0).result()
    >>> acquired = leader.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 4)]), now_ms=1)
    >>> leader.acknowledge("m1", [AcknowledgementBatch(0, 4, (1,))], now_ms=2).result()
    >>> [(event.seq, event.kind, event.at_us) for event in events]
    [(0, 'config', 0), (1, 'initialize', 0), (2, 'fetch', 1000), (3, 'acknowledge', 2000), (4, 'write', 2000)]
    """

    def __init__(  # noqa: PLR0913 - what a leader is made of, and where its history goes
        self,
        partition: SharePartition,
        persister: Persister,
        write: Callable[[list[Event]], object],
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        dead_letter_queue: DeadLetterQueue | None = None,
        notify: Callable[[], None] = lambda: None,
        epoch_us: int = 0,
        first_seq: int = 0,
    ) -> None:
        """Bind *partition* to *persister*; nothing is sent or written yet."""
        super().__init__(
            partition, persister, reset_offset=self._find_offset, dead_letter_queue=dead_letter_queue, notify=notify
        )
        self._find = reset_offset
        self._found: int | None = None
        self._write_events = write
        self._epoch_us = epoch_us
        self._next_seq = first_seq
        self._at_ms = 0
        self._entries: list[_Entry] = []
        self._command: _Entry | None = None
        self._sent: dict[int, WriteShareGroupState] = {}
        self._isolation = IsolationLevel.READ_UNCOMMITTED

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self._next_seq

    # ---- commands

    def start(self, *, now_ms: int) -> Future[None]:
        """Load the persisted state: see ``Leader.start``."""
        partition = self.partition
        settings = _settings(partition.config) | {"isolation": self._isolation.value}
        self._command = _Entry("config", None, {**settings, "profile": partition.profile.name})
        try:
            return super().start(now_ms=now_ms)
        finally:
            self._flush()

    def fence(self, *, now_ms: int) -> None:
        """Stop acquiring: see ``Leader.fence``."""
        try:
            super().fence(now_ms=now_ms)
        finally:
            self._flush()

    def configure(self, config: ShareConfig, *, now_ms: int) -> None:
        """Apply the settings of *config*: see ``Leader.configure``."""
        entry = _Entry("config", None, _settings(expect(config, ShareConfig, "config")))
        self._run_command(entry, partial(super().configure, config, now_ms=now_ms))

    def poll(self, *, now_ms: int) -> PollResult:
        """Take the answers that have arrived and expire the locks that are due: see ``Leader.poll``."""
        try:
            return super().poll(now_ms=now_ms)
        finally:
            self._flush()

    def wait(self, future: Future[None], *, clock: Callable[[], int], timeout_s: float = float("inf")) -> None:
        """Block until *future* is done: see ``Leader.wait``."""
        try:
            super().wait(future, clock=clock, timeout_s=timeout_s)
        finally:
            self._flush()

    def close(self) -> PollResult:
        """Stop for good: see ``Leader.close``."""
        was_closed = self.is_closed
        result = super().close()
        if not was_closed:
            self._add(_Entry("fence", None, None))
            self._flush()
        return result

    def can_acquire(self, *, now_ms: int) -> bool:
        """Return whether a fetch could acquire records: see ``Leader.can_acquire``."""
        return self._ask(self.partition.can_acquire, now_ms)

    def next_fetch_offset(self, *, now_ms: int) -> int:
        """Return the offset at which to fetch from the log: see ``Leader.next_fetch_offset``."""
        return self._ask(self.partition.next_fetch_offset, now_ms)

    def acquire(  # noqa: PLR0913 - what a fetch request says
        self,
        member_id: str,
        fetched: FetchedRecords,
        *,
        now_ms: int,
        max_records: int = MAX_POLL_RECORDS,
        batch_size: int = MAX_POLL_RECORDS,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> tuple[AcquiredRecords, ...]:
        """Acquire fetched records for a member: see ``Leader.acquire``."""
        self._note_isolation(expect(fetched, FetchedRecords, "fetched").isolation)
        request = {
            "max_records": max_records,
            "batch_size": batch_size,
            "mode": expect(mode, AcquireMode, "mode").value,
            "fetch_offset": fetched.fetch_offset,
            "batches": tuple(map(AppendedBatch.of, fetched.batches)),
            "aborted": fetched.aborted_transactions,
        }
        command = partial(
            super().acquire,
            member_id,
            fetched,
            now_ms=now_ms,
            max_records=max_records,
            batch_size=batch_size,
            mode=mode,
        )
        return self._run_command(_Entry("fetch", member_id, request), command, lambda found: {"acquired": found})

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], *, now_ms: int) -> Future[None]:
        """Acknowledge records that a member has acquired: see ``Leader.acknowledge``."""
        batches = acknowledgements(batches)
        entry = _Entry("acknowledge", member_id, {"batches": batches})
        return self._run_command(entry, partial(super().acknowledge, member_id, batches, now_ms=now_ms), _outcome)

    def release(self, member_id: str, *, now_ms: int) -> Future[None]:
        """Release all records that a member has acquired: see ``Leader.release``."""
        entry = _Entry("close", member_id, None)
        return self._run_command(entry, partial(super().release, member_id, now_ms=now_ms), _outcome)

    def advance_log_start(self, offset: int, *, now_ms: int) -> None:
        """Advance the log start offset: see ``Leader.advance_log_start``."""
        entry = _Entry("log_start", None, {"offset": offset})
        self._run_command(entry, partial(super().advance_log_start, offset, now_ms=now_ms))

    # ---- events

    def _add(self, entry: _Entry) -> None:
        entry.at_us = self._epoch_us + 1000 * self._at_ms
        self._entries.append(entry)

    def _flush(self) -> None:
        """Write the events so far."""
        self._command = None
        if not self._entries:
            return
        key = self.partition.key
        events = [
            Event.of(
                (key.group_id, key.topic_id, key.partition),
                seq,
                entry.kind,
                at_us=entry.at_us,
                member_id=entry.member_id,
                request=entry.request,
                response=entry.response,
            )
            for seq, entry in enumerate(self._entries, self._next_seq)
        ]
        self._next_seq += len(events)
        self._entries.clear()
        self._write_events(events)

    def _run_command(
        self, entry: _Entry, command: Callable[[], T], response: Callable[[T], dict[str, Any] | None] = _not_observed
    ) -> T:
        """Return what *command* returns, and write its event; one that is misuse has no event."""
        self._command = entry
        try:
            result = command()
        except RequestRefusedError as refusal:
            entry.response = {"error": ERROR_NAMES[refusal.code]}
            raise
        except MalformedInputError:
            self._entries = [each for each in self._entries if each is not entry]
            raise
        else:
            entry.response = response(result)
            return result
        finally:
            self._flush()

    def _ask(self, question: Callable[[], T], now_ms: int) -> T:
        """Return the answer to *question*; it is an event only if it has cleared ``find_next``."""
        try:
            self._catch_up(now_ms)
            before = self.partition.find_next
            answer = question()
            if before != self.partition.find_next:
                self._add(_Entry("fetch", None, {"max_records": 0}))
            return answer
        finally:
            self._flush()

    def _note_isolation(self, isolation: IsolationLevel) -> None:
        if isolation is not self._isolation:
            self._isolation = isolation
            self._add(_Entry("config", None, {"isolation": isolation.value}))

    # ---- behind the commands

    def _catch_up(self, now_ms: int) -> None:
        self.expect_open()
        self._outbox.take_answers()
        self._at_ms = now_ms
        while (effects := self.partition.expire_next(now_ms=now_ms)) is not None:
            self._add(_Entry("expire", None, None))
            self._carry_out(effects)
        if self._command is not None:
            self._add(self._command)

    def _carry_out(self, effects: Effects, *, is_awaited: bool = False) -> list[Future[None]]:
        self._sent.update((write.number, write) for write in effects.writes)
        return super()._carry_out(effects, is_awaited=is_awaited)

    def _fence(self) -> None:
        self._add(_Entry("fence", None, None))
        super()._fence()

    def _find_offset(self, reset: AutoOffsetReset) -> int:
        self._found = self._find(reset)
        return self._found

    def _take_state(self, answer: Future[Any]) -> ShareStateError | None:
        entry = _Entry("initialize", None, {"leader_epoch": self.partition.leader_epoch})
        self._add(entry)
        was_fenced = self.partition.lifecycle is Lifecycle.FENCED
        error = super()._take_state(answer)
        read = read_answer(answer, self.partition.key)
        if was_fenced:  # nothing is taken over, whatever was read
            entry.response = {"error": _error_name(ErrorCode.UNKNOWN_SERVER_ERROR if error is None else error.code)}
        elif isinstance(read, Loaded) and (read.state.start_offset >= 0 or self._found is not None):
            entry.request = {"leader_epoch": self.partition.leader_epoch, "reset_offset": self._found}
            state = read.state
            entry.response = {
                "state_epoch": state.state_epoch,
                "start_offset": state.start_offset,
                "state_batches": state.state_batches,
            }
        else:
            code = read.code if isinstance(read, Refused) else ErrorCode.UNKNOWN_SERVER_ERROR
            entry.response = {"error": _error_name(code)}
        if self.partition.lifecycle is Lifecycle.FENCED:
            self._add(_Entry("fence", None, None))
        return error

    def _take_outcome(self, number: int, is_awaited: bool, answer: Future[Any]) -> ShareStateError | None:  # noqa: FBT001 - as in the class above
        outcome = write_answer(answer, self.partition.key)
        write = self._sent.pop(number)
        request = {
            "start_offset": write.start_offset,
            "delivery_complete_count": write.delivery_complete_count,
            "state_epoch": write.state_epoch,
            "leader_epoch": write.leader_epoch,
            "state_batches": tuple(write.state_batches),
        }
        entry = _Entry("write", None, request, response={})
        if isinstance(outcome, Refused):
            entry.response = {"error": _error_name(outcome.code)}
        elif not isinstance(outcome, Written):
            entry.response = {"error": _error_name(ErrorCode.UNKNOWN_SERVER_ERROR)}
        self._add(entry)
        return super()._take_outcome(number, is_awaited, answer)

    def _take_dead_letters(self, request: DeadLetterRequest, answer: Future[Any]) -> ShareStateError | None:
        fields = {
            "first": request.first_offset,
            "last": request.last_offset,
            "delivery_count": request.delivery_count,
            "cause": request.cause.value,
        }
        has_failed = dead_letter_failure(answer, request) is not None
        response = {"error": _error_name(ErrorCode.UNKNOWN_SERVER_ERROR)} if has_failed else {}
        self._add(_Entry("dead_letter", None, fields, response=response))
        return super()._take_dead_letters(request, answer)


class AsyncHistoryWriter(AsyncLeader):
    """
    An ``AsyncLeader`` that writes what happens as a history, as a ``HistoryWriter`` does.

    Args:
        partition: As for ``HistoryWriter``.
        persister: As for ``AsyncLeader``.
        write: As for ``HistoryWriter``; called in the event loop, so it must not block for long.
        reset_offset: As for ``AsyncLeader``.
        dead_letter_queue: As for ``AsyncLeader``.
        clock: As for ``AsyncLeader``. [ms]
        on_transitions: As for ``AsyncLeader``.
        on_error: As for ``AsyncLeader``.
        epoch_us: The Unix time at which *clock* is 0. [µs since 1970]
        first_seq: As for ``HistoryWriter``.
    """

    def __init__(  # noqa: PLR0913 - what a leader is made of, and where its history goes
        self,
        partition: SharePartition,
        persister: Persister,
        write: Callable[[list[Event]], object],
        *,
        reset_offset: Callable[[AutoOffsetReset], int],
        dead_letter_queue: DeadLetterQueue | None = None,
        clock: Callable[[], int] = monotonic_ms,
        on_transitions: Callable[[tuple[Transition, ...]], object] = lambda _: None,
        on_error: Callable[[ShareStateError], object] = lambda _: None,
        epoch_us: int = 0,
        first_seq: int = 0,
    ) -> None:
        """Bind *partition* to *persister*; nothing happens yet."""
        self._make_leader = partial(HistoryWriter, write=write, epoch_us=epoch_us, first_seq=first_seq)
        super().__init__(
            partition,
            persister,
            reset_offset=reset_offset,
            dead_letter_queue=dead_letter_queue,
            clock=clock,
            on_transitions=on_transitions,
            on_error=on_error,
        )

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        writer: HistoryWriter = self._leader  # type: ignore[assignment] # what _make_leader has made
        return writer.next_seq


def _settings(config: ShareConfig) -> dict[str, Any]:
    return {
        **{name: getattr(config, name) for name in _SETTINGS},
        "auto_offset_reset": str(config.auto_offset_reset),
        "dlq_topic": "dlq" if config.dead_letter_queue else "",
    }


def _error_name(code: int) -> str:
    return ERROR_NAMES.get(code, "unknown_server_error")


def _outcome(future: Future[None]) -> dict[str, Any] | None:
    """Return the response that *future* stands for; None if it is not done."""
    if not future.done():
        return None
    error = future.exception()
    return {"error": _error_name(error.code)} if isinstance(error, ShareStateError) else {}
