"""
What is in flight in a share partition, as one dictionary entry for each offset: slow, and plain.

It is written without any code of the library's: `RecordModel` judges the library.

Source:
    KIP-932; SharePartition, InFlightBatch, InFlightState (Kafka 4.4.0), without the bugs that healed profiles lack.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from attrs import Factory, define, field, frozen

DONE: Final = frozenset({"ACKNOWLEDGED", "ARCHIVED"})
"""The terminal states."""

DEFAULTS: Final = {
    "max_record_locks": 2000,
    "delivery_count_limit": 5,
    "record_lock_duration_ms": 30_000,
    "renew_acknowledge_enable": True,
    "auto_offset_reset": "latest",
    "dlq_topic": None,
    "dlq_supported": True,
}
"""The settings of a group that has set none."""


ALL_SETTINGS: Final = frozenset(DEFAULTS)


@frozen(kw_only=True)
class Rules:
    """What Kafka's releases and the KIP do differently."""

    changeable: frozenset[str] = ALL_SETTINGS
    """The settings that may change while a share partition is in use."""

    has_dead_letters: bool = True
    """Whether there is such a thing as a dead-letter queue (KIP-1191)."""

    is_by_record: bool = False
    """Whether each record in flight is kept on its own, with a lock of its own, as if all batches had one record."""

    is_kip: bool = False
    """
    Whether writes are those of the KIP. Nothing is written of records below the SPSO; the start offset is, once there
    is none. Locks that are over expire together, with one write that moves the SPSO if it succeeds, or if nothing else
    is left to be written.
    """


@define(eq=False)
class ModelBatch:
    """
    Offsets that were cached together, of which the log need not have all.

    Until something happens to a part of it, a batch is whole: its records have one lock, and expire in one write. Once
    it is split, each record has a lock of its own.
    """

    first: int
    last: int
    is_split: bool = False

    @property
    def offsets(self) -> range:
        """Its offsets."""
        return range(self.first, self.last + 1)


@define
class ModelRecord:
    """One record in flight."""

    state: str
    """AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING or ARCHIVED."""

    count: int
    """How often it was delivered."""

    batch: ModelBatch
    """The batch that it was cached in."""

    member: str = ""
    """Who has it."""

    deadline_ms: int | None = None
    """When its lock expires; None if it has none."""

    lock: int = 0
    """The number of its lock: locks with one deadline expire in the order in which they were made."""

    lock_is_over: bool = False
    """Whether its lock has expired while a write was pending."""

    write: int | None = None
    """The write that has to succeed for its last change to stand."""

    before: tuple[str, int, str] = ("", 0, "")
    """State, count and member before that change."""

    is_given_up: bool = False
    """Whether it was archived while a write was pending, whose outcome does not matter any more."""

    cause: str = ""
    """Why it goes to the dead-letter queue, if it does."""


@define
class RecordsInFlight:
    """What is in flight, and where the SPSO goes when some of it is done."""

    rules: Rules = Factory(Rules)
    now_ms: int = 0
    lifecycle: str = "EMPTY"
    start: int = 0
    """The SPSO."""

    end: int = 0
    """The last offset in flight; the next one to be fetched if there is none."""

    records: dict[int, ModelRecord] = Factory(dict)
    gap: tuple[int, int] | None = None
    """Where offsets that the leader before has never persisted begin, and what the end was then."""

    config: dict[str, Any] = field(factory=lambda: dict(DEFAULTS))
    locks: int = 0
    """How many locks there were."""

    met: set[str] = Factory(set)
    """The bugs of Kafka, by their ids, that would have shown by now: what comes after them may be otherwise there."""

    # ---- what others look at

    def complete(self) -> int:
        """Return how many records at or above the SPSO are terminal."""
        return sum(record.state in DONE for offset, record in self.records.items() if offset >= self.start)

    def lock_count(self) -> int:
        """Return how many locks there are that have not expired."""
        return len({r.lock for r in self.records.values() if r.deadline_ms is not None and not r.lock_is_over})

    def batches(self) -> list[ModelBatch]:
        """Return the batches, in ascending order."""
        return [record.batch for offset, record in sorted(self.records.items()) if record.batch.first == offset]

    # ---- records

    def _in_flight(self) -> int:
        return self.end - self.start + 1 if self.records else 0

    def _is_free(self, offset: int) -> bool:
        record = self.records[offset]
        return record.state == "AVAILABLE" and record.write is None

    def _is_durable(self, offset: int) -> bool:
        return self.records[offset].state in DONE and self.records[offset].write is None

    def _has_queue(self) -> bool:
        return bool(self.rules.has_dead_letters and self.config["dlq_topic"] and self.config["dlq_supported"])

    def _lock(self, records: Iterable[ModelRecord]) -> None:
        """Give records one lock."""
        self.locks += 1
        for record in records:
            record.lock, record.lock_is_over = self.locks, False
            record.deadline_ms = self.now_ms + self.config["record_lock_duration_ms"]

    def _unlock(self, record: ModelRecord) -> None:
        record.deadline_ms, record.lock_is_over = None, False

    def _give_up(self, record: ModelRecord) -> None:
        record.state, record.member = "ARCHIVED", ""
        record.is_given_up = record.write is not None
        self._unlock(record)

    # ---- batches

    def _floor(self, offset: int) -> ModelBatch | None:
        """Return the last batch that begins at *offset* or before."""
        return next((batch for batch in reversed(self.batches()) if batch.first <= offset), None)

    def _from_floor(self, first: int, last: int) -> list[ModelBatch]:
        """Return the batches from the floor of *first* to those that begin at *last*; none if there is no floor."""
        floor = self._floor(first)
        return [batch for batch in self.batches() if floor and floor.first <= batch.first <= last]

    def _split(self, batch: ModelBatch) -> None:
        """Give each record a lock of its own, which expires when that of the batch would have."""
        if not batch.is_split:
            batch.is_split = True
            if self.records[batch.first].write is not None:
                self.met.add("B4")
            for offset in batch.offsets:
                record = self.records[offset]
                if record.deadline_ms is not None:
                    self.locks += 1
                    record.lock, record.lock_is_over = self.locks, False

    def _archive(self, state: str, first: int, last: int, batches: Iterable[ModelBatch]) -> bool:
        """Archive the records of a range that are in a state, whatever is pending; return whether there were any."""
        is_archived = False
        for batch in batches:
            if batch.first > last:
                break
            is_covered = first <= batch.first and batch.last <= last
            if not batch.is_split and self.records[batch.first].state != state:
                continue
            if not is_covered:
                self._split(batch)
            for offset in batch.offsets:
                if first <= offset <= last and self.records[offset].state == state:
                    self._give_up(self.records[offset])
                    is_archived = True
        return is_archived

    # ---- the gap window, and the SPSO

    def _has_gap(self) -> bool:
        """Return whether there may be records between those in flight: until something beyond them is acquired."""
        return self.gap is not None and self.gap[1] == self.end

    def _shrink_gap(self, offset: int) -> None:
        self.gap = (offset, self.gap[1]) if self.gap and self._has_gap() and offset <= self.gap[1] else None

    def _move_start(self) -> None:
        """Pass all that is done, from the beginning on."""
        floor = self._floor(self.start)
        if floor is not None and floor.is_split and floor.last < self.start:
            self.met.add("B7")
        if floor is None or not self._is_durable(min(self.start, floor.last)):
            return  # what comes first has not been fetched yet, or is not done
        gap = self.gap[0] if self.gap and self._has_gap() else None
        last = None
        for offset in sorted(self.records):
            if not self._is_durable(offset) or (gap is not None and offset > gap):
                break
            if gap is not None and self.gap and self.records[offset].batch.last >= self.gap[0]:
                self.met.add("B17")
            if gap is not None:
                gap = max(gap, offset + 1)
            last = offset
        if last is not None:
            self._pass(last)

    def _pass_archived(self, *bugs: str) -> None:
        """Pass what was archived without a write, which Kafka leaves where it is: those are its *bugs*."""
        before = self.start, len(self.records), self.gap
        self._move_start()
        if before != (self.start, len(self.records), self.gap):
            self.met.update(bugs)

    def _pass(self, last: int) -> None:
        """Move the SPSO past the offset *last*, which was the last one to be done; forget batches of which all are."""
        following = min((offset for offset in self.records if offset > last), default=None)
        self.records = {offset: record for offset, record in self.records.items() if record.batch.last > last}
        if self.start > (last + 1 if following is None else following):
            self.met.add("B9b")
        if following is None:
            self.start = self.end = max(self.start, last + 1)
            return
        if self.gap and self._has_gap():
            if self.gap[0] < max(self.start, last + 1):
                self.met |= {"B9b", "B17"}
            following = min(following, max(self.gap[0], last + 1))
        self.start = max(self.start, following)
        if self.gap and self._has_gap():
            self.gap = (max(self.gap[0], self.start), self.gap[1]) if self.start <= self.gap[1] else None
