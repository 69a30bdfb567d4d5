"""
A share partition whose steps are taken one by one, each compared with what the broker let out.

Acquisitions are computed, and so are writes. Locks expire when something that was observed shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import define, evolve, frozen

from sharestate.broker_log.schedule import RequestId, Schedule, Step, What
from sharestate.broker_log.visible_log import MAX_BYTES, VisibleLog, Way, counts_read, prefixes, sums_of_others
from sharestate.errors import RequestRefusedError, ResetOffsetRequiredError
from sharestate.history import AppendedBatch, Event
from sharestate.history.columns import ERROR_NAMES, ERRORS, MODES
from sharestate.history.replay_state import Settings, are_same_batches, content_in, content_json, content_of
from sharestate.json_lines import Json
from sharestate.partition.share_partition import SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.checks import MAX_INT64
from sharestate.values.config import OffsetReset, ShareConfig
from sharestate.values.effects import Effects, Transition
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.profiles import LATEST
from sharestate.values.records import AcquiredRecords, SharePartitionKey
from sharestate.values.requests import PersistedState, WriteShareGroupState
from sharestate.values.snapshot import Snapshot

EARLY_US: Final = 25_000
"""How much earlier than computed a lock may expire: its acquisition may have been as much earlier. [µs]"""

LATE_US: Final = 25_000
"""How late a time of the log may be. [µs]"""

QUEUED_AFTER_US: Final = 3_000
"""How soon after the answer to a write the next one is sent, if it has waited for it. [µs]"""

_LOST_FOR_US: Final = 5_000_000
"""How long after its locks have expired a lost connection is still noticed. [µs]"""

_MOST_WAYS: Final = 60
"""The most ways to read for a fetch that are tried."""

_MOST_RECENT: Final = 12
"""How many steps before, a fetch may have looked for where to read."""

_MOST_EXPIRIES: Final = 500
"""The most locks that expire before a step."""

_RENEW_VERSION: Final = 2
"""The version of requests from which on they may renew locks."""


@frozen
class Mismatch:
    """Something that does not fit."""

    what: str
    """What it is."""

    observed: Json
    """What was observed."""

    computed: Json
    """What was computed."""

    write: int = -1
    """The observed write that it is about; -1 for none."""


@define
class Counts:
    """What was checked so far."""

    fetches_with_records: int = 0
    """Fetches whose acquired ranges were computed."""

    empty_fetches: int = 0
    """Fetches without records that were computed."""

    undecided_fetches: int = 0
    """Fetches without records that cannot be decided."""

    codes: int = 0
    """Answers to acknowledgements."""

    writes: int = 0
    """Writes of state."""

    expiries: int = 0
    """Acquisition locks that have expired."""

    releases: int = 0
    """Members whose connections were lost, and their records released."""


@frozen
class Saved:
    """A share partition between two steps, to come back to."""

    snapshot: Snapshot | None
    """The share partition; None before its state was read."""

    settings: Settings
    """The settings."""

    visible: int
    """How many batches of the log are visible."""

    log_start: int
    """The log start offset."""

    issued: int
    """How many of the observed writes were issued."""

    numbers: dict[int, int]
    """The numbers of those that are pending."""

    expected: dict[int, str | None]
    """The answers to acknowledgements by the number of their writes."""

    late_us: tuple[int, ...]
    """The delays of the locks that have expired. [µs]"""

    counts: Counts
    """What was checked."""

    recorded: int
    """How many transitions were recorded."""


class CheckedPartition:
    """
    A share partition that is compared with what was observed.

    Args:
        key: The share partition.
        schedule: Its steps.
        log: Its log; None if nothing is known of it.
        others: How many records each request has acquired of each topic and partition.
        record_transitions: Whether ``transitions`` lists which records have changed, and why.

    Attributes:
        transitions: The changes of records in the steps that fitted, since they were taken away.
        counts: What was checked so far.
        was_initialized: Whether its state was ever read.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        schedule: Schedule,
        log: VisibleLog | None,
        others: Mapping[RequestId, Mapping[tuple[str, int], int]],
        *,
        record_transitions: bool = False,
    ) -> None:
        """Start before the first step."""
        self._key = SharePartitionKey(group_id=key[0], topic_id=key[1], partition=key[2])
        self._schedule = schedule
        self._log = VisibleLog(()) if log is None else log
        self._others = others
        self._partition: SharePartition | None = None
        self._settings = Settings(LATEST, ShareConfig())
        self._visible = self._log_start = self._issued = 0
        self._numbers: dict[int, int] = {}
        self._expected: dict[int, str | None] = {}
        self._late_us: tuple[int, ...] = ()
        self._last_ms = 0
        self._before: Saved | None = None
        self._recent: deque[tuple[int, Saved]] = deque(maxlen=_MOST_RECENT)
        self._record_transitions = record_transitions
        self.counts = Counts()
        self.was_initialized = False
        self.transitions: list[Transition] = []

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._partition

    @property
    def late_us(self) -> tuple[int, ...]:
        """How long after its deadline each lock has expired, at the most. [µs]"""
        return self._late_us

    # ---- copies

    def save(self) -> Saved:
        """Return what it takes to come back here."""
        return Saved(
            None if self._partition is None else self._partition.snapshot(),
            copy(self._settings),
            self._visible,
            self._log_start,
            self._issued,
            dict(self._numbers),
            dict(self._expected),
            self._late_us,
            copy(self.counts),
            len(self.transitions),
        )

    def restore(self, saved: Saved) -> None:
        """Come back to where *saved* was made."""
        snapshot = saved.snapshot
        records = self._record_transitions
        self._partition = None if snapshot is None else SharePartition.restore(snapshot, record_transitions=records)
        del self.transitions[saved.recorded :]
        self._settings = copy(saved.settings)
        self._visible, self._log_start, self._issued = saved.visible, saved.log_start, saved.issued
        self._numbers, self._expected = dict(saved.numbers), dict(saved.expected)
        self._late_us, self.counts = saved.late_us, copy(saved.counts)
        self._last_ms = 0 if snapshot is None else snapshot.now_ms

    def give_up(self) -> None:
        """Know nothing until the state is read again."""
        self._partition = None
        self._recent.clear()
        self._numbers.clear()
        self._expected.clear()

    # ---- steps

    def take(self, step: Step, saved: Saved) -> Mismatch | None:
        """
        Take a step; if it does not fit as it is, with locks that expire, and connections that are lost, before it.

        Args:
            step: The step.
            saved: What was saved here.

        Returns:
            What does not fit; the share partition has to be restored then.
        """
        handler = self._HANDLERS[step.what]
        self._before = saved
        self._recent.append((step.at_us, saved))
        if step.what is What.OUTCOME:
            self._expire_queued(step, saved)
        mismatch = handler(self, step)
        if mismatch is None or self._partition is None or step.what not in _AFTER_OTHERS:
            return mismatch
        self.restore(saved)
        before = saved
        for _ in range(_MOST_EXPIRIES):
            if not self._something_before(step, before):
                return self._undecided(step, saved, mismatch)
            self._before = before = self.save()
            if handler(self, step) is None:
                return None
            self.restore(before)
        return mismatch

    def _undecided(self, step: Step, saved: Saved, mismatch: Mismatch) -> Mismatch | None:
        """Leave a fetch without records undecided: there are reasons for it that are not in any log."""
        response = step.event.response or {}
        if step.what is not What.FETCH or response.get("acquired") or response.get("error"):
            return mismatch
        self.restore(saved)
        self.counts.undecided_fetches += 1
        return None

    def _something_before(self, step: Step, saved: Saved) -> bool:
        """Let a lock expire, or a lost connection be noticed, if its write is the next one that was observed."""
        if self._expire(step.at_us):
            return True
        self.restore(saved)
        return self._lose(step, saved)

    def _expire_queued(self, step: Step, saved: Saved) -> None:
        """Let the locks expire whose writes have waited for the answer to this one."""
        writes = self._schedule.writes
        while (
            self._partition is not None
            and step.write < self._issued < len(writes)
            and (writes[self._issued][1].at_us or 0) < step.at_us + QUEUED_AFTER_US
            and (self._partition.next_deadline_ms() or MAX_INT64) * 1000 <= step.at_us + QUEUED_AFTER_US
        ):
            if not self._expire(step.at_us):
                self.restore(saved)
                return
            saved = self.save()

    def _expire(self, at_us: int) -> bool:
        """Let the next locks expire up to one with a write."""
        partition = self._active()
        while True:
            due_ms = partition.next_deadline_ms()
            if due_ms is None or due_ms * 1000 > at_us + EARLY_US:
                return False
            effects = partition.expire_next(now_ms=self._now_ms(max(at_us, due_ms * 1000)))
            if effects is None or self._issue(self._noted(effects)) is not None:
                return False
            self.counts.expiries += 1
            if effects.writes:
                arrived = self._schedule.writes[self._issued - 1][1].at_us or 0
                self._late_us += (arrived - due_ms * 1000,)
                return True

    def _lose(self, step: Step, saved: Saved) -> bool:
        most_us = self._settings.config.record_lock_duration_ms * 1000 + _LOST_FOR_US
        for lost_us, member_id in self._schedule.lost:
            if not lost_us - LATE_US <= step.at_us <= lost_us + most_us:
                continue
            effects = self._active().release(member_id, now_ms=self._now_ms(step.at_us))
            if effects.writes and self._issue(self._noted(effects)) is None:
                self.counts.releases += 1
                return True
            self.restore(saved)
        return False

    def _noted(self, effects: Effects) -> Effects:
        self.transitions += effects.transitions
        return effects

    def _active(self) -> SharePartition:
        assert self._partition is not None  # noqa: S101 - callers have looked
        return self._partition

    def _now_ms(self, at_us: int) -> int:
        """Return a time, or that of the last command if it is before it: times of the log are not exact."""
        self._last_ms = max(at_us // 1000, self._last_ms)
        return self._last_ms

    def _issue(self, effects: Effects) -> Mismatch | None:
        """Compare the writes of a command with those that were observed."""
        for write in effects.writes:
            if self._issued == len(self._schedule.writes):  # it was under way when the log ended
                continue
            mismatch = self._compare(write)
            if mismatch is not None:
                return mismatch
            self._numbers[self._issued] = write.number
            self._issued += 1
            self.counts.writes += 1
        return None

    def _compare(self, write: WriteShareGroupState) -> Mismatch | None:
        observed = content_in(self._schedule.writes[self._issued][1].request or {})
        computed = content_of(write)
        if observed[:4] == computed[:4] and are_same_batches(observed[4], computed[4]):
            return None
        return Mismatch("write", content_json(observed), content_json(computed), self._issued)

    # ---- the kinds of steps

    def _config(self, step: Step) -> None:
        self._settings.change(step.event.request or {})
        if self._partition is not None:
            self._partition.configure(self._settings.effective)

    def _appended(self, step: Step) -> None:
        self._visible = max(self._visible, self._log.count_after(step.event))

    def _log_starts(self, step: Step) -> None:
        self._log_start = max(self._log_start, (step.event.request or {})["offset"])
        if self._partition is not None and not step.event.inferred:
            self._noted(self._partition.advance_log_start(self._log_start))

    def _outcome(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            return None
        number = self._numbers.pop(step.write, None)
        if number is None:
            return None if step.write < self._issued else Mismatch("write", _observed(step.event), None, step.write)
        error = (step.event.response or {}).get("error")
        if error is None:
            self._noted(self._partition.write_succeeded(number))
            answered = None
        else:
            effects = self._noted(self._partition.write_failed(number, ERRORS[error]))
            answered = None if effects.error is None else ERROR_NAMES[effects.error.code]
        expected = self._expected.pop(number, answered)
        return None if expected == answered else Mismatch("code", expected, answered, step.write)

    def _initialize(self, step: Step) -> None:
        request, response = step.event.request or {}, step.event.response or {}
        self.give_up()
        since = _earliest_us(step.event) - LATE_US
        writes = self._schedule.writes
        while self._issued < len(writes) and (writes[self._issued][1].at_us or 0) < since:
            self._issued += 1
        if "error" in response or not response:
            return
        self._settings.leader_epoch = request.get("leader_epoch", self._settings.leader_epoch)
        partition = SharePartition(
            self._key,
            leader_epoch=self._settings.leader_epoch,
            profile=self._settings.profile,
            config=self._settings.effective,
            record_transitions=self._record_transitions,
        )
        partition.initialize()
        state = PersistedState(
            start_offset=response["start_offset"],
            state_epoch=response["state_epoch"],
            state_batches=response["state_batches"],
        )
        try:
            self._noted(partition.read_succeeded(state))
        except ResetOffsetRequiredError:
            self._noted(partition.read_succeeded(state, reset_offset=self._reset_offset(request)))
        self._partition, self._last_ms = partition, 0
        self.was_initialized = True

    def _reset_offset(self, request: dict[str, Any]) -> int:
        if "reset_offset" in request:
            return int(request["reset_offset"])
        if self._settings.config.auto_offset_reset.strategy is OffsetReset.LATEST:
            return self._log.end_offset(self._visible)
        return self._log_start

    def _close(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            return None
        effects = self._partition.release(step.event.member_id or "", now_ms=self._now_ms(step.at_us))
        return self._issue(self._noted(effects))

    def _acknowledge(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            return None
        event = step.event
        request = event.request or {}
        computed: str | None = None
        effects = Effects()
        version, is_renew = request.get("version", _RENEW_VERSION), request.get("is_renew", False)
        if is_refused_by_broker(request["batches"], version=version, is_renew=is_renew):
            computed = "invalid_request"
        else:
            try:
                now_ms = self._now_ms(step.at_us)
                effects = self._partition.acknowledge(event.member_id or "", request["batches"], now_ms=now_ms)
            except RequestRefusedError as refusal:
                computed = ERROR_NAMES[refusal.code]
                self.transitions += refusal.transitions
            self._noted(effects)
        if event.response is not None:
            expected = event.response.get("error")
            if effects.writes and expected not in _REFUSALS:
                self._expected[effects.writes[0].number] = expected
            elif expected != computed or effects.writes:
                return Mismatch("code", expected, computed)
            self.counts.codes += 1
        return self._issue(effects)

    def _arrival(self, step: Step) -> Mismatch | None:
        if self._partition is None or step.write < self._issued:
            return None
        return Mismatch("write", _observed(step.event), None, step.write)

    # ---- fetches

    def _fetch(self, step: Step) -> Mismatch | None:
        event = step.event
        response = event.response
        if response is None:
            return None
        if self._partition is None:  # a fetch that is answered before the state was read acquires nothing
            self.counts.empty_fetches += not (self.was_initialized or response.get("acquired"))
            return None
        if "error" in response:
            return Mismatch("fetch", {"error": response["error"]}, None)
        self._take_lock_duration(response)
        acquired = response.get("acquired", ())
        first: tuple[AcquiredRecords, ...] | None = None
        for way in islice(self._ways(event, acquired, step), _MOST_WAYS):
            if first is not None and self._before is not None:
                self.restore(self._before)
                self._take_lock_duration(response)
            computed = self._acquire(step, way)
            if computed == acquired:
                self._visible = max(self._visible, way.visible if acquired else 0)
                self.counts.fetches_with_records += bool(acquired)
                self.counts.empty_fetches += not acquired
                return None
            first = computed if first is None else first
        return Mismatch("fetch", [list(each) for each in acquired], [list(each) for each in first or ()])

    def _take_lock_duration(self, response: dict[str, Any]) -> None:
        lock_ms = response.get("lock_ms")
        if lock_ms is not None and lock_ms != self._settings.config.record_lock_duration_ms:
            self._settings.config = evolve(self._settings.config, record_lock_duration_ms=lock_ms)
            self._active().configure(self._settings.effective)

    def _ways(self, event: Event, acquired: tuple[AcquiredRecords, ...], step: Step) -> Iterator[Way]:
        """Yield the ways in which a fetch may have read, the likely one first."""
        request = event.request or {}
        others = request.get("acquired_by_others", 0)
        visible = self._visible
        if acquired:
            visible = max(visible, self._log.count_with(acquired[-1].last_offset))
        yield Way(others, None, visible)
        if self._before is not None:
            self.restore(self._before)
        sums = sums_of_others(event, self._others.get((event.connection, event.request_no), {}))
        if not acquired:
            yield from (Way(each, 0, visible) for each in sums if each >= request.get("max_records", 0))
        for offset in self._older_offsets(step) if acquired else ():
            yield Way(others, None, visible, offset)
        for count in counts_read(request, acquired, self._readable(visible)):
            yield from (Way(each, count, visible) for each in sums if each < request.get("max_records", 0))
        later = visible
        while later < len(self._log.earliest_us) and self._log.earliest_us[later] <= step.at_us + EARLY_US:
            later += 1
            yield Way(others, None, later)

    def _older_offsets(self, step: Step) -> list[int]:
        """Return where else a fetch may read: a broker looks for that some steps before it acquires."""
        now = self._active().next_fetch_offset()
        offsets: dict[int, None] = {}
        for at_us, saved in reversed(self._recent):
            if at_us >= step.earliest_us - LATE_US and saved.snapshot is not None:
                offsets[SharePartition.restore(saved.snapshot).next_fetch_offset()] = None
        return [offset for offset in offsets if offset != now]

    def _readable(self, visible: int, offset: int | None = None) -> list[AppendedBatch]:
        if offset is None:
            offset = self._active().next_fetch_offset()
        is_committed = self._settings.isolation is IsolationLevel.READ_COMMITTED
        return self._log.readable(offset, visible, is_committed=is_committed)

    def _acquire(self, step: Step, way: Way) -> tuple[AcquiredRecords, ...]:
        """Fetch in one of the ways, and return what is acquired."""
        partition, request = self._active(), step.event.request or {}
        has_room = partition.can_acquire()
        offset = partition.next_fetch_offset() if way.offset is None else way.offset
        wanted = request.get("max_records", 0) - way.others
        if not has_room or wanted <= 0:
            return ()
        if offset < self._log_start:
            self._noted(partition.advance_log_start(self._log_start))
            return ()
        batches = self._readable(way.visible, offset)
        count = way.batches
        if count is None:
            count = next(prefixes(batches, request.get("max_bytes", MAX_BYTES), request.get("partitions", 1)))
        effects = partition.acquire(
            step.event.member_id or "",
            self._log.fetched(offset, batches[:count], self._settings.isolation),
            now_ms=self._now_ms(step.at_us),
            max_records=wanted,
            batch_size=request.get("batch_size", 500),
            mode=MODES[request.get("mode", "batch_optimized")],
        )
        return self._noted(effects).acquired

    _HANDLERS: ClassVar[Mapping[What, Callable[[CheckedPartition, Step], Mismatch | None]]] = MappingProxyType(
        {
            What.CONFIG: _config,
            What.LOG: _appended,
            What.LOG_START: _log_starts,
            What.OUTCOME: _outcome,
            What.INITIALIZE: _initialize,
            What.ACKNOWLEDGE: _acknowledge,
            What.CLOSE: _close,
            What.FETCH: _fetch,
            What.ARRIVAL: _arrival,
        }
    )


_AFTER_OTHERS: Final = frozenset({What.ACKNOWLEDGE, What.CLOSE, What.FETCH, What.ARRIVAL})
"""The steps before which locks may expire, or lost connections be noticed."""

_REFUSALS: Final = frozenset({"invalid_record_state", "invalid_request"})


def _earliest_us(event: Event) -> int:
    return next((each for each in (event.taken_us, event.at_us) if each is not None), 0)


def _observed(event: Event) -> Json:
    return content_json(content_in(event.request or {}))
