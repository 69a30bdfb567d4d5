"""
One share partition's history as a fold: events in, rows out.

The rules. The time of an event is when a handler took it; if that is not known, when it arrived; if that is not known
either, or is before the event ahead of it, the time of that one. Before an event every acquisition lock expires that is
due by then, with a write each. Answers to writes and dead letters are the exception: what they answer shows how many
locks had expired, so before them locks expire only until there is something that they answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from attrs import evolve

from sharestate.errors import ErrorCode, MalformedInputError, RequestRefusedError, ResetOffsetRequiredError
from sharestate.history.columns import (
    DEAD_LETTER_CAUSES,
    ERROR_NAMES,
    ERRORS,
    KINDS,
    MODES,
)
from sharestate.history.events import Event, order_error
from sharestate.history.known_log import KnownLog
from sharestate.history.replay_state import (
    ReplayState,
    Settings,
    WriteContent,
    are_same_batches,
    content_in,
    content_json,
    content_of,
    find_write,
    implied_error,
)
from sharestate.history.rows import DEFAULT_OUTPUTS, OutputRow, RowCollector
from sharestate.json_lines import Json
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import MAX_POLL_RECORDS, SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import AcquiredRecords, AcquireMode, SharePartitionKey
from sharestate.values.requests import PersistedState, WriteShareGroupState
from sharestate.values.snapshot import Snapshot

_ANSWERS: Final = frozenset({"write", "dead_letter"})
"""The kinds before which locks expire only as far as they have to."""

_COUNTED_AS: Final = {kind: f"events.{kind}" for kind in KINDS}
_READS_STATE: Final = ("state_epoch", "start_offset", "state_batches")


class Replay:
    """
    The replay of one share partition's history.

    Nothing can be checked before its state is read for the first time: earlier events are counted as unchecked, and so
    is everything after a read whose answer was not observed.

    Args:
        key: The share partition.
        profile: Its rules, until a ``config`` event names others.
        config: The group's settings, until ``config`` events change them; Kafka's defaults if None.
        lacks: The kinds that the history lacks because nobody logged them. Without ``write`` every write succeeds at
            once, but for one whose acknowledgement was answered with an error that only a failed write has; without
            ``dead_letter`` the dead-letter queue answers at once; without ``log`` nothing can be checked after a
            fetch of which it is not known what was read.
        outputs: The kinds of rows to make; see ``OUTPUTS``.

    Raises:
        MalformedInputError: An argument is of the wrong type, or *lacks* or *outputs* names an unknown kind.

    >>> from sharestate.history.columns import AppendedBatch
    >>> replay = Replay(("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0))
    >>> read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    >>> [row.kind for row in replay.apply(Event.of(replay.key, 0, "initialize", at_us=0, response=read))]
    ['initialization', 'start_offset']
    >>> fetch = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
    >>> answer = {"acquired": (AcquiredRecords(0, 4, 1),)}
    >>> for row in replay.apply(
    ...     Event.of(replay.key, 1, "fetch", at_us=5_000, member_id="m1", request=fetch, response=answer)
    ... ):
    ...     print(row.kind, row.values)
    acquisition (0, 4, 'm1', 1)
    >>> (row,) = replay.apply(Event.of(replay.key, 2, "close", at_us=40_000_000, member_id="m1"))
    >>> row.kind, row.at_us, len(row.to_json()["state_batches"])  # the lock has expired before
    ('write', 30006000, 1)
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        outputs: frozenset[str] = DEFAULT_OUTPUTS,
    ) -> None:
        """Start before the first event."""
        group_id, topic_id, partition = key
        self.key = key
        self._partition_key = SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition)
        self._settings = Settings(profile, ShareConfig() if config is None else config)
        if lacks - KINDS.keys():
            message = f"expected some of {', '.join(KINDS)}, got {', '.join(sorted(lacks - KINDS.keys()))}"
            raise MalformedInputError(message, "lacks")
        self._lacks = lacks
        self._rows = RowCollector(key, outputs)
        self._seq = -1
        self._at_us: int | None = None
        self._now_ms = 0
        self._partition: SharePartition | None = None
        self._last_start_offset: int | None = None
        self._log = KnownLog()
        self._pending: dict[int, WriteShareGroupState] = {}
        self._expected: dict[int, tuple[str, str | None]] = {}
        self._dead_letters: dict[int, DeadLetterRequest] = {}
        self._abandoned: list[WriteContent] = []
        self._counts: Counter[str] = Counter()

    @property
    def seq(self) -> int:
        """The number of the last event; -1 before the first one."""
        return self._seq

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._partition

    def apply(self, event: Event) -> list[OutputRow]:
        """
        Apply the next event, and return the rows that it makes.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which. Only the locks that were
                due have expired.
        """
        return self.apply_all((event,))

    def apply_all(self, events: Iterable[Event]) -> list[OutputRow]:
        """
        Apply the next events, and return the rows that they make: ``apply`` of each, with fewer calls.

        Raises:
            MalformedInputError: As ``apply``; the events before were applied, and the next call returns their rows.
        """
        key, counts, handlers = self.key, self._counts, self._HANDLERS
        notes_start = "start_offset" in self._rows.outputs
        for event in events:
            seq, kind = event.seq, event.kind
            if seq != self._seq + 1 or event[:3] != key:
                self._refuse(event)
            self._rows.seq = seq
            us = event.at_us if event.taken_us is None else event.taken_us
            if us is not None and (self._at_us is None or us > self._at_us):
                self._take_time(us)
            if self._partition is not None and kind not in _ANSWERS:
                due_ms = self._partition.next_deadline_ms()
                if due_ms is not None and due_ms <= self._now_ms:
                    while self._expire_next():
                        pass
            if kind not in handlers:
                message = f"expected one of {', '.join(KINDS)}, got {kind!r}"
                raise MalformedInputError(message, "kind")
            try:
                handlers[kind](self, event)
            except KeyError as error:
                message = "missing, or an unknown name"
                raise MalformedInputError(message, str(error.args[0])) from error
            self._seq = seq
            counts[_COUNTED_AS[kind]] += 1
            if notes_start and self._start_offset() != self._last_start_offset:
                self._note_start_offset()
        return self._rows.take()

    def finish(self) -> list[OutputRow]:
        """Return the rows of the end: counts, the snapshot, and where to go on; more events may still follow."""
        if "metric" in self._rows.outputs:
            counts = self._counts.copy()
            counts["writes_unanswered"] += len(self._pending)
            for name in sorted(counts):
                self._rows.add("metric", (name, counts[name]))
        snapshot = self.snapshot()
        if "snapshot" in self._rows.outputs and snapshot is not None:
            self._rows.add("snapshot", (snapshot.to_json(),))
        if "state" in self._rows.outputs:
            self._rows.add("state", (self.state(),))
        return self._rows.take()

    def snapshot(self) -> Snapshot | None:
        """Return the share partition as it is at the time of the last event; None if its state is not known."""
        partition = self._partition
        if partition is None:
            return None
        due_ms = partition.next_deadline_ms()
        if due_ms is None or due_ms > self._now_ms:
            partition.expire_next(now_ms=self._now_ms)  # nothing expires: it takes over the time
        return partition.snapshot()

    def state(self) -> str:
        """Return the state after the last event as versioned JSON, from which ``restore`` goes on."""
        settings = self._settings
        return ReplayState(
            key=self.key,
            seq=self._seq,
            at_us=self._at_us,
            lacks=self._lacks,
            profile=settings.profile,
            config=settings.config,
            isolation=settings.isolation,
            leader_epoch=settings.leader_epoch,
            log=self._log,
            snapshot=self.snapshot(),
            pending={number: content_of(write) for number, write in self._pending.items()},
            abandoned=tuple(self._abandoned),
            expected=self._expected,
            counts=dict(self._counts),
        ).to_json()

    @classmethod
    def restore(cls, text: str, *, outputs: frozenset[str] = DEFAULT_OUTPUTS) -> Self:
        """
        Return a replay that goes on where ``state`` was taken.

        Raises:
            SnapshotError: *text* is no such state, or of a version that is not known.
        """
        state = ReplayState.from_json(text)
        replay = cls(state.key, profile=state.profile, config=state.config, lacks=state.lacks, outputs=outputs)
        replay._settings.isolation = state.isolation
        replay._settings.leader_epoch = state.leader_epoch
        replay._seq = replay._rows.seq = state.seq
        if state.at_us is not None:
            replay._take_time(state.at_us)
        replay._log = state.log
        replay._pending = {
            n: WriteShareGroupState(replay._partition_key, n, *each) for n, each in state.pending.items()
        }
        replay._abandoned = list(state.abandoned)
        replay._expected = state.expected
        replay._counts.update(state.counts)
        if state.snapshot is not None:
            partition = SharePartition.restore(state.snapshot, record_transitions=replay._rows.states is not None)
            replay._partition = partition
            replay._dead_letters = {
                number: DeadLetterRequest(replay._partition_key, number, *dead_letter)
                for number, dead_letter, *_ in state.snapshot.dead_letters
            }
            replay._last_start_offset = replay._start_offset()
            if replay._rows.states is not None:
                replay._rows.states.load(partition)
        return replay

    # ---- rows

    def _add_difference(self, name: str, observed: Json, computed: Json) -> None:
        self._counts["differences"] += 1
        self._rows.add_difference(name, observed, computed)

    def _refuse(self, event: Event) -> None:
        if event[:3] != self.key:
            message = f"expected an event of {'{}-{}-{}'.format(*self.key)}"
            raise MalformedInputError(message, "group_id, topic_id, partition")
        raise order_error(self.key, event.seq, self._seq + 1)

    # ---- time

    def _take_time(self, us: int) -> None:
        self._at_us = self._rows.at_us = us
        self._now_ms = us // 1000

    def _expire_next(self) -> bool:
        """Expire the next lock that is due, if there is one; its rows have the first instant at which it was."""
        partition = self._active()
        due_ms = partition.next_deadline_ms()
        if due_ms is None or due_ms > self._now_ms:
            return False
        effects = partition.expire_next(now_ms=self._now_ms)
        if effects is not None:
            self._counts["locks_expired"] += 1
            self._carry_out(effects, at_us=due_ms * 1000)
        return effects is not None

    # ---- effects

    def _active(self) -> SharePartition:
        partition = self._partition
        if partition is None:
            message = "nothing has read the state yet"
            raise MalformedInputError(message, "kind")
        return partition

    def _carry_out(self, effects: Effects, at_us: int | None = None) -> None:
        if effects.transitions:
            self._rows.add_transitions(effects.transitions, at_us)
        for write in effects.writes:
            self._add_write(write, at_us)
        if effects.dead_letters:
            self._add_dead_letters(effects.dead_letters, at_us)
        if self._lacks:
            self._answer_at_once(effects)

    def _answer_at_once(self, effects: Effects) -> None:
        """Answer what the history has no answers to."""
        if "write" in self._lacks:
            for write in effects.writes:
                self._answer_write(write.number, implied_error(self._expected.get(write.number)))
        if "dead_letter" in self._lacks:
            for request in effects.dead_letters:
                self._answer_dead_letter(request.number)

    def _add_dead_letters(self, requests: tuple[DeadLetterRequest, ...], at_us: int | None) -> None:
        for request in requests:
            self._counts["dead_letters"] += 1
            self._dead_letters[request.number] = request
            if "dead_letter" in self._rows.outputs:
                _, _, first, last, count, cause = request
                self._rows.add("dead_letter", (first, last, count, cause.value), at_us)

    def _add_write(self, write: WriteShareGroupState, at_us: int | None) -> None:
        self._counts["writes"] += 1
        self._pending[write.number] = write
        if "write" in self._rows.outputs:
            self._rows.add("write", write[1:], at_us)

    def _answer_write(self, number: int, error: ErrorCode | None) -> None:
        """Report the outcome of a write, and compare it with what its member was answered."""
        partition = self._active()
        del self._pending[number]
        if error is None:
            effects = partition.write_succeeded(number)
        else:
            self._counts["writes_failed"] += 1
            effects = partition.write_failed(number, error)
        expected = self._expected.pop(number, None)
        if expected is not None:
            name, observed = expected
            computed = None if effects.error is None else ERROR_NAMES[effects.error.code]
            if observed != computed:
                self._add_difference(name, {"error": observed}, {"error": computed})
        if effects.transitions or effects.writes or effects.dead_letters:
            self._carry_out(effects)

    def _answer_dead_letter(self, number: int) -> None:
        partition = self._active()
        del self._dead_letters[number]
        self._carry_out(partition.dead_letter_answered(number))

    def _member_writes(self, event: Event, effects: Effects) -> None:
        """Carry out what a member's request has led to, and compare its answer now or as soon as its write has one."""
        if event.response is not None:
            observed = event.response.get("error")
            if effects.writes:
                self._expected[effects.writes[0].number] = event.kind, observed
            elif observed is not None:
                self._add_difference(event.kind, {"error": observed}, {"error": None})
        self._carry_out(effects)

    # ---- the kinds of events

    def _unchecked(self) -> None:
        self._counts["events_unchecked"] += 1

    def _config(self, event: Event) -> None:
        self._settings.change(event.request or {})
        if self._partition is not None and event.request:
            self._configure(self._partition)

    def _configure(self, partition: SharePartition) -> None:
        config = self._settings.config
        if config.dead_letter_queue and not partition.profile.has_dead_letter_queue:
            config = evolve(config, dead_letter_queue=False)
        self._carry_out(partition.configure(config))

    def _appended(self, event: Event) -> None:
        self._log.append((event.request or {})["batches"])

    def _log_start(self, event: Event) -> None:
        offset = (event.request or {})["offset"]
        self._log.start_offset = max(self._log.start_offset, offset)
        if event.inferred:  # a fetch from below will learn it
            return
        if self._partition is None:
            self._unchecked()
        else:
            self._carry_out(self._partition.advance_log_start(offset))

    def _initialize(self, event: Event) -> None:
        request, response = event.request or {}, event.response
        self._settings.leader_epoch = request.get("leader_epoch", self._settings.leader_epoch)
        self._counts["writes_unanswered"] += len(self._pending)
        self._abandoned = list(map(content_of, self._pending.values()))
        for requests in (self._pending, self._expected, self._dead_letters):
            requests.clear()
        self._partition = None
        if self._rows.states is not None:
            self._rows.states.clear()
        if response is None:
            self._add_initialization(None)
            self._unchecked()
            return
        partition = SharePartition(
            self._partition_key,
            leader_epoch=self._settings.leader_epoch,
            profile=self._settings.profile,
            config=self._settings.effective,
            record_transitions=self._rows.states is not None,
        )
        partition.initialize()
        effects = self._take_over(partition, request, response)
        self._partition = partition
        self._add_initialization(partition if effects.error is None else None)
        self._carry_out(effects)

    def _add_initialization(self, partition: SharePartition | None) -> None:
        """Add the row of a new share partition; None if its state is not known."""
        if "initialization" in self._rows.outputs:
            read = (None, None) if partition is None else (partition.state_epoch, partition.start_offset)
            self._rows.add("initialization", (self._settings.leader_epoch, *read))

    def _note_start_offset(self) -> None:
        self._last_start_offset = self._start_offset()
        if self._last_start_offset is not None:
            self._rows.add("start_offset", (self._last_start_offset,))

    def _start_offset(self) -> int | None:
        partition = self._partition
        return None if partition is None or partition.lifecycle is Lifecycle.FAILED else partition.start_offset

    def _take_over(self, partition: SharePartition, request: dict[str, Any], response: dict[str, Any]) -> Effects:
        error = response.get("error")
        if error is not None:
            return partition.read_failed(ERRORS[error])
        state = PersistedState(**{name: response[name] for name in _READS_STATE})
        try:
            return partition.read_succeeded(state)
        except ResetOffsetRequiredError:
            offset: int | None = request.get("reset_offset")
            if offset is None:
                offset = self._log.reset_offset(partition.config.auto_offset_reset)
            return partition.read_succeeded(state, reset_offset=offset)

    def _fence(self, _event: Event) -> None:
        if self._partition is None:
            self._unchecked()
        else:
            self._carry_out(self._partition.fence())

    def _close(self, event: Event) -> None:
        if self._partition is None:
            self._unchecked()
        else:
            self._member_writes(event, self._partition.release(event.member_id or "", now_ms=self._now_ms))

    def _acknowledge(self, event: Event) -> None:
        if self._partition is None:
            self._unchecked()
            return
        request = event.request or {}
        batches = request["batches"]
        if "version" in request and is_refused_by_broker(
            batches, version=request["version"], is_renew=request.get("is_renew", False)
        ):
            self._compare_refusal(event, ErrorCode.INVALID_REQUEST)
            return
        try:
            effects = self._partition.acknowledge(event.member_id or "", batches, now_ms=self._now_ms)
        except RequestRefusedError as refusal:
            self._rows.add_transitions(refusal.transitions)
            self._compare_refusal(event, refusal.code)
            return
        self._member_writes(event, effects)

    def _compare_refusal(self, event: Event, code: int) -> None:
        """Compare what a member was answered with the error of its refused acknowledgement."""
        if event.response is not None:
            observed, computed = event.response.get("error"), ERROR_NAMES[code]
            if observed != computed:
                self._add_difference("acknowledge", {"error": observed}, {"error": computed})

    def _fetch(self, event: Event) -> None:
        partition = self._partition
        if partition is None:
            self._unchecked()
            return
        request, response = event.request or {}, event.response
        lock_ms = response.get("lock_ms") if response else None
        if lock_ms is not None and lock_ms != self._settings.config.record_lock_duration_ms:
            self._settings.config = evolve(self._settings.config, record_lock_duration_ms=lock_ms)
            self._configure(partition)
        fetched = self._read(partition, request)
        acquired: tuple[AcquiredRecords, ...] = ()
        if fetched is not None:
            effects = self._acquire(partition, event.member_id or "", request, fetched)
            acquired = effects.acquired
            self._carry_out(effects)
        if response is not None and response.get("acquired", ()) != acquired and self._partition is not None:
            observed = {name: value for name, value in response.items() if name in {"error", "acquired"}}
            self._add_difference("fetch", observed, {"acquired": acquired})
        self._log.forget_below(partition.start_offset)

    def _acquire(
        self, partition: SharePartition, member_id: str, request: dict[str, Any], fetched: FetchedRecords
    ) -> Effects:
        try:
            effects = partition.acquire(
                member_id,
                fetched,
                now_ms=self._now_ms,
                max_records=request.get("max_records", MAX_POLL_RECORDS),
                batch_size=request.get("batch_size", MAX_POLL_RECORDS),
                mode=MODES[request["mode"]] if "mode" in request else AcquireMode.BATCH_OPTIMIZED,
            )
        except RequestRefusedError as refusal:  # a batch that is too large to be split
            return Effects(transitions=refusal.transitions)
        for first, last, count in effects.acquired:
            self._counts["records_acquired"] += last - first + 1
            if "acquisition" in self._rows.outputs:
                self._rows.add("acquisition", (first, last, member_id, count))
        return effects

    def _read(self, partition: SharePartition, request: dict[str, Any]) -> FetchedRecords | None:
        """Return what a fetch has read; None if nothing. If that cannot be known, nothing can be checked any more."""
        if "batches" in request:
            offset = request["fetch_offset"] if "fetch_offset" in request else partition.next_fetch_offset()
            return self._log.given(offset, self._settings.isolation, request)
        has_room = partition.can_acquire()
        offset = request["fetch_offset"] if "fetch_offset" in request else partition.next_fetch_offset()
        if not has_room or request.get("max_records") == 0 or request.get("max_bytes") == 0:
            return None
        if offset < self._log.begin or "log" in self._lacks:
            self._partition = None
            self._unchecked()
            return None
        if offset < self._log.start_offset:
            self._carry_out(partition.advance_log_start(self._log.start_offset))
            return None
        return self._log.read(offset, self._settings.isolation, request)

    def _write(self, event: Event) -> None:
        if self._partition is None:
            self._unchecked()
            return
        content = content_in(event.request or {})
        error = (event.response or {}).get("error")
        number = find_write(self._pending, content)
        while number is None and self._expire_next():
            number = find_write(self._pending, content)
        if number is None and content in self._abandoned:  # of the leader before this one: it decides nothing here
            self._abandoned.remove(content)
            return
        if number is None:
            number = next((n for n, write in self._pending.items() if are_same_batches(write[6], content[-1])), None)
            computed = None if number is None else content_json(content_of(self._pending[number]))
            self._add_difference("write", content_json(content), computed)
        if number is not None:
            self._answer_write(number, None if error is None else ERRORS[error])

    def _dead_letter(self, event: Event) -> None:
        if self._partition is None:
            self._unchecked()
            return
        request = event.request or {}
        content = request["first"], request["last"], request["delivery_count"], DEAD_LETTER_CAUSES[request["cause"]]
        number = self._find_dead_letter(content)
        while number is None and self._expire_next():
            number = self._find_dead_letter(content)
        if number is None:
            self._add_difference("dead_letter", request, None)
        else:
            self._answer_dead_letter(number)

    def _find_dead_letter(self, content: tuple[Any, ...]) -> int | None:
        return next((number for number, each in self._dead_letters.items() if each[2:] == content), None)

    _HANDLERS: ClassVar[Mapping[str, Callable[[Replay, Event], None]]] = MappingProxyType(
        {
            "config": _config,
            "log": _appended,
            "log_start": _log_start,
            "initialize": _initialize,
            "fetch": _fetch,
            "acknowledge": _acknowledge,
            "close": _close,
            "disconnect": _close,
            "write": _write,
            "fence": _fence,
            "dead_letter": _dead_letter,
        }
    )
