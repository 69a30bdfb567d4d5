"""
What each event of a history means for a share partition: the command that it is, and what is compared with its answer.

Writes and dead letters are kept until their answers come. What the commands lead to is rows and counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import evolve

from sharestate.errors import ErrorCode, MalformedInputError, RequestRefusedError, ResetOffsetRequiredError
from sharestate.history.columns import DEAD_LETTER_CAUSES, ERROR_NAMES, ERRORS, KINDS, MODES
from sharestate.history.events import Event
from sharestate.history.known_log import KnownLog
from sharestate.history.pending_writes import PendingWrites
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.replay_state import Loss, Settings, are_same, content_in, content_json, content_of
from sharestate.history.rows import RowCollector
from sharestate.json_lines import Json
from sharestate.partition.share_partition import MAX_POLL_RECORDS, SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AcquiredRecords, AcquireMode, SharePartitionKey
from sharestate.values.requests import PersistedState, WriteShareGroupState

_ANSWERS: Final = frozenset({"write", "dead_letter"})
"""The kinds before which locks expire only as far as they have to, if no event says when they do."""

_TIMED: Final = frozenset({"acknowledge", "close", "disconnect", "expire", "fetch"})
"""The kinds whose commands take a time. It decides when locks end, so no other event moves it."""


def _is_timed(event: Event) -> bool:
    """Return whether an event is a command that takes its time: a fetch that has read nothing is none."""
    return event.kind in _TIMED and (event.request is None or event.request.get("read_to") != -1)


_COUNTED_AS: Final = {kind: f"events.{kind}" for kind in KINDS}
_READS_STATE: Final = ("state_epoch", "start_offset", "state_batches")


class Interpreter:
    """
    A share partition to which things happen, one after the other.

    Args:
        key: The share partition.
        settings: The settings until ``config`` events change them.
        lacks: The kinds that the history lacks: see ``Replay``.
        rows: Takes the rows.
        budget: What the replay may cost.

    Attributes:
        key: Its key.
        partition: The share partition; None as long as its state is not known.
        now_ms: The time of the next command that takes one. [ms]
        settings: The settings.
        log: What is known of the log.
        writes: The writes that have no answer yet.
        dead_letters: The dead letters that have no answer yet, by their numbers.
        lost: Why nothing is known by now; None if that is no verdict.
        counts: What was counted.
        expires_when_due: Whether locks expire when they are due, because no event says when.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        settings: Settings,
        lacks: frozenset[str],
        rows: RowCollector,
        budget: ReplayBudget,
    ) -> None:
        """Start before the first event."""
        group_id, topic_id, partition = key
        self.key = SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition)
        self.settings, self.lacks, self.rows, self._budget = settings, lacks, rows, budget
        self.expires_when_due = "expire" in lacks
        self._answers_at_once = bool(lacks & {"write", "dead_letter"})
        self.partition: SharePartition | None = None
        self.now_ms = 0
        self.log = KnownLog()
        self.writes = PendingWrites()
        self.dead_letters: dict[int, DeadLetterRequest] = {}
        self.lost: Loss | None = None
        self.counts: Counter[str] = Counter()

    def set_time(self, event: Event, now_ms: int) -> None:
        """Take the time of an event; times before that of the last command are not taken."""
        if (now_ms > self.now_ms or now_ms < 0) and (self.expires_when_due or _is_timed(event)):
            self.now_ms = now_ms  # a command refuses what is below zero

    def take(self, event: Event) -> None:
        """
        Let *event* happen, and before it what is due.

        Raises:
            MalformedInputError: A field of it is not what it has to be; ``field`` says which. Only the locks that were
                due have expired.
        """
        kind = event.kind
        if self.expires_when_due and self.partition is not None and kind not in _ANSWERS:
            while self.expire_next():
                pass
        handle = self._HANDLERS.get(kind)
        if handle is None:
            message = f"expected one of {', '.join(KINDS)}, got {kind!r}"
            raise MalformedInputError(message, "kind")
        try:
            handle(self, event)
        except KeyError as error:
            message = "missing, or an unknown name"
            raise MalformedInputError(message, str(error.args[0])) from error
        self.counts[_COUNTED_AS[kind]] += 1

    # ---- rows

    def _add_difference(self, name: str, observed: Json, computed: Json) -> None:
        self.counts["differences"] += 1
        self.rows.add_difference(name, observed, computed)

    # ---- locks

    def expire_next(self) -> bool:
        """
        Expire the next lock that is due, if there is one; its rows have the first instant at which it was.

        Raises:
            MalformedInputError: The replay costs too much.
        """
        partition = self._active()
        due_ms = partition.next_deadline_ms()
        if due_ms is None or due_ms > self.now_ms:
            return False
        self._budget.expect_left()
        self._budget.count_expiry()
        effects = partition.expire_next(now_ms=self.now_ms)
        if effects is not None:
            self.counts["locks_expired"] += 1
            self._carry_out(effects, at_us=due_ms * 1000)
        return effects is not None

    # ---- effects

    def _active(self) -> SharePartition:
        partition = self.partition
        if partition is None:
            message = "nothing has read the state yet"
            raise MalformedInputError(message, "kind")
        return partition

    def _carry_out(self, effects: Effects, at_us: int | None = None) -> None:
        if effects.transitions:
            self._budget.count_transitions(len(effects.transitions))
            self.rows.add_transitions(effects.transitions, at_us)
        for write in effects.writes:
            self._add_write(write, at_us)
        if effects.dead_letters:
            self._add_dead_letters(effects.dead_letters, at_us)
        if self._answers_at_once:
            self._answer_at_once(effects)

    def _answer_at_once(self, effects: Effects) -> None:
        """Answer what the history has no answers to."""
        if "write" in self.lacks:
            for write in effects.writes:
                self._answer_write(write.number, self.writes.implied_error(write.number))
        if "dead_letter" in self.lacks:
            for request in effects.dead_letters:
                self._answer_dead_letter(request.number)

    def _add_dead_letters(self, requests: tuple[DeadLetterRequest, ...], at_us: int | None) -> None:
        self._budget.count_ranges(len(requests))
        for request in requests:
            self.counts["dead_letters"] += 1
            self.dead_letters[request.number] = request
            if "dead_letter" in self.rows.outputs:
                _, _, first, last, count, cause = request
                self.rows.add("dead_letter", (first, last, count, cause.value), at_us)

    def _add_write(self, write: WriteShareGroupState, at_us: int | None) -> None:
        self.counts["writes"] += 1
        self._budget.count_ranges(len(write.state_batches))
        self.writes.by_number[write.number] = write
        if "write" in self.rows.outputs:
            self.rows.add("write", write[1:], at_us)

    def _answer_write(self, number: int, error: ErrorCode | None, *, advances: bool = True) -> None:
        """Report the outcome of a write, and compare it with what its member was answered."""
        partition = self._active()
        del self.writes.by_number[number]
        if error is None:
            effects = partition.write_succeeded(number, advances=advances)
        else:
            self.counts["writes_failed"] += 1
            effects = partition.write_failed(number, error)
        expected = self.writes.expected.pop(number, None)
        if expected is not None:
            name, observed = expected
            computed = None if effects.error is None else ERROR_NAMES[effects.error.code]
            if observed != computed:
                self._add_difference(name, {"error": observed}, {"error": computed})
        if effects.transitions or effects.writes or effects.dead_letters:
            self._carry_out(effects)

    def _answer_dead_letter(self, number: int) -> None:
        partition = self._active()
        del self.dead_letters[number]
        self._carry_out(partition.dead_letter_answered(number))

    def _member_writes(self, event: Event, effects: Effects) -> None:
        """Carry out what a member's request led to, and compare its answer now or as soon as its write has one."""
        if event.response is not None:
            observed = event.response.get("error")
            if effects.writes:
                self.writes.expected[effects.writes[0].number] = event.kind, observed
            elif observed is not None:
                self._add_difference(event.kind, {"error": observed}, {"error": None})
        self._carry_out(effects)

    # ---- the kinds of events

    def _unchecked(self) -> None:
        self.counts["events_unchecked"] += 1

    def _config(self, event: Event) -> None:
        self.settings.change(event.request or {})
        if self.partition is not None and event.request:
            self._configure(self.partition)

    def _configure(self, partition: SharePartition) -> None:
        self._carry_out(partition.configure(self.settings.config))

    def _appended(self, event: Event) -> None:
        if self.lost is None or self.lost.how_long != "for_good":  # else it may not even be in order
            self.log.append((event.request or {})["batches"])

    def _log_start(self, event: Event) -> None:
        offset = (event.request or {})["offset"]
        self.log.start_offset = max(self.log.start_offset, offset)
        if event.inferred:  # a fetch from below will learn it
            return
        if self.partition is None:
            self._unchecked()
        else:
            self._carry_out(self.partition.advance_log_start(offset))

    def _expire(self, _event: Event) -> None:
        if self.partition is None:
            self._unchecked()
            return
        effects = self.partition.expire_next(now_ms=self.now_ms)
        if effects is None:
            self._add_difference("expire", {"now_ms": self.now_ms}, {"due_ms": self.partition.next_deadline_ms()})
            return
        self.counts["locks_expired"] += 1
        self._carry_out(effects)

    def _forget(self) -> None:
        """Know nothing any more of the share partition."""
        self.counts["writes_unanswered"] += self.writes.abandon()
        self.dead_letters.clear()
        self.partition = None
        if self.rows.states is not None:
            self.rows.states.clear()

    def _stop(self, _event: Event) -> None:
        self._forget()

    def _verdict(self, event: Event) -> None:
        request = event.request or {}
        verdict, reason, lost = request["verdict"], request.get("reason"), request.get("lost")
        if "verdict" in self.rows.outputs:
            self.rows.add("verdict", (verdict, reason, lost))
        if lost is not None:
            self._forget()
            self.lost = Loss(verdict, reason, lost, event.time_us)

    def _unknown(self, _event: Event) -> None:
        """Ignore what is not known: the verdict says what follows from it."""

    def _initialize(self, event: Event) -> None:
        if self.lost is not None and self.lost.how_long == "for_good":
            self._unchecked()
            return
        self.lost = None
        request, response = event.request or {}, event.response
        self.settings.leader_epoch = request.get("leader_epoch", self.settings.leader_epoch)
        self._forget()
        if response is None:
            self._add_initialization(None)
            self._unchecked()
            return
        partition = SharePartition(
            self.key,
            leader_epoch=self.settings.leader_epoch,
            profile=self.settings.profile,
            config=self.settings.effective,
            record_transitions=self.rows.states is not None,
        )
        partition.initialize()
        effects = self._take_over(partition, request, response)
        self.partition = partition
        self._add_initialization(partition if effects.error is None else None)
        self._carry_out(effects)

    def _add_initialization(self, partition: SharePartition | None) -> None:
        """Add the row of a new share partition; None if its state is not known."""
        if "initialization" in self.rows.outputs:
            read = (None, None) if partition is None else (partition.state_epoch, partition.start_offset)
            self.rows.add("initialization", (self.settings.leader_epoch, *read))

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
                offset = self.log.reset_offset(partition.config.auto_offset_reset)
            return partition.read_succeeded(state, reset_offset=offset)

    def _fence(self, _event: Event) -> None:
        if self.partition is None:
            self._unchecked()
        else:
            self._carry_out(self.partition.fence())

    def _close(self, event: Event) -> None:
        if self.partition is None:
            self._unchecked()
        else:
            self._member_writes(event, self.partition.release(event.member_id or "", now_ms=self.now_ms))

    def _acknowledge(self, event: Event) -> None:
        if self.partition is None:
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
            effects = self.partition.acknowledge(event.member_id or "", batches, now_ms=self.now_ms)
        except RequestRefusedError as refusal:
            self.rows.add_transitions(refusal.transitions)
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
        partition = self.partition
        if partition is None:
            self._unchecked()
            return
        request, response = event.request or {}, event.response
        lock_ms = response.get("lock_ms") if response else None
        if lock_ms is not None and lock_ms != self.settings.config.record_lock_duration_ms:
            self.settings.config = evolve(self.settings.config, record_lock_duration_ms=lock_ms)
            self._configure(partition)
        is_defect = "defect" in request
        fetched = self._read(partition, request)
        acquired: tuple[AcquiredRecords, ...] = ()
        if fetched is not None:
            if is_defect:  # acquire has thrown after it had acquired, as it was about to filter (B8)
                fetched = evolve(fetched, isolation=IsolationLevel.READ_UNCOMMITTED)
            effects = self._acquire(partition, event.member_id or "", request, fetched)
            acquired = effects.acquired
            self._carry_out(effects)
        is_compared = self.partition is not None and not is_defect
        if is_compared and response is not None and response.get("acquired", ()) != acquired:
            observed = {name: value for name, value in response.items() if name in {"error", "acquired"}}
            self._add_difference("fetch", observed, {"acquired": acquired})
        self.log.forget_below(partition.start_offset)

    def _acquire(
        self, partition: SharePartition, member_id: str, request: dict[str, Any], fetched: FetchedRecords
    ) -> Effects:
        try:
            effects = partition.acquire(
                member_id,
                fetched,
                now_ms=self.now_ms,
                max_records=request.get("max_records", MAX_POLL_RECORDS) - request.get("acquired_by_others", 0),
                batch_size=request.get("batch_size", MAX_POLL_RECORDS),
                mode=MODES[request["mode"]] if "mode" in request else AcquireMode.BATCH_OPTIMIZED,
            )
        except RequestRefusedError as refusal:  # a batch that is too large to be split
            return Effects(transitions=refusal.transitions)
        self._budget.count_ranges(len(effects.acquired))
        for first, last, count in effects.acquired:
            self.counts["records_acquired"] += last - first + 1
            if "acquisition" in self.rows.outputs:
                self.rows.add("acquisition", (first, last, member_id, count))
        return effects

    def _read(self, partition: SharePartition, request: dict[str, Any]) -> FetchedRecords | None:
        """Return what a fetch has read; None if nothing. If that cannot be known, nothing can be checked any more."""
        if "batches" in request:
            offset = request["fetch_offset"] if "fetch_offset" in request else partition.next_fetch_offset()
            return self.log.given(offset, self.settings.isolation, request)
        has_room = partition.can_acquire()
        offset = request["fetch_offset"] if "fetch_offset" in request else partition.next_fetch_offset()
        if "read_to" in request:
            last: int = request["read_to"]
            return None if last < 0 else self.log.read_to(offset, last, self.settings.isolation)
        if not has_room or request.get("max_records") == 0 or request.get("max_bytes") == 0:
            return None
        if offset < self.log.begin or "log" in self.lacks:
            self.partition = None
            self._unchecked()
            return None
        if offset < self.log.start_offset:
            self._carry_out(partition.advance_log_start(self.log.start_offset))
            return None
        return self.log.read(offset, self.settings.isolation, request)

    def _write(self, event: Event) -> None:
        if self.partition is None:
            self._unchecked()
            return
        request = event.request or {}
        error = (event.response or {}).get("error")
        number = self._number_of(request)
        if number is not None:
            has_stayed = request.get("defect") is not None  # Kafka's advance has thrown (B7)
            self._answer_write(number, None if error is None else ERRORS[error], advances=not has_stayed)

    def _number_of(self, request: dict[str, Any]) -> int | None:
        """Return the number of the write that is answered, which is the one computed; None if it decides nothing."""
        content = content_in(request)
        number: int | None = request.get("number")
        if number is None:
            number = self.writes.find(content)
            while number is None and self.expires_when_due and self.expire_next():
                number = self.writes.find(content)
            if number is not None:
                return number
            if self.writes.is_abandoned(content):
                return None
            number = self.writes.similar(content)
        write = self.writes.by_number.get(number) if number is not None else None
        computed = None if write is None else content_of(write)
        if computed is None or not are_same(content, computed, is_head_late=request.get("is_head_late", False)):
            self._add_difference("write", content_json(content), None if computed is None else content_json(computed))
        return None if computed is None else number

    def _dead_letter(self, event: Event) -> None:
        if self.partition is None:
            self._unchecked()
            return
        request = event.request or {}
        content = request["first"], request["last"], request["delivery_count"], DEAD_LETTER_CAUSES[request["cause"]]
        number = self._find_dead_letter(content)
        while number is None and self.expires_when_due and self.expire_next():
            number = self._find_dead_letter(content)
        if number is None:
            self._add_difference("dead_letter", request, None)
        else:
            self._answer_dead_letter(number)

    def _find_dead_letter(self, content: tuple[Any, ...]) -> int | None:
        return next((number for number, each in self.dead_letters.items() if each[2:] == content), None)

    _HANDLERS: ClassVar[Mapping[str, Callable[[Interpreter, Event], None]]] = MappingProxyType(
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
            "expire": _expire,
            "stop": _stop,
            "verdict": _verdict,
            "unknown": _unknown,
        }
    )
