"""
A share partition whose steps are taken one by one, each compared with what the broker let out.

Acquisitions are computed, and so are writes. Locks expire when something that was observed shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import evolve

from sharestate.errors import RequestRefusedError, ResetOffsetRequiredError
from sharestate.history import AppendedBatch, Event
from sharestate.history.columns import ERROR_NAMES, ERRORS, MODES
from sharestate.history.kafka_defects import (
    does_acquire_throw,
    does_advance_throw,
    write_succeeded_without_advance,
)
from sharestate.history.replay_state import Settings
from sharestate.log_check.observed_writes import Mismatch, ObservedWrites
from sharestate.log_check.schedule import LATE_US, QUEUED_AFTER_US, Allowed, Schedule, Step, What
from sharestate.log_check.search_state import Counts, Defect, Delay, Progress, Recent, Saved
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.visible_log import MAX_BYTES, VisibleLog, Way, counts_read, prefixes, sums_of_others
from sharestate.partition.share_partition import SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.checks import MAX_INT64
from sharestate.values.config import OffsetReset, ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.profiles import LATEST
from sharestate.values.records import AcquiredRecords, RecordState, SharePartitionKey
from sharestate.values.requests import PersistedState, StateBatch
from sharestate.values.snapshot import Snapshot

EARLY_US: Final = 25_000
"""How much earlier than computed a lock may expire: its acquisition may have been as much earlier. [µs]"""

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


class CheckedPartition:
    """
    A share partition that is compared with what was observed.

    Args:
        key: The share partition.
        schedule: Its steps.
        log: Its log; None if nothing is known of it.
        taken: Notes what was done, as events in causal order; nothing is noted if None.

    Attributes:
        was_initialized: Whether its state was ever read.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        schedule: Schedule,
        log: VisibleLog | None,
        *,
        taken: TakenEvents | None = None,
    ) -> None:
        """Start before the first step."""
        self._key = SharePartitionKey(group_id=key[0], topic_id=key[1], partition=key[2])
        self._lost = schedule.lost
        self._log = VisibleLog(()) if log is None else log
        self._writes = ObservedWrites(schedule)
        self._partition: SharePartition | None = None
        self._now = Progress(Settings(LATEST, ShareConfig()))
        self._last_ms = 0
        self._allowed = Allowed.NOTHING
        self._before: Saved | None = None
        self._read: FetchedRecords | None = None
        self._taken = taken
        self.was_initialized = False

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._partition

    @property
    def counts(self) -> Counts:
        """What was checked so far."""
        return self._now.counts

    @property
    def defects(self) -> tuple[Defect, ...]:
        """The defects of Kafka that have shown."""
        return self._now.defects

    @property
    def suspects(self) -> tuple[Defect, ...]:
        """Those of them that have shown since the state was read."""
        return self._now.defects[self._now.known_before :]

    @property
    def late_us(self) -> tuple[int, ...]:
        """How long after its deadline each lock has expired, at the most. [µs]"""
        return () if self._now.delay is None else self._now.delay.all_us()

    # ---- copies

    def save(self) -> Saved:
        """Return what it takes to come back here."""
        self._now.issued = self._writes.issued
        taken = 0 if self._taken is None else len(self._taken.events)
        return Saved(self._partition and self._partition.copy(), self._now.copy(), self._last_ms, taken)

    def restore(self, saved: Saved) -> None:
        """Come back to where *saved* was made."""
        self._partition = saved.partition and saved.partition.copy()
        if self._taken is not None:
            self._taken.forget_after(saved.taken)
        self._now = saved.progress.copy()
        self._writes.issued = self._now.issued
        self._last_ms = saved.last_ms

    def give_up(self) -> None:
        """Know nothing until the state is read again."""
        self._partition = None
        now = self._now
        now.recent, now.known_before, now.is_absent = (), len(now.defects), False
        for each in (now.numbers, now.expected, now.letters):
            each.clear()

    # ---- steps

    def take(self, step: Step, saved: Saved) -> Mismatch | None:
        """
        Take a step; if it does not fit as it is, with what no line shows before it: locks that expire, and others.

        Args:
            step: The step.
            saved: What was saved here.

        Returns:
            What does not fit; the share partition has to be restored then.
        """
        handler = self._HANDLERS[step.what]
        self._before, self._allowed = saved, step.allowed
        if self._partition is not None:
            recent = Recent(step.at_us, self._partition.next_fetch_offset())
            self._now.recent = (*self._now.recent[1 - _MOST_RECENT :], recent)
            if not (self._partition.can_acquire() and self._is_readable(recent.offset)):
                self._now.nothing_us = step.at_us
        if step.allowed is Allowed.UNDECIDED:
            self.counts.undecided_fetches += 1
            self._note(step, read_to=-1)
            return None
        if step.what is What.OUTCOME:
            self._expire_queued(step, saved)
        mismatch = handler(self, step)
        if mismatch is None or self._partition is None or step.what not in _AFTER_OTHERS:
            return mismatch or self._see_head(step)
        self.restore(saved)
        before = saved
        for _ in range(_MOST_EXPIRIES):
            if not self._something_before(step, before):
                return mismatch
            self._before = before = self.save()
            if handler(self, step) is None:
                return self._see_head(step)
            self.restore(before)
        return mismatch

    def _see_head(self, step: Step) -> Mismatch | None:
        partition = self._partition
        if partition is None:
            return None
        return self._writes.see_head(partition.start_offset, partition.delivery_complete_count, step.at_us)

    def _something_before(self, step: Step, saved: Saved) -> bool:
        """Let something happen that no line shows, if its write is the next one that was observed."""
        if self._now.letters:
            if self._answer_dead_letter(step):
                return self._see_head(step) is None
            self.restore(saved)
        if self._has_due(step):
            if self._expire(step):
                return self._see_head(step) is None
            self.restore(saved)
        return (self._lose(step, saved) or self._acknowledge_unlogged(step, saved)) and self._see_head(step) is None

    def _has_due(self, step: Step) -> bool:
        """Return whether a lock may have expired."""
        due_ms = self._active().next_deadline_ms()
        return due_ms is not None and due_ms * 1000 <= step.at_us + EARLY_US

    def _answer_dead_letter(self, step: Step) -> bool:
        """Let the dead-letter queue answer: its records are archived then, and that is written."""
        content = self._writes.next_content()
        if content is None:
            return False
        letters = self._now.letters.items()
        number = next((number for number, letter in letters if content[4] == (_written_then(letter),)), None)
        if number is None or self._issue(self._noted(self._active().dead_letter_answered(number)), step) is not None:
            return False
        letter = self._now.letters.pop(number)
        self.counts.dead_letters += 1
        if self._taken is not None:
            self._taken.dead_letter(letter, step.at_us)
        return True

    def _expire_queued(self, step: Step, saved: Saved) -> None:
        """Let the locks expire whose writes have waited for the answer to this one."""
        latest_us = step.at_us + QUEUED_AFTER_US
        while (
            self._partition is not None
            and self._writes.is_issued(step.write)
            and (event := self._writes.next_event()) is not None
            and (event.at_us or 0) < latest_us
            and (self._partition.next_deadline_ms() or MAX_INT64) * 1000 <= latest_us
        ):
            if not self._expire(step):
                self.restore(saved)
                return
            saved = self.save()

    def _expire(self, step: Step) -> bool:
        """Let the next locks expire up to one with a write."""
        partition = self._active()
        while True:
            due_ms = partition.next_deadline_ms()
            if due_ms is None or due_ms * 1000 > step.at_us + EARLY_US:
                return False
            write = self._writes.issued.count
            effects = partition.expire_next(now_ms=self._now_ms(max(step.at_us, due_ms * 1000)))
            if effects is None or self._issue(self._noted(effects), step) is not None:
                return False
            self.counts.expiries += 1
            if self._taken is not None:
                self._taken.expire(self._last_ms * 1000)
            if effects.writes:
                if self._writes.is_issued(write):
                    self._now.delay = Delay(self._writes.arrived_us(write) - due_ms * 1000, self._now.delay)
                return True

    def _lost_before(self, step: Step) -> list[str]:
        """Return the members that may hold records, and whose connections were lost before a step."""
        most_us = self._now.settings.config.record_lock_duration_ms * 1000 + _LOST_FOR_US
        return [member_id for lost_us, member_id in self._lost if 0 <= step.at_us - lost_us + LATE_US <= most_us]

    def _lose(self, step: Step, saved: Saved) -> bool:
        """Let a connection that was lost be noticed: what its member has is released."""
        for member_id in self._lost_before(step):
            effects = self._active().release(member_id, now_ms=self._now_ms(step.at_us))
            if effects.writes and self._issue(self._noted(effects), step) is None:
                self.counts.releases += 1
                if self._taken is not None:
                    self._taken.disconnect(member_id, self._last_ms * 1000)
                return True
            self.restore(saved)
        return False

    def _acknowledge_unlogged(self, step: Step, saved: Saved) -> bool:
        """Let a member acknowledge whose request was under way when the broker has stopped: its write was logged."""
        batches = self._writes.acknowledged_as_it_stopped(step.write) if step.what is What.ARRIVAL else []
        for member_id in self._lost_before(step) if batches else ():
            try:
                effects = self._active().acknowledge(member_id, batches, now_ms=self._now_ms(step.at_us))
                if effects.writes and self._issue(self._noted(effects), step) is None:
                    self.counts.unlogged += 1
                    if self._taken is not None:
                        self._taken.acknowledge(member_id, batches, self._last_ms * 1000)
                    return True
            except RequestRefusedError:
                pass
            self.restore(saved)
        return False

    def _noted(self, effects: Effects) -> Effects:
        for request in effects.dead_letters:
            self._now.letters[request.number] = request
        return effects

    def _note(self, step: Step, at_us: int | None = None, **known: Any) -> None:  # noqa: ANN401 - fields of its request
        """Note that the event of a step took effect, at its time if *at_us* is None, and what is *known* of it."""
        if self._taken is not None:
            self._taken.step(step, step.at_us if at_us is None else at_us, known)

    def _active(self) -> SharePartition:
        assert self._partition is not None  # noqa: S101 - callers have looked
        return self._partition

    def _now_ms(self, at_us: int) -> int:
        """Return a time, or that of the last command if it is before it: times of the log are not exact."""
        self._last_ms = max(at_us // 1000, self._last_ms)
        return self._last_ms

    def _issue(self, effects: Effects, step: Step) -> Mismatch | None:
        """Compare the writes of a command with those that were observed."""
        for write in effects.writes:
            observed = self._writes.match(write, step.at_us, self._allowed)
            if isinstance(observed, Mismatch):
                return observed
            if observed is not None:
                self._now.numbers[observed] = write.number
                if self._writes.is_head_late(observed):
                    self._now.late_heads |= {observed}
                self.counts.writes += 1
        return None

    # ---- the kinds of steps

    def _config(self, step: Step) -> None:
        self._now.settings.change(step.event.request or {})
        if self._partition is not None:
            self._partition.configure(self._now.settings.effective)
        self._note(step)

    def _appended(self, step: Step) -> None:
        self._now.visible = max(self._now.visible, self._log.count_after(step.event))
        self._note_log(step)

    def _note_log(self, step: Step) -> None:
        """Note the batches that are visible by now: in the order of the log, whatever their times say."""
        if self._taken is not None:
            self._taken.appended(self._log.events_until(self._now.visible), step.at_us)

    def _log_starts(self, step: Step) -> None:
        self._now.log_start = max(self._now.log_start, (step.event.request or {})["offset"])
        if self._partition is not None and not step.event.inferred:
            self._noted(self._partition.advance_log_start(self._now.log_start))
        self._note(step)

    def _outcome(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            self._note(step)
            return None
        number = self._now.numbers.pop(step.write, None)
        if number is None:
            if self._writes.is_issued(step.write):
                return None
            return Mismatch("write", self._writes.content_of(step.write), None, step.write)
        error = (step.event.response or {}).get("error")
        if error is None:
            self._succeed(step, number)
            answered = None
        else:
            effects = self._noted(self._partition.write_failed(number, ERRORS[error]))
            answered = None if effects.error is None else ERROR_NAMES[effects.error.code]
        known: dict[str, Any] = {"number": number}
        if step.write in self._now.late_heads:
            known["is_head_late"] = True
        if self._now.defects[-1:] and self._now.defects[-1].step is step:
            known["defect"] = self._now.defects[-1].name
        self._note(step, **known)
        expected = self._now.expected.pop(number, answered)
        return None if expected == answered else Mismatch("code", expected, answered, step.write)

    def _succeed(self, step: Step, number: int) -> None:
        """Let a write succeed, or its advance throw as Kafka's does (B7)."""
        partition, before = self._active(), self._before
        snapshot = None if before is None else before.snapshot
        if snapshot is not None and does_advance_throw(snapshot):
            imitated = write_succeeded_without_advance(partition.snapshot(), number)
            if imitated is not None:
                self._partition, _ = imitated
                self._now.defects += (Defect("B7", partition.start_offset, step),)
                return
        self._noted(partition.write_succeeded(number))

    def _stop(self, step: Step) -> None:
        self._leave(step)
        self._now.is_absent = True

    def _leave(self, step: Step) -> None:
        """Note that nothing is led until the state is read again."""
        self.give_up()
        if self._taken is not None:
            self._taken.stop(step.at_us)

    def _initialize(self, step: Step) -> None:
        request, response = step.event.request or {}, step.event.response or {}
        self.give_up()
        self._writes.forget_before(step.earliest_us - LATE_US)
        self._now.is_absent = "error" in response
        if "error" in response or not response:
            self._note(step)
            return
        settings = self._now.settings
        settings.leader_epoch = request.get("leader_epoch", settings.leader_epoch)
        partition = SharePartition(
            self._key,
            leader_epoch=settings.leader_epoch,
            profile=settings.profile,
            config=settings.effective,
        )
        partition.initialize()
        state = PersistedState(
            start_offset=response["start_offset"],
            state_epoch=response["state_epoch"],
            state_batches=response["state_batches"],
        )
        try:
            self._noted(partition.read_succeeded(state))
            self._note(step)
        except ResetOffsetRequiredError:
            offset = self._reset_offset(request)
            self._noted(partition.read_succeeded(state, reset_offset=offset))
            self._note(step, reset_offset=offset)
        self._partition, self._last_ms = partition, 0
        self.was_initialized = True

    def _reset_offset(self, request: dict[str, Any]) -> int:
        if "reset_offset" in request:
            return int(request["reset_offset"])
        if self._now.settings.config.auto_offset_reset.strategy is OffsetReset.LATEST:
            return self._log.end_offset(self._now.visible)
        return self._now.log_start

    def _close(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            self._note(step)
            return None
        effects = self._partition.release(step.event.member_id or "", now_ms=self._now_ms(step.at_us))
        self._note(step, self._last_ms * 1000)
        return self._issue(self._noted(effects), step)

    def _acknowledge(self, step: Step) -> Mismatch | None:
        event = step.event
        request = event.request or {}
        computed: str | None = None
        effects = Effects()
        version, is_renew = request.get("version", _RENEW_VERSION), request.get("is_renew", False)
        if is_refused_by_broker(request["batches"], version=version, is_renew=is_renew):
            computed = "invalid_request"
        elif event.response is not None and event.response.get("error") == _ABSENT:
            self._leave(step)
            self._now.is_absent = True
            computed = _ABSENT
        elif self._partition is None:
            if not self._now.is_absent:
                self._note(step)
                return None
            computed = "invalid_record_state"
        else:
            try:
                now_ms = self._now_ms(step.at_us)
                effects = self._partition.acknowledge(event.member_id or "", request["batches"], now_ms=now_ms)
            except RequestRefusedError as refusal:
                computed = ERROR_NAMES[refusal.code]
            self._noted(effects)
        self._note(step, None if self._partition is None else self._last_ms * 1000)
        if event.response is not None:
            expected = event.response.get("error")
            if effects.writes and expected not in _REFUSALS:
                self._now.expected[effects.writes[0].number] = expected
            elif expected != computed or effects.writes:
                return Mismatch("code", expected, computed)
            self.counts.codes += 1
        return self._issue(effects, step)

    def _arrival(self, step: Step) -> Mismatch | None:
        if self._partition is None or self._writes.is_issued(step.write):
            return None
        return Mismatch("write", self._writes.content_of(step.write), None, step.write)

    # ---- fetches

    def _fetch(self, step: Step) -> Mismatch | None:
        event = step.event
        response = event.response
        if response is None:
            return None
        if self._partition is None:
            self._note(step)
            return self._early_fetch(response.get("acquired", ()))
        if "error" in response:
            return self._failed_fetch(step, response["error"])
        self._take_lock_duration(response)
        acquired = response.get("acquired", ())
        first: tuple[AcquiredRecords, ...] | None = None
        found: set[Snapshot] = set()
        for way in islice(self._ways(event, acquired, step), _MOST_WAYS):
            if first is not None and self._before is not None:
                self.restore(self._before)
                self._take_lock_duration(response)
            computed = self._acquire(step, way)
            if computed == acquired:
                if step.way and len(found | {self._active().snapshot()}) <= step.way:
                    found.add(self._active().snapshot())
                    first = computed if first is None else first
                    continue
                self._now.visible = max(self._now.visible, way.visible if acquired else 0)
                self._note_read(step, way.others)
                self.counts.fetches_with_records += bool(acquired)
                self.counts.empty_fetches += not acquired
                return None
            first = computed if first is None else first
        if acquired or self._now.nothing_us < step.earliest_us - LATE_US or self._before is None:
            return Mismatch("fetch", [list(each) for each in acquired], [list(each) for each in first or ()])
        self.restore(self._before)  # it came a little earlier, when there was nothing: that changes nothing
        self._note(step, read_to=-1)
        self.counts.empty_fetches += 1
        return None

    def _early_fetch(self, acquired: tuple[AcquiredRecords, ...]) -> Mismatch | None:
        """Take a fetch that is answered before the state was read: it acquires nothing."""
        if self._now.is_absent and acquired:
            return Mismatch("fetch", [list(each) for each in acquired], [])
        self.counts.empty_fetches += not acquired and (self._now.is_absent or not self.was_initialized)
        return None

    def _failed_fetch(self, step: Step, error: str) -> Mismatch | None:
        """Take a fetch that was answered with an error: it has done nothing, unless acquire has thrown (B8)."""
        if error != _THROWN:
            self._note(step, read_to=-1)
            return None
        partition, request = self._active(), step.event.request or {}
        offset = partition.next_fetch_offset()
        batches = self._readable(self._now.visible, offset)
        for count in prefixes(batches, request.get("max_bytes", MAX_BYTES), request.get("partitions", 1)):
            fetched = self._log.fetched(offset, batches[:count], self._now.settings.isolation)
            if self._before is not None:
                self.restore(self._before)
            # Acquire has thrown after it had acquired, as it was about to filter.
            unfiltered = evolve(fetched, isolation=IsolationLevel.READ_UNCOMMITTED)
            self._acquire_of(step, unfiltered, request.get("max_records", 0))
            cached = self._active().batches()
            if cached and does_acquire_throw(fetched, cached[0].first_offset):
                self._now.defects += (Defect("B8", offset, step),)
                self._note_read(step, 0, defect="B8")
                return None
        return Mismatch("fetch", {"error": error}, None)

    def _note_read(self, step: Step, others: int, **known: Any) -> None:  # noqa: ANN401 - fields of its request
        """Note a fetch with what it has read."""
        if self._taken is None:
            return
        self._note_log(step)
        at_us, known = step.at_us, {**known, "acquired_by_others": others}
        if self._read is None:
            known["read_to"] = -1
        else:
            at_us = self._last_ms * 1000
            known |= {"fetch_offset": self._read.fetch_offset, "read_to": self._read.batches[-1].last_offset}
        self._note(step, at_us, **known)

    def _take_lock_duration(self, response: dict[str, Any]) -> None:
        lock_ms, settings = response.get("lock_ms"), self._now.settings
        if lock_ms is not None and lock_ms != settings.config.record_lock_duration_ms:
            settings.config = evolve(settings.config, record_lock_duration_ms=lock_ms)
            self._active().configure(settings.effective)

    def _ways(self, event: Event, acquired: tuple[AcquiredRecords, ...], step: Step) -> Iterator[Way]:
        """Yield the ways in which a fetch may have read, the likely one first."""
        request = event.request or {}
        others = request.get("acquired_by_others", 0)
        visible = self._now.visible
        if acquired:
            visible = max(visible, self._log.count_with(acquired[-1].last_offset))
        next_offset = self._active().next_fetch_offset()  # the share partition is another one after each way
        yield Way(others, None, visible)
        sums = sums_of_others(request)
        if not acquired:
            yield from (Way(each, 0, visible) for each in sums if each >= request.get("max_records", 0))
        for offset in self._older_offsets(step, next_offset) if acquired else ():
            yield Way(others, None, visible, offset)
        for count in counts_read(request, acquired, self._readable(visible, next_offset)):
            yield from (Way(each, count, visible) for each in sums if each < request.get("max_records", 0))
        later = visible
        while later < len(self._log.earliest_us) and self._log.earliest_us[later] <= step.at_us + EARLY_US:
            later += 1
            yield Way(others, None, later)

    def _older_offsets(self, step: Step, now: int) -> list[int]:
        """Return where else a fetch may read: a broker looks for that some steps before it acquires."""
        offsets: dict[int, None] = {}
        for at_us, offset in reversed(self._now.recent):
            if at_us >= step.earliest_us - LATE_US:
                offsets[offset] = None
        return [offset for offset in offsets if offset != now]

    def _is_readable(self, offset: int) -> bool:
        return self._log.is_readable(offset, self._now.visible, self._now.settings.isolation)

    def _readable(self, visible: int, offset: int) -> list[AppendedBatch]:
        return self._log.readable(offset, visible, self._now.settings.isolation)

    def _acquire(self, step: Step, way: Way) -> tuple[AcquiredRecords, ...]:
        """Fetch in one of the ways, and return what is acquired."""
        self._read = None
        partition, request = self._active(), step.event.request or {}
        has_room = partition.can_acquire()
        offset = partition.next_fetch_offset() if way.offset is None else way.offset
        wanted = request.get("max_records", 0) - way.others
        if not has_room or wanted <= 0:
            return ()
        if offset < self._now.log_start:
            self._noted(partition.advance_log_start(self._now.log_start))
            if self._taken is not None:
                self._taken.log_starts(self._now.log_start, step.at_us)
            return ()
        batches = self._readable(way.visible, offset)
        count = way.batches
        if count is None:
            count = next(prefixes(batches, request.get("max_bytes", MAX_BYTES), request.get("partitions", 1)))
        return self._acquire_of(step, self._log.fetched(offset, batches[:count], self._now.settings.isolation), wanted)

    def _acquire_of(self, step: Step, fetched: FetchedRecords, wanted: int) -> tuple[AcquiredRecords, ...]:
        self._read = fetched if fetched.batches else None
        request = step.event.request or {}
        effects = self._active().acquire(
            step.event.member_id or "",
            fetched,
            now_ms=self._now_ms(self._log.fetched_us(fetched, step.earliest_us, step.at_us)),
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
            What.STOP: _stop,
            What.INITIALIZE: _initialize,
            What.ACKNOWLEDGE: _acknowledge,
            What.CLOSE: _close,
            What.FETCH: _fetch,
            What.ARRIVAL: _arrival,
        }
    )


def _written_then(letter: DeadLetterRequest) -> StateBatch:
    """Return what is written when the dead-letter queue has answered."""
    return StateBatch(letter.first_offset, letter.last_offset, RecordState.ARCHIVED, letter.delivery_count)


_AFTER_OTHERS: Final = frozenset({What.ACKNOWLEDGE, What.CLOSE, What.FETCH, What.ARRIVAL})
"""The steps before which locks may expire, lost connections be noticed, and the dead-letter queue answer."""

_REFUSALS: Final = frozenset({"invalid_record_state", "invalid_request"})

_ABSENT: Final = "unknown_topic_or_partition"
"""The error of an acknowledgement to a share partition that the broker does not have: nobody has fetched from it."""

_THROWN: Final = "unknown_server_error"
"""The error of a fetch whose acquire has thrown."""
