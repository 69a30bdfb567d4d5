"""
The broker of a simulation: share partitions of the library, their logs, and the fetches that wait for them.

It does what a node does for share groups with as little besides as possible: no sessions, no bytes, and an assignment
that stays. A fetch reads all that may matter to it, as with records so small that what is in flight fits into one.

Source:
    DelayedShareFetch, SharePartitionManager (Kafka 4.4).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from sharestate.errors import RequestRefusedError
from sharestate.partition.share_partition import SharePartition
from sharestate.simulate.agenda import Agenda
from sharestate.simulate.attempts import Attempts
from sharestate.simulate.load import Load
from sharestate.simulate.result import SimulationCounts
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.effects import Cause, Effects, Transition
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.list_slices import CheckedBatches
from sharestate.values.records import AcquiredRecords, RecordBatch, SharePartitionKey
from sharestate.values.requests import PersistedState

GROUP: Final = "simulated"
TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAg"

_US: Final = 1000
_SPLIT_LIMIT: Final = 2**24


class FetchedPart(NamedTuple):
    """What a member has got of one partition."""

    partition: SimulatedPartition
    acquired: tuple[AcquiredRecords, ...]


Answer: TypeAlias = Callable[[list[FetchedPart]], object]
"""Takes the answer to a fetch."""


Written: TypeAlias = Callable[[list[tuple[int, int]]], object]
"""Takes the ranges of records that were accepted, once that is durable."""


class MemberFetch:
    """A fetch of a member from partitions in their order; *answer* takes what there is."""

    __slots__ = ("answer", "is_answered", "member_id", "partitions")

    def __init__(self, member_id: str, partitions: Sequence[SimulatedPartition], answer: Answer) -> None:
        """Begin without an answer."""
        self.member_id, self.partitions, self.answer = member_id, partitions, answer
        self.is_answered = False


class Broker:
    """
    The share partitions, and the fetches from them.

    Attributes:
        partitions: The share partitions.
        busy: How many members are doing something that may change something. [members]
        ended: How it has ended: ``done``, ``stalled``; empty as long as it has not.
    """

    def __init__(self, load: Load, agenda: Agenda, counts: SimulationCounts, seed: str) -> None:
        """Lead the partitions of a load, with empty logs."""
        self.partitions: Final = [
            SimulatedPartition(number, load, self, Attempts(load, f"{seed} {number}"))
            for number in range(load.partitions)
        ]
        self.agenda, self.counts = agenda, counts
        self.busy = 0
        self.ended = ""
        self._load = load
        self._are_all_appended = False

    def all_appended(self) -> None:
        """Note that nothing more arrives."""
        self._are_all_appended = True

    def fetch(self, fetch: MemberFetch) -> None:
        """Answer a fetch, or let it wait until there is something, or its time is over."""
        if any(partition.is_readable() for partition in fetch.partitions):
            self.answer(fetch)
            return
        for partition in fetch.partitions:
            partition.waiting[fetch] = None
        self.agenda.after(self._load.max_wait_ms * _US, self._time_is_over, fetch)

    def answer(self, fetch: MemberFetch) -> None:
        """Answer a fetch with what there is now."""
        fetch.is_answered = True
        for partition in fetch.partitions:
            partition.waiting.pop(fetch, None)
        left = self._load.poll_records
        found = []
        for partition in fetch.partitions:
            if left > 0 and partition.is_readable():
                acquired = partition.acquire(fetch.member_id, left)
                if acquired:
                    found.append(FetchedPart(partition, acquired))
                    left -= sum(last - first + 1 for first, last, _ in acquired)
        self.counts.fetches += 1
        self.counts.empty_fetches += not found
        self.agenda.after(half_us(self._load), fetch.answer, found)

    def partition_done(self) -> None:
        """Note that a share partition has nothing left to do: perhaps none has."""
        if self._are_all_appended and all(partition.is_done for partition in self.partitions):
            self.ended = "done"

    def _time_is_over(self, fetch: MemberFetch) -> None:
        if not fetch.is_answered:
            self.answer(fetch)
            if (
                self._are_all_appended
                and not self.busy
                and not any(map(SimulatedPartition.may_change, self.partitions))
            ):
                self.ended = "stalled"


def half_us(load: Load) -> int:
    """Return how long a request or its answer takes on its way. [µs]"""
    return max(1, round(load.request_ms * _US / 2))


class SimulatedPartition:
    """
    A share partition with its log.

    Attributes:
        share: The share partition.
        end_offset: The end of the log.
        attempts: What comes of each delivery of its records.
        waiting: The fetches that wait for it, the first one first.
    """

    def __init__(self, number: int, load: Load, broker: Broker, attempts: Attempts) -> None:
        """Lead the partition *number*, with an empty log."""
        key = SharePartitionKey(group_id=GROUP, topic_id=TOPIC_ID, partition=number)
        self.share: Final = SharePartition(
            key, profile=load.profile, config=load.share_config, split_limit=_SPLIT_LIMIT, record_transitions=True
        )
        self.share.initialize()
        self.share.read_succeeded(PersistedState(start_offset=0))
        self.end_offset = 0
        self.waiting: dict[MemberFetch, None] = {}
        self._log: list[RecordBatch] = []
        self._ends: list[int] = []
        self._times_us: list[int] = []
        self.attempts: Final = attempts
        self._load, self._broker = load, broker
        self._write_us = round(load.state_write_ms * _US)
        self._answers: dict[int, Callable[[], object]] = {}
        self._unanswered = 0
        self._is_expiry_planned = False

    @property
    def is_done(self) -> bool:
        """Whether the SPSO is at the end of the log."""
        return self.share.start_offset >= self.end_offset

    def may_change(self) -> bool:
        """Return whether something may still happen without a member that does anything but fetch."""
        return self._unanswered > 0 or self._is_expiry_planned or self.is_readable()

    # ---- the log

    def append(self, size: int) -> None:
        """Append a batch, and wake those who wait."""
        first, self.end_offset = self.end_offset, self.end_offset + size
        self._log.append(RecordBatch(first, self.end_offset - 1))
        self._ends.append(self.end_offset - 1)
        self._times_us.append(self._broker.agenda.now_us)
        self.wake()

    def appended_us(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield when the records of a range were appended [µs], and how many of them then."""
        place = bisect_left(self._ends, first)
        while first <= last:
            end = min(self._ends[place], last) + 1
            yield self._times_us[place], end - first
            first, place = end, place + 1

    # ---- fetches

    def is_readable(self) -> bool:
        """Return whether a fetch would be answered at once."""
        return self.share.can_acquire() and self.share.next_fetch_offset() < self.end_offset

    def acquire(self, member_id: str, max_records: int) -> tuple[AcquiredRecords, ...]:
        """Acquire for a member; what lies further behind than it may have is not read."""
        load, share = self._load, self.share
        offset = share.next_fetch_offset()
        first = bisect_left(self._ends, offset)
        wanted = max(share.end_offset, offset) + max_records
        stop = min(bisect_left(self._ends, wanted, first) + 1, len(self._log))
        effects = share.acquire(
            member_id,
            FetchedRecords(fetch_offset=offset, batches=CheckedBatches(self._log, first, stop)),
            now_ms=self._broker.agenda.now_us // _US,
            max_records=max_records,
            batch_size=load.poll_records,
            mode=load.acquire_mode,
        )
        self._broker.counts.acquired(effects.acquired, share.end_offset - share.start_offset + 1)
        self._take(effects)
        return effects.acquired

    def wake(self) -> None:
        """Answer the fetches that wait, the first one first, as long as there is something for them."""
        while self.waiting and self.is_readable():
            self._broker.answer(next(iter(self.waiting)))

    # ---- what members do with what they hold

    def acknowledge(self, member_id: str, batches: Sequence[AcknowledgementBatch], written: Written) -> int:
        """
        Acknowledge for a member.

        Args:
            member_id: The member.
            batches: What it acknowledges.
            written: Called when that is durable, if it is not refused.

        Returns:
            How many records have changed; less than all of them if some are archived already, and 0 if it is refused.
        """
        try:
            effects = self.share.acknowledge(member_id, batches, now_ms=self._broker.agenda.now_us // _US)
        except RequestRefusedError:
            self._plan_expiry()  # renewed locks stay renewed
            return 0
        accepted = [each[:2] for each in effects.transitions if each[2] is Cause.ACCEPTED]
        changed = _size_of(effects.transitions, _ACKNOWLEDGED)
        if effects.writes:
            self._answers[effects.writes[-1].number] = partial(written, accepted)
        elif changed:
            written(accepted)
        self._take(effects)
        return changed

    def release(self, member_id: str) -> None:
        """Release what a member holds whose connection is lost."""
        self._take(self.share.release(member_id, now_ms=self._broker.agenda.now_us // _US))

    # ---- inside

    def _take(self, effects: Effects) -> None:
        """Do what a command of the share partition has left to do."""
        counts, after = self._broker.counts, self._broker.agenda.after
        if effects.transitions:
            counts.changed(effects.transitions)
        for write in effects.writes:
            counts.state_writes += 1
            self._unanswered += 1
            after(self._write_us, self._written, write.number)
        for dead in effects.dead_letters:
            counts.dead_letters += dead.last_offset - dead.first_offset + 1
            self._unanswered += 1
            after(self._write_us, self._dead_letter_written, dead.number)
        self._plan_expiry()
        if effects.wake:
            self.wake()
        if self.is_done:
            self._broker.partition_done()

    def _written(self, number: int) -> None:
        self._unanswered -= 1
        effects = self.share.write_succeeded(number)
        if (written := self._answers.pop(number, None)) is not None:
            written()
        self._take(effects)

    def _dead_letter_written(self, number: int) -> None:
        self._unanswered -= 1
        self._take(self.share.dead_letter_answered(number))

    def _plan_expiry(self) -> None:
        """Plan the next expiry; one that is planned comes no later, as later locks do not expire sooner."""
        if not self._is_expiry_planned and (due_ms := self.share.next_deadline_ms()) is not None:
            self._is_expiry_planned = True
            self._broker.agenda.at(max(due_ms * _US, self._broker.agenda.now_us), self._expire)

    def _expire(self) -> None:
        self._is_expiry_planned = False
        now_ms = self._broker.agenda.now_us // _US
        while (effects := self.share.expire_next(now_ms=now_ms)) is not None:
            # With a pending write the member has acknowledged in time, and nothing is lost.
            lost = (each for each in effects.transitions if not each.has_pending_write)
            self._broker.counts.expired += _size_of(lost, _EXPIRED)
            self._take(effects)
        self._plan_expiry()


_EXPIRED: Final = frozenset({Cause.LOCK_EXPIRED, Cause.ARCHIVED_AT_LIMIT})
_ACKNOWLEDGED: Final = frozenset(
    {Cause.ACCEPTED, Cause.RELEASED, Cause.REJECTED, Cause.RENEWED, Cause.ARCHIVED_AT_LIMIT}
)


def _size_of(transitions: Iterable[Transition], causes: frozenset[Cause]) -> int:
    return sum(each[1] - each[0] + 1 for each in transitions if each[2] in causes)
