"""
Random runs of leaders of a share partition, one after the other, and of what lies between them and a persister.

Writes fail, are late, overtake each other, come twice, or lose their answers, and some arrive when another leader has
taken over. A new leader may read the state at any moment: no record may be lost then, no durable one delivered again,
and no durable delivery forgotten.

The log does what logs do: it has gaps, its start moves, compaction takes batches out of it, and transactions are
aborted. In the end everybody accepts everything, and the SPSO has to be at the log end.

>>> from random import Random
>>> from sharestate.values.profiles import KAFKA_4_4
>>> failovers = FailoverRun(KAFKA_4_4.healed, in_memory())
>>> failovers.run(random_steps(Random(1)))
>>> failovers.finish()
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from sharestate.errors import ErrorCode
from sharestate.leader.answers import Loaded, answer_read
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.testing.persisters.failover_log import FailoverLog
from sharestate.testing.persisters.failover_search import (
    EVERYTHING,
    WRITES,
    FailoverError,
    FailoverStep,
    Mix,
    failure,
    fewest_steps,
    random_steps,
    search,
)
from sharestate.testing.persisters.leaders_persister import Connect, LeadersPersister, in_memory, records_of
from sharestate.testing.persisters.sent_writes import OUTCOMES, SentWrite, WriteDelivery, WriteOutcome, offsets_of
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.config import ShareConfig
from sharestate.values.effects import NOTHING, Cause
from sharestate.values.records import AcquireMode, ControlType, RecordState, SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.values.effects import Effects
    from sharestate.values.profiles import Profile
    from sharestate.values.requests import PersistedState

__all__ = [
    "EVERYTHING",
    "WRITES",
    "Connect",
    "FailoverError",
    "FailoverRun",
    "FailoverStep",
    "Mix",
    "SentWrite",
    "WriteDelivery",
    "WriteOutcome",
    "failure",
    "fewest_steps",
    "in_memory",
    "random_steps",
    "search",
]

_PATIENCE: Final = 400
"""The number of fetches after which everything must be done: the last attempts are of one record each. [fetches]"""

KEY: Final = SharePartitionKey(group_id="g", topic_id="AAAAAAAAAAEAAAAAAAAAAQ", partition=0)
CONFIG: Final = ShareConfig(delivery_count_limit=3, record_lock_duration_ms=100, max_record_locks=60)
MEMBERS: Final = ("m1", "m2", "m3")
_KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)

_NOT_STORED: Final = (RecordState.AVAILABLE, 0)
"""The state and the delivery count of a record in no batch."""

_NOT_DONE: Final = frozenset({Cause.READ, Cause.PASSED, Cause.CONFIRMED, Cause.ROLLED_BACK})
"""The causes of transitions that make no record terminal, or in memory only."""


class FailoverRun:
    """
    One share partition under one leader after the other.

    Args:
        profile: The profile of the leaders.
        connect: Returns a new persister for each leader.
        key: The share partition; what is stored of it is deleted at first.
        delivery: When a write may reach the persister.
        config: The group's settings, until a step changes them.

    Raises:
        FailoverError: The persister does not take the initialization.
    """

    def __init__(
        self,
        profile: Profile,
        connect: Connect,
        *,
        key: SharePartitionKey = KEY,
        delivery: WriteDelivery = WriteDelivery.LATE,
        config: ShareConfig = CONFIG,
    ) -> None:
        """Initialize the state, and start the first leader."""
        self._key = key
        self._persister = LeadersPersister(key, connect)
        self._delivery = delivery
        self._profile = profile
        self._config = config
        self._leader_epoch = 0
        self._log = FailoverLog()
        self._now_ms = 0
        self._sent: list[SentWrite] = []
        self._late: list[SentWrite] = []
        """The writes on their way that nobody waits for: they were answered, or their leader is gone."""
        self._dead_letters: list[int] = []
        """The numbers of the requests that the dead-letter queue has not answered."""
        self._terminal: set[int] = set()
        """The records that need no delivery: terminal by an applied write, or archived without one."""
        self._confirmed: set[int] = set()
        """The durable records, which must never be delivered again."""
        self._counted: dict[int, int] = {}
        """The durable delivery counts, by offset."""
        self._has_written = False
        self._lead()

    def run(self, steps: Iterable[FailoverStep]) -> None:
        """
        Carry out *steps*.

        Raises:
            FailoverError: The persisted state loses a record, brings a durable one back, or forgets a delivery; the
                SPSO passes a record that is not terminal; or a write of the leader is refused, or one of an earlier
                leader accepted.
        """
        for kind, numbers in steps:
            _STEPS[kind](self, *numbers)

    def finish(self) -> None:
        """
        Answer every write with success, expire every lock and accept every record, until the SPSO is at the log end.

        What was on its way arrives at last, and another leader comes to the same end.

        Raises:
            FailoverError: The SPSO is not there after 400 fetches, or a record is not terminal; or as for ``run``.
        """
        self._accept_everything()
        while self._late:
            self.deliver(0, 0, 0)
        self.crash(0, 0, 0)
        self._accept_everything()

    def _accept_everything(self) -> None:
        for _ in range(_PATIENCE):
            if self._partition.start_offset >= self._log.end and not self._unfinished():
                return
            self._accept_all()
        if self._unfinished():
            message = f"{self._unfinished()[0]} is never terminal"
            raise FailoverError(message)
        message = f"the SPSO stays at {self._partition.start_offset}, and the log ends at {self._log.end}"
        raise FailoverError(message)

    def _unfinished(self) -> list[int]:
        return [offset for offset in self._log.offsets() if offset not in self._terminal]

    def _accept_all(self) -> None:
        member = MEMBERS[0]
        self._now_ms += self._config.record_lock_duration_ms + 1
        self.pass_time(0, 0, 0)
        self._answer_all()
        for first, last, _ in self._fetch(member).acquired:
            accepted = AcknowledgementBatch(first, last, (AcknowledgeType.ACCEPT,))
            self._command(partial(self._partition.acknowledge, member, [accepted], now_ms=self._now_ms))
        self._answer_all()

    def _answer_all(self) -> None:
        while self._sent or self._dead_letters:
            self.answer(0, 0, 0)
            self.answer_dead_letter(0, 0, 0)

    # ---- steps

    def fetch(self, member: int, size: int, gap: int) -> None:
        """Acquire the next batches for a member; they may be new and may begin after a gap of the log."""
        if self._partition.next_fetch_offset() >= self._log.end:
            self._log.leave_gap(gap)
            self._log.append(size % 6 + 1)
        self._fetch(
            MEMBERS[member % 3],
            max_batches=(2, 1, 3)[member // 3 % 3],
            max_records=(500, 500, 1, 3)[size // 6 % 4],
            mode=(AcquireMode.BATCH_OPTIMIZED, AcquireMode.RECORD_LIMIT)[gap // 15 % 2],
        )

    def acknowledge(self, member: int, choice: int, kinds: int) -> None:
        """Acknowledge up to three of the ranges that one of the members holds, or parts of them."""
        held: dict[str, list[tuple[int, int]]] = {}
        start, acquired = self._partition.start_offset, RecordState.ACQUIRED
        for batch in self._partition.batches() if self._partition.lock_count() else ():
            for run in batch.runs:
                if run.state is acquired and run.first_offset >= start:
                    held.setdefault(str(run.member_id), []).append((run.first_offset, run.last_offset))
        if not held:
            return
        name = sorted(held)[member % len(held)]
        batches = []
        for index, (first, last) in enumerate(held[name][choice % 2 :][:3]):
            low = min(last, first + choice // 2 % 3)
            high = max(low, last - choice // 6 % 3)
            batches.append(AcknowledgementBatch(low, high, (_KINDS[kinds // 3**index % 3],)))
            if kinds % 2 and high < last:
                batches.append(AcknowledgementBatch(high + 1, high + 1, (_KINDS[kinds // 2 % 3],)))
        if batches:
            self._command(lambda: self._partition.acknowledge(name, batches, now_ms=self._now_ms))

    def release(self, member: int, _1: int, _2: int) -> None:
        """Close a member's session."""
        self._command(lambda: self._partition.release(MEMBERS[member % 3], now_ms=self._now_ms))

    def pass_time(self, ms: int, _1: int, _2: int) -> None:
        """Advance the clock and expire the locks that are due."""
        self._now_ms += ms % 150
        while self._command(lambda: self._partition.expire_next(now_ms=self._now_ms)) is not None:
            pass

    def answer(self, which: int, how: int, _: int) -> None:
        """
        Answer a pending write.

        With success, after which it may come again; with an error, after which it may still come; or with an error
        although it was applied.
        """
        if not self._sent:
            return
        if self._delivery is WriteDelivery.IN_ORDER:
            which = 0
        sent = self._sent.pop(which // 2 % len(self._sent) if which % 2 == 0 else -1)
        outcome = OUTCOMES[how % len(OUTCOMES)]
        if outcome.is_applied:
            self._apply(sent)
        if outcome.is_late and self._delivery is WriteDelivery.LATE:
            self._late.append(sent)
        number = sent.write.number
        if outcome.is_confirmed:
            self._confirmed |= sent.terminal
            for offset, count in sent.counted.items():
                self._counted[offset] = max(count, self._counted.get(offset, 0))
            self._command(lambda: self._partition.write_succeeded(number))
        else:
            self._command(lambda: self._partition.write_failed(number, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._judge()

    def answer_dead_letter(self, which: int, _1: int, _2: int) -> None:
        """Let the dead-letter queue answer; whether it has taken the records makes no difference."""
        if self._dead_letters:
            number = self._dead_letters.pop(which % len(self._dead_letters))
            self._command(lambda: self._partition.dead_letter_answered(number))

    def deliver(self, which: int, _1: int, _2: int) -> None:
        """Let a write arrive that nobody waits for."""
        if self._late:
            sent = self._late.pop(which % len(self._late))
            if sent.write.leader_epoch < self._leader_epoch:
                self._persister.expect_fenced(sent.write)
            else:
                self._apply(sent)
            self._judge()

    def move_log_start(self, by: int, learned: int, _: int) -> None:
        """Advance the log start offset; the leader learns it at once, or when a fetch is out of range."""
        self._log.move_start(max(self._log.start, self._partition.start_offset) + by % 8)
        if learned % 2 == 0:
            self._learn_log_start()

    def append_transaction(self, size: int, how: int, gap: int) -> None:
        """Append the one or two batches of a transaction, perhaps after a gap, and the marker that aborts it."""
        self._log.leave_gap(gap)
        for _ in range(1 + how % 2):
            self._log.append(size % 12 + 1, is_transactional=True)
        self._log.append(1, (ControlType.ABORT, ControlType.COMMIT)[how // 8 % 2], is_transactional=True)

    def compact(self, which: int, count: int, _: int) -> None:
        """Take some batches out of the log that the SPSO has not passed; the last one of a log always stays."""
        self._log.compact(self._partition.start_offset, which, count)

    def configure(self, locks: int, limit: int, queue: int) -> None:
        """Change the group's settings; where the leader does not take them, the next one does."""
        self._config = evolve(
            self._config,
            max_record_locks=locks % 12 + 1,
            delivery_count_limit=limit % 4 + 1,
            dead_letter_queue=self._profile.has_dead_letter_queue and queue % 2 == 1,
        )
        self._command(lambda: self._partition.configure(self._config))

    def crash(self, applied: int, _1: int, _2: int) -> None:
        """Replace the leader; some of its pending writes arrive before the next one reads the state, others later."""
        for index, sent in enumerate(self._sent):
            if index < applied % 8 if self._delivery is WriteDelivery.IN_ORDER else applied >> index & 1:
                self._apply(sent)
            else:
                self._late.append(sent)
        self._judge()
        self._sent = []
        self._dead_letters = []
        if not self._has_written:
            self._log.start = self._log.end
        self._lead()

    # ---- what steps do

    def _fetch(self, member: str, max_batches: int = 2, **wanted: Any) -> Effects:  # noqa: ANN401 - as ``acquire`` has them
        if not self._partition.can_acquire():
            return NOTHING
        offset = self._partition.next_fetch_offset()
        if offset < self._log.start:
            self._learn_log_start()
            return NOTHING
        fetched = self._log.fetched(offset, max_batches)
        return self._command(lambda: self._partition.acquire(member, fetched, now_ms=self._now_ms, **wanted)) or NOTHING

    def _learn_log_start(self) -> None:
        self._command(lambda: self._partition.advance_log_start(self._log.start))

    def _apply(self, sent: SentWrite) -> None:
        self._persister.write(sent.write)
        self._terminal |= sent.terminal
        self._has_written = True

    # ---- the checks

    def _judge(self) -> None:
        if not self._has_written:
            return
        stored = self._persister.read(self._read)
        start, records = self._start(stored), records_of(stored)
        for offset in self._log.offsets():
            state, count = records.get(offset, _NOT_STORED)
            if offset < start or state in TERMINAL:
                if offset not in self._terminal:
                    message = f"{offset} is lost"
                    raise FailoverError(message)
            elif offset in self._confirmed and state != RecordState.ARCHIVING:  # then it goes to the queue, if twice
                message = f"{offset} comes back"
                raise FailoverError(message)
            elif count < self._counted.get(offset, 0):
                message = f"a delivery of {offset} is forgotten"
                raise FailoverError(message)

    def _start(self, stored: PersistedState) -> int:
        """Return the offset below which a new leader delivers nothing."""
        return self._log.end if stored.start_offset == -1 else stored.start_offset

    # ---- the share partition

    def _lead(self) -> None:
        self._persister.connect()
        self._leader_epoch += 1
        self._partition = SharePartition(
            self._key,
            leader_epoch=self._leader_epoch,
            profile=self._profile,
            config=self._config,
            record_transitions=True,
        )
        self._read = self._partition.initialize()
        stored = self._persister.read(self._read)
        start, records = self._start(stored), records_of(stored)
        self._terminal = {
            offset for offset in self._log.offsets() if offset < start or records.get(offset, (None, 0))[0] in TERMINAL
        }
        self._confirmed = set(self._terminal)
        self._counted = {offset: count for offset, (_, count) in records.items()}
        self._command(lambda: answer_read(self._partition, Loaded(stored), lambda _: self._log.end))

    def _command(self, command: Callable[[], Effects | None]) -> Effects | None:
        """Carry out the effects of *command*, and look at what the SPSO has passed."""
        start = self._partition.start_offset
        effects = command()
        if effects is None:
            return None
        for change in effects.transitions:
            if change.state in TERMINAL and not change.has_pending_write and change.cause not in _NOT_DONE:
                self._terminal.update(offsets_of(change))
        self._sent += [SentWrite.of(write, effects.transitions) for write in effects.writes]
        self._dead_letters += [request.number for request in effects.dead_letters]
        if self._partition.start_offset > start:
            for offset in self._unfinished():
                if offset < self._partition.start_offset:
                    message = f"the SPSO passes {offset}, which is not terminal"
                    raise FailoverError(message)
        return effects


_STEPS: Final[Mapping[str, Callable[[FailoverRun, int, int, int], None]]] = {
    kind: getattr(FailoverRun, kind) for kind in EVERYTHING
}
"""The kinds of steps."""
