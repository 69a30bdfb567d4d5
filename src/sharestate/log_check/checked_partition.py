"""
A share partition whose steps are taken one by one, each compared with what the broker sent and stored.

Acquisitions are computed, and so are writes. Locks expire when something that was observed shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import evolve

from sharestate.errors import RequestRefusedError, ResetOffsetRequiredError
from sharestate.history.columns import ERROR_NAMES, ERRORS, MODES
from sharestate.history.kafka_defects import (
    does_acquire_throw,
    does_advance_throw,
    write_succeeded_without_advance,
)
from sharestate.log_check.budget import Budget
from sharestate.log_check.checked_state import CheckedState
from sharestate.log_check.former_leader import FormerLeader
from sharestate.log_check.observed_writes import Meanwhile, Mismatch
from sharestate.log_check.schedule import LATE_US, QUEUED_AFTER_US, QUEUED_US, Allowed, Schedule, Step, What
from sharestate.log_check.search_state import SNAPSHOT, Defect, Delay, Recent, Saved
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.visible_log import MAX_BYTES, VisibleLog
from sharestate.log_check.ways import EARLY_US, Way, Ways
from sharestate.partition.share_partition import SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.checks import MAX_INT64
from sharestate.values.config import OffsetReset
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AcquiredRecords, RecordState
from sharestate.values.requests import PersistedState, StateBatch
from sharestate.values.snapshot import Snapshot

_LOST_FOR_US: Final = 5_000_000
"""How long after its locks have expired a lost connection is still noticed; nothing of it is left to release. [µs]"""

_MOST_WAYS: Final = 60
"""The most ways to read for a fetch that are tried; 7 were needed in 40 runs."""

_MOST_RECENT: Final = 12
"""How many steps before, a fetch may have looked for where to read; 8 on a hot partition of 4.4.0."""

_RENEW_VERSION: Final = 2
"""The version of requests from which on they may renew locks."""


class CheckedPartition(CheckedState):
    """
    A share partition that is compared with what was observed.

    Everything that taking a step changes is in what ``save`` returns; ``_before`` and ``_read`` are of the step that is
    being taken, and the next one begins with others.

    Args:
        key: The share partition.
        schedule: Its steps.
        log: Its log; None if nothing is known of it.
        budget: What the check may cost; as much as it wants if None.
        taken: Notes what was done, as events in causal order; nothing is noted if None.

    Raises:
        BudgetSpentError: A step costs more than is left; the share partition has to be restored then.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        schedule: Schedule,
        log: VisibleLog | None,
        budget: Budget | None = None,
        taken: TakenEvents | None = None,
    ) -> None:
        """Start before the first step."""
        super().__init__(key, schedule, log or VisibleLog(()), budget or Budget(MAX_INT64), taken)
        self._lost = schedule.lost
        self._before: Saved | None = None
        self._read: FetchedRecords | None = None

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
        self._before = saved
        if self._partition is not None:
            recent = Recent(step.at_us, self._partition.next_fetch_offset())
            self._now.recent = (*self._now.recent[1 - _MOST_RECENT :], recent)
            if not (self._partition.can_acquire() and self._is_readable(recent.offset)):
                self._now.nothing_us = step.at_us
        if step.allowed is Allowed.UNDECIDED:
            self.counts.undecided_fetches += 1
            self._note(step, read_to=-1)
            return self._see_head(step)
        if step.what is What.OUTCOME and not step.way:
            self._expire_queued(step, saved)
        mismatch = handler(self, step)
        if mismatch is None or self._partition is None or step.what not in _AFTER_OTHERS:
            return mismatch or self._see_head(step)
        self.restore(saved)
        before = saved
        while self._something_before(step, before):
            self._before = before = self.save()
            if handler(self, step) is None:
                return self._see_head(step)
            self.restore(before)
        return mismatch

    def _see_head(self, step: Step) -> Mismatch | None:
        partition = self._partition
        if partition is None:
            return None
        count = partition.delivery_complete_count
        return self._writes.see_head(partition.start_offset, count, step.at_us, self._meanwhile(step, count))

    def _meanwhile(self, step: Step, count: int) -> Meanwhile | None:
        """Return the delivery complete counts while an acknowledgement was worked on; None if it is something else."""
        if step.what is not What.ACKNOWLEDGE or self._before is None or not self._before.issued.late:
            return None
        before = self._before.partition
        least, most = sorted((count, count if before is None else before.delivery_complete_count))
        request, response = step.event.request or {}, step.event.response or {}
        if "error" in response:  # what comes before the batch that is refused was counted, and is no more
            most += sum(batch.last_offset - batch.first_offset + 1 for batch in request["batches"])
        writes = frozenset(each.write for each in self._before.issued.late)
        return Meanwhile(writes, step.earliest_us, least, most)

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
        if self._lose(step, saved) or self._acknowledge_unlogged(step, saved):
            return self._see_head(step) is None
        return self._has_former_written(step)

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
        if number is None or self._issue(self._noted(self._changing().dead_letter_answered(number)), step) is not None:
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
        while True:
            due_ms = self._active().next_deadline_ms()
            if due_ms is None or due_ms * 1000 > step.at_us + EARLY_US:
                return False
            write = self._writes.issued.count
            effects = self._changing().expire_next(now_ms=self._now_ms(max(step.at_us, due_ms * 1000)))
            if effects is None or self._issue(self._noted(effects), step) is not None:
                return False
            self.counts.expiries += 1
            if self._taken is not None:
                self._taken.expire(self._now.last_ms * 1000)
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
            effects = self._changing().release(member_id, now_ms=self._now_ms(step.at_us))
            if effects.writes and self._issue(self._noted(effects), step) is None:
                self.counts.releases += 1
                if self._taken is not None:
                    self._taken.disconnect(member_id, self._now.last_ms * 1000)
                return True
            self.restore(saved)
        return False

    def _acknowledge_unlogged(self, step: Step, saved: Saved) -> bool:
        """Let a member acknowledge whose request was under way when the broker has stopped: its write was logged."""
        batches = self._writes.acknowledged_as_it_stopped(step.write) if step.what is What.ARRIVAL else []
        for member_id in self._lost_before(step) if batches else ():
            try:
                effects = self._changing(len(batches)).acknowledge(member_id, batches, now_ms=self._now_ms(step.at_us))
                if effects.writes and self._issue(self._noted(effects), step) is None:
                    self.counts.unlogged += 1
                    if self._taken is not None:
                        self._taken.acknowledge(member_id, batches, self._now.last_ms * 1000)
                    return True
            except RequestRefusedError:
                pass
            self.restore(saved)
        return False

    def _has_former_written(self, step: Step) -> bool:
        """Let the leader before this one write, if that is the next write that was observed."""
        now = self._now
        if now.former is None or self._writes.next_content() is None:
            return False
        for former, write in now.former.writes(step.at_us):
            self.budget.spend(SNAPSHOT * self.size())
            observed = self._writes.match(write, step.at_us, Allowed.NOTHING, self.budget)
            if isinstance(observed, int):
                now.former, now.former_writes = former, now.former_writes | {observed}
                now.counts.former_writes += 1
                return True
        return False

    # ---- the kinds of steps

    def _config(self, step: Step) -> None:
        self._now.settings.change(step.event.request or {})
        if self._partition is not None:
            self._changing().configure(self._now.settings.effective)
        self._note(step)

    def _appended(self, step: Step) -> None:
        self._now.visible = max(self._now.visible, self._log.count_after(step.event))
        self._note_log(step)

    def _log_starts(self, step: Step) -> None:
        self._now.log_start = max(self._now.log_start, (step.event.request or {})["offset"])
        if self._partition is not None and not step.event.inferred:
            self._noted(self._changing().advance_log_start(self._now.log_start))
        self._note(step)

    def _outcome(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            self._note(step)
            return None
        if step.write in self._now.former_writes:
            self._now.former_writes -= {step.write}
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
            effects = self._noted(self._changing().write_failed(number, ERRORS[error]))
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
        partition = self._active()
        # The SPSO passes what was not finished only where the log start has moved it: a snapshot is not cheap.
        if 0 < partition.start_offset <= self._now.log_start:
            self.budget.spend(SNAPSHOT * self.size())
            snapshot = partition.snapshot()
            imitated = write_succeeded_without_advance(snapshot, number) if does_advance_throw(snapshot) else None
            if imitated is not None:
                self._partition, _ = imitated
                self._now.defects += (Defect("B7", partition.start_offset, step),)
                return
        self._noted(self._changing().write_succeeded(number))

    def _stop(self, step: Step) -> None:
        self._leave(step)
        self._now.former = None
        self._now.is_absent = True

    def _leave(self, step: Step) -> None:
        """Note that nothing is led until the state is read again."""
        self.give_up()
        if self._taken is not None:
            self._taken.stop(step.at_us)

    def _initialize(self, step: Step) -> None:
        request, response = step.event.request or {}, step.event.response or {}
        if self._partition is not None:
            self._now.former = FormerLeader(self._partition, self._now.last_ms, step.at_us + QUEUED_US)
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
        self._partition, self._now.last_ms = partition, 0
        self._now.was_initialized = True

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
        effects = self._changing().release(step.event.member_id or "", now_ms=self._now_ms(step.at_us))
        self._note(step, self._now.last_ms * 1000)
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
        elif self._partition is None:  # there is nothing to acknowledge while the state is read
            if not self._now.is_absent and (event.response or {}).get("error") != _NOT_ACQUIRED:
                self._note(step)
                return None
            computed = _NOT_ACQUIRED
        else:
            try:
                now_ms = self._now_ms(step.at_us)
                touched = sum(len(batch.acknowledge_types) for batch in request["batches"])
                effects = self._changing(touched).acknowledge(event.member_id or "", request["batches"], now_ms=now_ms)
            except RequestRefusedError as refusal:
                computed = ERROR_NAMES[refusal.code]
            self._noted(effects)
        self._note(step, None if self._partition is None else self._now.last_ms * 1000)
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
            self._note(step, read_to=-1)
            return None
        if self._partition is None:
            self._note(step)
            return self._early_fetch(response.get("acquired", ()))
        if "error" in response:
            return self._failed_fetch(step, response["error"])
        self._take_lock_duration(response)
        acquired = response.get("acquired", ())
        computed = self._read_as_observed(step, acquired)
        if computed is None:
            self.counts.fetches_with_records += bool(acquired)
            self.counts.empty_fetches += not acquired
            return None
        if acquired or self._now.nothing_us < step.earliest_us - LATE_US or self._before is None:
            return Mismatch("fetch", [list(each) for each in acquired], [list(each) for each in computed])
        self.restore(self._before)  # it came a little earlier, when there was nothing: that changes nothing
        self._note(step, read_to=-1)
        self.counts.empty_fetches += 1
        return None

    def _read_as_observed(
        self, step: Step, acquired: tuple[AcquiredRecords, ...]
    ) -> tuple[AcquiredRecords, ...] | None:
        """Fetch in a way in which it acquires what was observed; if there is none, return what the likely one does."""
        first: tuple[AcquiredRecords, ...] | None = None
        begins_elsewhere = False
        found: set[Snapshot] = set()
        ways = Ways(self._log, self._active(), self._now, step, self.budget)
        for tried, way in enumerate(ways):
            if tried > _MOST_WAYS:
                self.budget.is_cut = True
                break
            if begins_elsewhere and way.offset == ways.offset:
                continue
            if first is not None and self._before is not None:
                self.restore(self._before)
                self._take_lock_duration(step.event.response or {})
            computed = self._acquire(step, way)
            first = computed if first is None else first
            if computed == acquired and (not step.way or self._is_another(found, step.way)):
                self._now.visible = max(self._now.visible, way.visible if acquired else 0)
                self._note_read(step, way.others)
                return None
            if acquired and computed and way.offset == ways.offset:  # however much was read, and from there
                begins_elsewhere = acquired[0].first_offset != computed[0].first_offset
        return first or ()

    def _is_another(self, found: set[Snapshot], passed_over: int) -> bool:
        """Note in *found* a state that a way to read led to; return whether so many others were skipped."""
        self.budget.spend(SNAPSHOT * self.size())
        found.add(self._active().snapshot())
        return len(found) > passed_over

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
        request = step.event.request or {}
        offset = self._active().next_fetch_offset()
        batches = self._log.readable(offset, self._now.visible, self._now.settings.isolation)
        fitting = self._log.fitting(batches, request.get("max_bytes", MAX_BYTES), request.get("partitions", 1))
        for read in islice(fitting, _MOST_WAYS):
            fetched = self._log.fetched(offset, read, self._now.settings.isolation)
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
            at_us = self._now.last_ms * 1000
            known |= self._taken.read(self._read)
        self._note(step, at_us, **known)

    def _take_lock_duration(self, response: dict[str, Any]) -> None:
        lock_ms, settings = response.get("lock_ms"), self._now.settings
        if lock_ms is not None and lock_ms != settings.config.record_lock_duration_ms:
            settings.config = evolve(settings.config, record_lock_duration_ms=lock_ms)
            self._changing().configure(settings.effective)

    def _is_readable(self, offset: int) -> bool:
        return self._log.is_readable(offset, self._now.visible, self._now.settings.isolation)

    def _acquire(self, step: Step, way: Way) -> tuple[AcquiredRecords, ...]:
        """Fetch in one of the ways, and return what is acquired."""
        self._read = None
        wanted = (step.event.request or {}).get("max_records", 0) - way.others
        if not self._active().can_acquire() or wanted <= 0:
            return ()
        if way.offset < self._now.log_start:
            self._noted(self._changing().advance_log_start(self._now.log_start))
            if self._taken is not None:
                self._taken.log_starts(self._now.log_start, step.at_us)
            return ()
        return self._acquire_of(step, self._log.fetched(way.offset, way.batches, self._now.settings.isolation), wanted)

    def _acquire_of(self, step: Step, fetched: FetchedRecords, wanted: int) -> tuple[AcquiredRecords, ...]:
        self._read = fetched if fetched.batches else None
        request = step.event.request or {}
        effects = self._changing(len(fetched.batches)).acquire(
            step.event.member_id or "",
            fetched,
            now_ms=self._now_ms(self._log.fetched_us(fetched, step.earliest_us, step.at_us)),
            max_records=wanted,
            batch_size=request.get("batch_size", 500),
            mode=MODES[request.get("mode", "batch_optimized")],
        )
        self.budget.spend(self._unusual())
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

_NOT_ACQUIRED: Final = "invalid_record_state"
"""The error of an acknowledgement of records that its member has not acquired."""

_THROWN: Final = "unknown_server_error"
"""The error of a fetch whose acquire has thrown."""
