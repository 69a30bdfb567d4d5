"""What no line shows before a step: locks expire, connections are lost, dead letters are answered, and others."""

from __future__ import annotations

from typing import Final

from sharestate.errors import RequestRefusedError
from sharestate.log_check.checked_state import CheckedState
from sharestate.log_check.fetch_reads import EARLY_US
from sharestate.log_check.schedule import LATE_US, QUEUED_AFTER_US, Allowed, Step, What
from sharestate.log_check.search_state import SNAPSHOT, Delay, Saved
from sharestate.values.checks import MAX_INT64
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch

_LOST_FOR_US: Final = 5_000_000
"""How long after its locks have expired a lost connection is still noticed: 0.34 s was the longest. [µs]"""


class UnobservedEvents(CheckedState):
    """A share partition to which something may happen that no line shows, if its write is the next one observed."""

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
                now.former = former
                now.counts.former_writes += 1
                return True
        return False


def _written_then(letter: DeadLetterRequest) -> StateBatch:
    """Return what is written when the dead-letter queue has answered."""
    return StateBatch(letter.first_offset, letter.last_offset, RecordState.ARCHIVED, letter.delivery_count)
