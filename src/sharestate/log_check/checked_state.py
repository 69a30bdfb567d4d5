"""What the check of a share partition knows, what it does to it, and how it comes back."""

from __future__ import annotations

from typing import Any, Final

from sharestate.history.replay_budget import FREE_RECORDS
from sharestate.history.replay_state import Settings
from sharestate.log_check.budget import Budget
from sharestate.log_check.observed_writes import Meanwhile, Mismatch, ObservedWrites
from sharestate.log_check.schedule import Schedule, Step, What
from sharestate.log_check.search_state import Counts, Defect, Progress, Saved
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.visible_log import VisibleLog
from sharestate.partition.share_partition import SharePartition
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.profiles import LATEST
from sharestate.values.records import SharePartitionKey

_COMMAND: Final = 40
"""What a command costs beside what it names and reads. [work]"""

_SAVED: Final = 16
"""What it costs to save what is known beside the share partition, and to come back to it. [work]"""

_COPY: Final = 12
"""
What a copy of a share partition costs beside its batches and locks. [work]

Copies took 38 µs with 24 batches and 34 locks (4.3.1, eight members without think time), 2.2 ms with 4,000 batches that
nobody holds, and 405 µs with two batches and 200 locks: half a microsecond for a batch, one or two for a lock.
"""


class CheckedState:
    """
    A share partition and what is known beside it, to go on with and to come back to.

    The share partition itself is shared with what was saved until a command changes it: only then it is copied. Nearly
    half of all steps change nothing.

    Everything that taking a step changes is in what ``save`` returns; ``_before`` and ``_read`` are of the step that is
    being taken, and the next one begins with others.

    Args:
        key: The share partition.
        schedule: Its steps.
        log: Its log.
        budget: What the check may cost.
        taken: Notes what was done, as events in causal order; nothing is noted if None.

    Attributes:
        budget: What is left of what the check may cost; what was spent is never rolled back.
    """

    def __init__(
        self, key: tuple[str, str, int], schedule: Schedule, log: VisibleLog, budget: Budget, taken: TakenEvents | None
    ) -> None:
        """Start before the first step."""
        self.budget = budget
        self._key = SharePartitionKey(group_id=key[0], topic_id=key[1], partition=key[2])
        self._log = log
        self._writes = ObservedWrites(schedule)
        self._partition: SharePartition | None = None
        self._is_shared = False
        self._now = Progress(Settings(LATEST, ShareConfig()))
        self._lost = schedule.lost
        self._before: Saved | None = None
        self._read: FetchedRecords | None = None
        self._taken = taken

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._partition

    @property
    def was_initialized(self) -> bool:
        """Whether its state was ever read."""
        return self._now.was_initialized

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

    # ---- to come back

    def save(self) -> Saved:
        """Return what it takes to come back here."""
        self._is_shared = True
        self.budget.spend(_SAVED)
        taken = 0 if self._taken is None else len(self._taken.events)
        return Saved(self._partition, self._now.copy(), self._writes.issued, taken, self.size())

    def restore(self, saved: Saved) -> None:
        """Come back to where *saved* was made."""
        self._is_shared = True
        self._partition, self._now, self._writes.issued = saved.partition, saved.progress.copy(), saved.issued
        if self._taken is not None:
            self._taken.forget_after(saved.taken)

    def give_up(self) -> None:
        """Know nothing until the state is read again."""
        self._partition = None
        now = self._now
        now.recent, now.known_before, now.is_absent = (), len(now.defects), False
        for each in (now.numbers, now.expected, now.letters):
            each.clear()

    # ---- to go on

    def _active(self) -> SharePartition:
        """Return the share partition, to read."""
        assert self._partition is not None  # noqa: S101 - callers have looked
        return self._partition

    def _changing(self, touched: int = 0) -> SharePartition:
        """Return the share partition for a command, which names or reads so many records, ranges or batches."""
        partition, size = self._active(), self.size()
        self.budget.spend(_COMMAND + touched + (size if self._is_shared else size // 2))
        if self._is_shared:
            self._partition = partition = partition.copy()
            self._is_shared = False
        return partition

    def size(self) -> int:
        """Return what a copy costs. [work]"""
        partition = self._partition
        if partition is None:
            return _COPY
        return _COPY + partition.batch_count() // 2 + partition.lock_count() + self._unusual()

    def _unusual(self) -> int:
        """Return how many more records are in flight one by one than any broker has: they cost too. [work]"""
        return max(0, self._active().splittable_count() - FREE_RECORDS)

    def _now_ms(self, at_us: int) -> int:
        """Return a time, or that of the last command if it is before it: times of the log are not exact."""
        self._now.last_ms = max(at_us // 1000, self._now.last_ms)
        return self._now.last_ms

    def _issue(self, effects: Effects, step: Step) -> Mismatch | None:
        """Compare the writes of a command with those that were observed."""
        for write in effects.writes:
            observed = self._writes.match(write, step.at_us, step.allowed, self.budget)
            if isinstance(observed, Mismatch):
                return observed
            if observed is not None:
                self._now.numbers[observed] = write.number
                if self._writes.is_head_late(observed):
                    self._now.late_heads |= {observed}
                self.counts.writes += 1
        return None

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

    def _noted(self, effects: Effects) -> Effects:
        for request in effects.dead_letters:
            self._now.letters[request.number] = request
        return effects

    # ---- to tell

    def _note(self, step: Step, at_us: int | None = None, **known: Any) -> None:  # noqa: ANN401 - fields of its request
        """Note that the event of a step took effect, at its time if *at_us* is None, and what is *known* of it."""
        if self._taken is not None:
            self._taken.step(step, step.at_us if at_us is None else at_us, known)
            if self._partition is not None:
                self._taken.passed = max(self._taken.passed, self._partition.start_offset)

    def _note_log(self, step: Step) -> None:
        """Note the batches that are visible by now: in the order of the log, whatever their times say."""
        if self._taken is not None:
            self._taken.appended(self._log.events_until(self._now.visible), step.at_us)
