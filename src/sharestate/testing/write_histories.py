"""
Random histories of a share partition whose persister fails, is late, reorders writes and loses answers.

The persisted state is combined from the writes alone, as a share coordinator does. A new leader may read it at any
moment: no record may be lost then, and no durable one delivered again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.coordinator.combiner import combine
from sharestate.errors import ErrorCode
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.records import RecordBatch, RecordState, SharePartitionKey
from sharestate.values.requests import PersistedState, WriteShareGroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from random import Random

    from sharestate.values.effects import Effects
    from sharestate.values.profiles import Profile
    from sharestate.values.requests import StateBatch

_PATIENCE: Final = 200
"""The number of fetches after which every record must be terminal. [fetches]"""

KEY: Final = SharePartitionKey(group_id="g", topic_id="AAAAAAAAAAEAAAAAAAAAAQ", partition=0)
BEGIN: Final = 100
"""The log end offset when the group starts: the first record that must be delivered. [offset]"""

CONFIG: Final = ShareConfig(delivery_count_limit=3, record_lock_duration_ms=100, max_record_locks=60)
MEMBERS: Final = ("m1", "m2", "m3")
_KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


class Step(NamedTuple):
    """
    One step; its numbers choose among what is possible at that moment, so that any steps make a history.

    Attributes:
        kind: The name of a method of History.
        numbers: Its arguments.
    """

    kind: str
    numbers: tuple[int, int, int]


class Sent(NamedTuple):
    """
    A pending write, and what its success makes durable.

    Attributes:
        write: The write.
        terminal: The records that it makes terminal. [offsets]
        counted: The delivery counts of the records that it makes AVAILABLE, by offset.
    """

    write: WriteShareGroupState
    terminal: frozenset[int]
    counted: Mapping[int, int]


class Stored:
    """The state that a share coordinator has of one share partition."""

    def __init__(self) -> None:
        """Start without a start offset or batches."""
        self.start_offset = -1
        self.batches: tuple[StateBatch, ...] = ()

    def apply(self, write: WriteShareGroupState) -> None:
        """Apply *write*."""
        if write.start_offset != -1:
            self.start_offset = write.start_offset
        self.batches = combine(self.batches, write.state_batches, self.start_offset)

    def records(self) -> dict[int, tuple[int, int]]:
        """Return state and delivery count of each record in a batch, by offset."""
        return {
            offset: (state, count) for first, last, state, count in self.batches for offset in range(first, last + 1)
        }


class HistoryError(AssertionError):
    """The state that a new leader would read is wrong, or a record is never terminal."""


class History:
    """One share partition under one leader after the other."""

    def __init__(self, profile: Profile, *, overtakes: bool = True) -> None:
        """Start the first leader; with *overtakes*, the persister may apply a write before earlier ones."""
        self.stored = Stored()
        self._overtakes = overtakes
        self._profile = profile
        self._log: list[tuple[int, int]] = []
        self._log_start = self._log_end = BEGIN
        self._now_ms = 0
        self._sent: list[Sent] = []
        self._terminal: set[int] = set()
        """The records that need no delivery: terminal by an applied write, or archived when a lock expired."""
        self._confirmed: set[int] = set()
        """The durable records, which must never be delivered again."""
        self._counted: dict[int, int] = {}
        """The durable delivery counts, by offset."""
        self._has_written = False
        self._lead()

    def run(self, steps: Iterable[Step]) -> None:
        """
        Carry out *steps*.

        Raises:
            HistoryError: The persisted state loses a record, brings a durable one back, or forgets a delivery.
        """
        for kind, numbers in steps:
            _STEPS[kind](self, *numbers)

    def finish(self) -> None:
        """
        Answer every write with success, expire every lock and accept every record, until all are terminal.

        Raises:
            HistoryError: A record is not terminal after 200 fetches.
        """
        for _ in range(_PATIENCE):
            if not self._unfinished():
                return
            self._accept_all()
        message = f"{self._unfinished()[0]} is never terminal"
        raise HistoryError(message)

    def _unfinished(self) -> list[int]:
        return [offset for offset in self._owed() if offset not in self._terminal]

    def _accept_all(self) -> None:
        member = MEMBERS[0]
        self.pass_time(CONFIG.record_lock_duration_ms + 1, 0, 0)
        self._answer_all()
        offset = self._partition.next_fetch_offset()
        batches = [RecordBatch(first, last) for first, last in self._log if last >= offset]
        if batches and self._partition.can_acquire():
            fetched = FetchedRecords(fetch_offset=offset, batches=batches)
            for first, last, _ in self._partition.acquire(member, fetched, now_ms=self._now_ms).acquired:
                accepted = AcknowledgementBatch(first, last, (AcknowledgeType.ACCEPT,))
                self._command(partial(self._partition.acknowledge, member, [accepted], now_ms=self._now_ms))
        self._answer_all()

    def _answer_all(self) -> None:
        while self._sent:
            self.answer(0, 0, 0)

    # ---- steps

    def fetch(self, member: int, size: int, gap: int) -> None:
        """Acquire the next batch for a member; it may be new and may begin after a gap of the log."""
        offset = self._partition.next_fetch_offset()
        if offset >= self._log_end:
            first = self._log_end + (gap % 3 if gap % 5 == 0 else 0)
            self._log.append((first, first + size % 6))
            self._log_end = first + size % 6 + 1
        batches = [RecordBatch(first, last) for first, last in self._log if last >= offset][:2]
        if batches:
            fetched = FetchedRecords(fetch_offset=offset, batches=batches)
            self._partition.acquire(MEMBERS[member % 3], fetched, now_ms=self._now_ms)

    def acknowledge(self, member: int, choice: int, kinds: int) -> None:
        """Acknowledge up to three of the ranges that a member holds, or parts of them."""
        name = MEMBERS[member % 3]
        held = [
            (run.first_offset, run.last_offset)
            for batch in self._partition.batches()
            for run in batch.runs
            if run.state is RecordState.ACQUIRED
            and run.member_id == name
            and run.first_offset >= self._partition.start_offset
        ]
        batches = []
        for index, (first, last) in enumerate(held[choice % 2 :][:3]):
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
        while self._command(lambda: self._partition.expire_next(now_ms=self._now_ms), is_final=True):
            pass

    def answer(self, which: int, how: int, _: int) -> None:
        """Answer a pending write: with success, with an error, or with an error although it was applied."""
        if not self._sent:
            return
        sent = self._sent.pop(which % len(self._sent) if self._overtakes else 0)
        if how % 4 in {0, 1, 3}:
            self._apply(sent)
        if how % 4 in {0, 1}:
            self._confirmed |= sent.terminal
            for offset, count in sent.counted.items():
                self._counted[offset] = max(count, self._counted.get(offset, 0))
            self._partition.write_succeeded(sent.write.number)
        else:
            self._partition.write_failed(sent.write.number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._judge()

    def move_log_start(self, by: int, _1: int, _2: int) -> None:
        """Advance the log start offset."""
        self._log_start = min(max(self._log_start, self._partition.start_offset) + by % 8, self._log_end)
        self._log = [(first, last) for first, last in self._log if last >= self._log_start]
        self._partition.advance_log_start(self._log_start)

    def crash(self, applied: int, _1: int, _2: int) -> None:
        """Replace the leader; some of its pending writes are applied before the next one reads the state."""
        for index, sent in enumerate(self._sent):
            if applied >> index & 1 if self._overtakes else index < applied % 8:
                self._apply(sent)
        self._judge()
        self._sent = []
        if not self._has_written:
            self._log_start = max(self._log_start, self._log_end)
        stored = self.stored.records()
        self._terminal = {offset for offset in self._owed() if self._is_terminal(offset, stored)}
        self._confirmed = set(self._terminal)
        self._counted = {offset: count for offset, (_, count) in stored.items()}
        self._lead()

    # ---- the checks

    def _judge(self) -> None:
        if not self._has_written:
            return
        stored = self.stored.records()
        for offset in self._owed():
            if self._is_terminal(offset, stored):
                if offset not in self._terminal:
                    message = f"{offset} is lost"
                    raise HistoryError(message)
            elif offset in self._confirmed:
                message = f"{offset} comes back"
                raise HistoryError(message)
            elif stored.get(offset, (0, 0))[1] < self._counted.get(offset, 0):
                message = f"a delivery of {offset} is forgotten"
                raise HistoryError(message)

    def _owed(self) -> list[int]:
        return [offset for first, last in self._log for offset in range(max(first, self._log_start), last + 1)]

    def _is_terminal(self, offset: int, stored: Mapping[int, tuple[int, int]]) -> bool:
        start = self._log_end if self.stored.start_offset == -1 else self.stored.start_offset
        return offset < start or (offset in stored and stored[offset][0] in TERMINAL)

    # ---- the share partition

    def _lead(self) -> None:
        self._partition = SharePartition(KEY, profile=self._profile, config=CONFIG)
        self._partition.initialize()
        start = max(self.stored.start_offset, self._log_start) if self.stored.start_offset != -1 else -1
        kept = combine(self.stored.batches, (), start)
        state = PersistedState(start_offset=self.stored.start_offset, state_batches=kept)
        self._command(lambda: self._partition.read_succeeded(state, reset_offset=self._log_end))
        self._partition.advance_log_start(self._log_start)

    def _records(self) -> dict[int, tuple[RecordState, int]]:
        return {
            offset: (run.state, run.delivery_count)
            for batch in self._partition.batches()
            for run in batch.runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }

    def _command(self, command: Callable[[], Effects | None], *, is_final: bool = False) -> bool:
        before = self._records()
        effects = command()
        if effects is None:
            return False
        changed = {offset: cell for offset, cell in self._records().items() if before.get(offset) != cell}
        terminal = frozenset(offset for offset, (state, _) in changed.items() if state in TERMINAL)
        counted = {offset: count for offset, (state, count) in changed.items() if state is RecordState.AVAILABLE}
        if is_final or not effects.writes:
            self._terminal |= terminal
        self._sent += [Sent(write, terminal, counted) for write in effects.writes]
        return True

    def _apply(self, sent: Sent) -> None:
        self.stored.apply(sent.write)
        self._terminal |= sent.terminal
        self._has_written = True


_STEPS: Final[Mapping[str, Callable[[History, int, int, int], None]]] = {
    "fetch": History.fetch,
    "acknowledge": History.acknowledge,
    "answer": History.answer,
    "pass_time": History.pass_time,
    "release": History.release,
    "move_log_start": History.move_log_start,
    "crash": History.crash,
}
_WEIGHTS: Final = ((8,), (9, 14), (1, 4, 9), (1, 3), (1,), (0, 1, 4), (0, 1))
"""The weights of each step, of which a history takes one: in some, writes are answered late. [weight]"""


def random_steps(random: Random) -> list[Step]:
    """Return the steps of a random history."""
    weights = [random.choice(choices) for choices in _WEIGHTS]
    kinds = random.choices(list(_STEPS), weights, k=random.randint(5, 40))
    return [Step(kind, (random.randrange(64), random.randrange(64), random.randrange(64))) for kind in kinds]


def failure(profile: Profile, steps: Iterable[Step], *, overtakes: bool = True) -> str | None:
    """Return the message of the first fault in *steps* or in the finish after them, or None."""
    try:
        history = History(profile, overtakes=overtakes)
        history.run(steps)
        history.finish()
    except HistoryError as error:
        return str(error)
    return None


def shrunk(profile: Profile, steps: Sequence[Step], *, overtakes: bool = True) -> list[Step]:
    """Return as few of *steps* as still fail."""
    kept = list(steps)
    size = len(kept)
    while size:
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            if failure(profile, fewer, overtakes=overtakes) is not None:
                kept = fewer
                break
        else:
            size //= 2
    return kept
