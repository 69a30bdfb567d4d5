"""Fetches, each taken in a way to read in which it acquires what the broker has sent."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from sharestate.history.columns import MODES
from sharestate.history.kafka_defects import does_acquire_throw
from sharestate.log_check.checked_state import CheckedState
from sharestate.log_check.fetch_reads import Way, Ways
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import LATE_US, Step
from sharestate.log_check.search_state import SNAPSHOT, Defect
from sharestate.log_check.unanswered import THROWN, may_have_thrown_elsewhere
from sharestate.log_check.visible_log import MAX_BYTES
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AcquiredRecords
from sharestate.values.snapshot import Snapshot

_MOST_WAYS: Final = 60
"""The most ways to read for a fetch that are tried; 7 were needed in 40 runs."""


class CheckedFetches(CheckedState):
    """A share partition that is fetched from: which batches a fetch has read is tried, the likely ones first."""

    def take_fetch(self, step: Step) -> Mismatch | None:
        """Take a fetch, and return what does not fit."""
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
        """
        Take a fetch that was answered with an error: it has done nothing, unless acquire has thrown (B8).

        If that may have been for another partition, nothing is known of this one (``unanswered_fetch``).
        """
        if error != THROWN:
            self._note(step, read_to=-1)
            return None
        request = step.event.request or {}
        offset = self._active().next_fetch_offset()
        batches = self._log.readable(offset, self._now.visible, self._now.settings.isolation)
        # The most that it may have read: if that does not make acquire throw, a part of it does not, either.
        read = next(self._log.fitting(batches, request.get("max_bytes", MAX_BYTES), 1))
        fetched = self._log.fetched(offset, read, self._now.settings.isolation)
        # Acquire has thrown after it had acquired, as it was about to filter.
        unfiltered = evolve(fetched, isolation=IsolationLevel.READ_UNCOMMITTED)
        self._acquire_of(step, unfiltered, request.get("max_records", 0))
        cached = self._active().batches()
        if cached and does_acquire_throw(fetched, cached[0].first_offset):
            self._now.defects += (Defect("B8", offset, step),)
            self._note_read(step, 0, defect="B8")
            return None
        if may_have_thrown_elsewhere(step.event):
            if self._before is not None:
                self.restore(self._before)
            self._note(step, read_to=-1)
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
            settings = evolve(settings, config=evolve(settings.config, record_lock_duration_ms=lock_ms))
            self._now.settings = settings  # another one: what was saved has the one from before
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
