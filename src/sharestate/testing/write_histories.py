"""
Random histories of leaders of a share partition, one after the other, and of what lies between them and a persister.

Writes fail, are late, overtake each other, come twice, or lose their answers, and some arrive when another leader has
taken over. A new leader may read the state at any moment: no record may be lost then, no durable one delivered again,
and no durable delivery forgotten.

>>> from random import Random
>>> from sharestate.values.profiles import KAFKA_4_4
>>> history = History(KAFKA_4_4.healed, in_memory())
>>> history.run(random_steps(Random(1)))
>>> history.finish()
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorProfile
from sharestate.errors import ErrorCode
from sharestate.leader.answers import (
    Loaded,
    Refused,
    Written,
    answer_read,
    read_answer,
    send_read,
    send_write,
    write_answer,
)
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.persister.in_memory import InMemoryPersister
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionIdData,
    PartitionStateData,
)
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.records import RecordBatch, RecordState, SharePartitionKey
from sharestate.values.requests import ReadShareGroupState, WriteShareGroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from sharestate.persister.protocol import Persister
    from sharestate.values.effects import Effects
    from sharestate.values.profiles import Profile
    from sharestate.values.requests import PersistedState

T = TypeVar("T")

Connect: TypeAlias = "Callable[[], Persister]"
"""Returns the persister of the next leader, who finds in it what was stored through those before."""

_PATIENCE: Final = 200
"""The number of fetches after which every record must be terminal. [fetches]"""

_TIMEOUT_S: Final = 60
"""The longest time that an answer of the persister may take. [s]"""

_STATE_EPOCH: Final = 1

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


class Delivery(Enum):
    """When a write may reach the persister. One of an earlier leader may reach it at any time, and is fenced."""

    IN_ORDER = "after those before it"
    OVERTAKING = "at any time until the leader has an answer"
    LATE = "at any time, and twice"


class Outcome(NamedTuple):
    """
    What becomes of a pending write.

    Attributes:
        is_applied: Whether the persister applies it now.
        is_confirmed: Whether it is confirmed to the leader; else it has failed.
        is_late: Whether it comes once more, later.
    """

    is_applied: bool
    is_confirmed: bool
    is_late: bool


_OUTCOMES: Final = (
    Outcome(is_applied=True, is_confirmed=True, is_late=False),
    Outcome(is_applied=True, is_confirmed=True, is_late=True),
    Outcome(is_applied=False, is_confirmed=False, is_late=False),
    Outcome(is_applied=False, is_confirmed=False, is_late=True),
    Outcome(is_applied=True, is_confirmed=False, is_late=False),
    Outcome(is_applied=True, is_confirmed=True, is_late=False),
)


class HistoryError(AssertionError):
    """The state that a new leader would read is wrong, a write was answered wrongly, or a record is never terminal."""


def in_memory(rules: CoordinatorProfile = LATEST_COORDINATOR) -> Connect:
    """Return how to connect to a new persister in memory."""
    persister = InMemoryPersister(profile=rules)
    return lambda: persister


class History:
    """
    One share partition under one leader after the other.

    Args:
        profile: The profile of the leaders.
        connect: Returns the persister, anew for each leader.
        key: The share partition; what is stored of it is deleted at first.
        delivery: When a write may reach the persister.

    Raises:
        HistoryError: The persister does not take the initialization.
    """

    def __init__(
        self, profile: Profile, connect: Connect, *, key: SharePartitionKey = KEY, delivery: Delivery = Delivery.LATE
    ) -> None:
        """Initialize the state, and start the first leader."""
        self._key = key
        self._connect = connect
        self._delivery = delivery
        self._profile = profile
        self._leader_epoch = 0
        self._log: list[tuple[int, int]] = []
        self._log_start = self._log_end = BEGIN
        self._now_ms = 0
        self._sent: list[Sent] = []
        self._late: list[Sent] = []
        """The writes on their way that nobody waits for: they were answered, or their leader is gone."""
        self._terminal: set[int] = set()
        """The records that need no delivery: terminal by an applied write, or archived when a lock expired."""
        self._confirmed: set[int] = set()
        """The durable records, which must never be delivered again."""
        self._counted: dict[int, int] = {}
        """The durable delivery counts, by offset."""
        self._has_written = False
        self._begin()
        self._lead()

    def run(self, steps: Iterable[Step]) -> None:
        """
        Carry out *steps*.

        Raises:
            HistoryError: The persisted state loses a record, brings a durable one back, or forgets a delivery; or a
                write of the leader is refused, or one of an earlier leader accepted.
        """
        for kind, numbers in steps:
            _STEPS[kind](self, *numbers)

    def finish(self) -> None:
        """
        Answer every write with success, expire every lock and accept every record, until all are terminal.

        What was on its way arrives at last.

        Raises:
            HistoryError: A record is not terminal after 200 fetches, or not any more; or as for ``run``.
        """
        for _ in range(_PATIENCE):
            if not self._unfinished():
                break
            self._accept_all()
        else:
            message = f"{self._unfinished()[0]} is never terminal"
            raise HistoryError(message)
        while self._late:
            self.deliver(0, 0, 0)

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
        """Acknowledge up to three of the ranges that one of the members holds, or parts of them."""
        held: dict[str, list[tuple[int, int]]] = {}
        for batch in self._partition.batches():
            for run in batch.runs:
                if run.state is RecordState.ACQUIRED and run.first_offset >= self._partition.start_offset:
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
        while self._command(lambda: self._partition.expire_next(now_ms=self._now_ms), is_final=True):
            pass

    def answer(self, which: int, how: int, _: int) -> None:
        """
        Answer a pending write.

        With success, after which it may come again; with an error, after which it may still come; or with an error
        although it was applied.
        """
        if not self._sent:
            return
        if self._delivery is Delivery.IN_ORDER:
            which = 0
        sent = self._sent.pop(which // 2 % len(self._sent) if which % 2 == 0 else -1)
        outcome = _OUTCOMES[how % len(_OUTCOMES)]
        if outcome.is_applied:
            self._apply(sent)
        if outcome.is_late and self._delivery is Delivery.LATE:
            self._late.append(sent)
        if outcome.is_confirmed:
            self._confirmed |= sent.terminal
            for offset, count in sent.counted.items():
                self._counted[offset] = max(count, self._counted.get(offset, 0))
            self._partition.write_succeeded(sent.write.number)
        else:
            self._partition.write_failed(sent.write.number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._judge()

    def deliver(self, which: int, _1: int, _2: int) -> None:
        """Let a write arrive that nobody waits for."""
        if self._late:
            sent = self._late.pop(which % len(self._late))
            if sent.write.leader_epoch < self._leader_epoch:
                self._expect_fenced(sent)
            else:
                self._apply(sent)
            self._judge()

    def move_log_start(self, by: int, _1: int, _2: int) -> None:
        """Advance the log start offset."""
        self._log_start = min(max(self._log_start, self._partition.start_offset) + by % 8, self._log_end)
        self._log = [(first, last) for first, last in self._log if last >= self._log_start]
        self._partition.advance_log_start(self._log_start)

    def crash(self, applied: int, _1: int, _2: int) -> None:
        """Replace the leader; some of its pending writes arrive before the next one reads the state, others later."""
        for index, sent in enumerate(self._sent):
            if index < applied % 8 if self._delivery is Delivery.IN_ORDER else applied >> index & 1:
                self._apply(sent)
            else:
                self._late.append(sent)
        self._judge()
        self._sent = []
        if not self._has_written:
            self._log_start = max(self._log_start, self._log_end)
        self._lead()

    # ---- the checks

    def _judge(self) -> None:
        if not self._has_written:
            return
        stored = self._read(self._reading())
        start, records = self._start(stored), _records_of(stored)
        for offset in self._owed():
            state, count = records.get(offset, (RecordState.AVAILABLE, 0))
            if offset < start or state in TERMINAL:
                if offset not in self._terminal:
                    message = f"{offset} is lost"
                    raise HistoryError(message)
            elif offset in self._confirmed:
                message = f"{offset} comes back"
                raise HistoryError(message)
            elif count < self._counted.get(offset, 0):
                message = f"a delivery of {offset} is forgotten"
                raise HistoryError(message)

    def _owed(self) -> list[int]:
        return [offset for first, last in self._log for offset in range(max(first, self._log_start), last + 1)]

    def _start(self, stored: PersistedState) -> int:
        """Return the offset below which a new leader delivers nothing."""
        return self._log_end if stored.start_offset == -1 else stored.start_offset

    # ---- the persister

    def _begin(self) -> None:
        """Delete what is stored, and initialize the state as a group coordinator does."""
        place = self._key.group_id, self._key.topic_id
        self._persister = self._connect()
        partition = self._key.partition
        state = PartitionStateData(partition=partition, state_epoch=_STATE_EPOCH)
        deleted = self._persister.delete_state(DeleteStateParameters.of(*place, PartitionIdData(partition=partition)))
        _done(deleted)
        answer = write_answer(
            _done(self._persister.initialize_state(InitializeStateParameters.of(*place, state))), self._key
        )
        if answer != Written():
            message = f"the initialization was answered {answer}"
            raise HistoryError(message)

    def _reading(self) -> ReadShareGroupState:
        return ReadShareGroupState(key=self._key, leader_epoch=self._leader_epoch)

    def _read(self, read: ReadShareGroupState) -> PersistedState:
        answer = read_answer(_done(send_read(self._persister, read)), self._key)
        if isinstance(answer, Loaded):
            return answer.state
        message = f"a read with leader epoch {read.leader_epoch} was answered {answer}"
        raise HistoryError(message)

    def _apply(self, sent: Sent) -> None:
        answer = write_answer(_done(send_write(self._persister, sent.write)), self._key)
        if answer != Written():
            message = f"a write of the leader was answered {answer}"
            raise HistoryError(message)
        self._terminal |= sent.terminal
        self._has_written = True

    def _expect_fenced(self, sent: Sent) -> None:
        answer = write_answer(_done(send_write(self._persister, sent.write)), self._key)
        if not isinstance(answer, Refused) or answer.code != ErrorCode.FENCED_LEADER_EPOCH:
            message = f"a write of an earlier leader was answered {answer}"
            raise HistoryError(message)

    # ---- the share partition

    def _lead(self) -> None:
        self._persister = self._connect()
        self._leader_epoch += 1
        self._partition = SharePartition(
            self._key, leader_epoch=self._leader_epoch, profile=self._profile, config=CONFIG
        )
        stored = self._read(self._partition.initialize())
        start, records = self._start(stored), _records_of(stored)
        self._terminal = {
            offset for offset in self._owed() if offset < start or records.get(offset, (None, 0))[0] in TERMINAL
        }
        self._confirmed = set(self._terminal)
        self._counted = {offset: count for offset, (_, count) in records.items()}
        self._command(lambda: answer_read(self._partition, Loaded(stored), lambda _: self._log_end))
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


def _done(future: Future[T]) -> Future[T]:
    """Return *future* when it is done."""
    future.exception(timeout=_TIMEOUT_S)
    return future


def _records_of(stored: PersistedState) -> dict[int, tuple[int, int]]:
    """Return state and delivery count of each record in a batch, by offset."""
    return {
        offset: (state, count)
        for first, last, state, count in stored.state_batches
        for offset in range(first, last + 1)
    }


_STEPS: Final[Mapping[str, Callable[[History, int, int, int], None]]] = {
    "fetch": History.fetch,
    "acknowledge": History.acknowledge,
    "answer": History.answer,
    "deliver": History.deliver,
    "pass_time": History.pass_time,
    "release": History.release,
    "move_log_start": History.move_log_start,
    "crash": History.crash,
}
_WEIGHTS: Final = ((4,), (9, 14), (3, 6, 9), (0, 2), (0, 1, 3), (0, 1), (0, 0, 1), (0, 1))
"""The weights of each step, of which a history takes one: in some, writes are answered late. [weight]"""


def random_steps(random: Random) -> list[Step]:
    """Return the steps of a random history."""
    weights = [random.choice(choices) for choices in _WEIGHTS]
    kinds = random.choices(list(_STEPS), weights, k=random.randint(10, 60))
    return [Step(kind, (random.randrange(64), random.randrange(64), random.randrange(64))) for kind in kinds]


def failure(begin: Callable[[], History], steps: Iterable[Step]) -> str | None:
    """Return the message of the first fault in *steps* and the finish, in a history that *begin* returns, or None."""
    try:
        history = begin()
        history.run(steps)
        history.finish()
    except HistoryError as error:
        return str(error)
    return None


def shrunk(begin: Callable[[], History], steps: Sequence[Step]) -> list[Step]:
    """Return as few of *steps* as still fail, each of their numbers as low as it can be while the others stay."""
    kept = list(steps)
    size = len(kept)
    while size:
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            if failure(begin, fewer) is not None:
                kept = fewer
                break
        else:
            size //= 2
    for index, place in product(range(len(kept)), range(3)):
        for lower in _lower(kept[index], place):
            changed = [*kept[:index], lower, *kept[index + 1 :]]
            if failure(begin, changed) is not None:
                kept = changed
                break
    return kept


def _lower(step: Step, place: int) -> Iterator[Step]:
    """Yield *step* with lower numbers at *place*, the lowest one first."""
    for number in range(step.numbers[place]):
        first, second, third = (number if at == place else old for at, old in enumerate(step.numbers))
        yield Step(step.kind, (first, second, third))


def search(begin: Callable[[], History], seeds: Iterable[int]) -> str | None:
    """
    Return the first fault in the random histories of *seeds*, with the fewest steps that lead to it; None without one.

    The steps are a list for ``History.run``, in Python.
    """
    for seed in seeds:
        steps = random_steps(Random(seed))  # noqa: S311 - a replayable history
        if failure(begin, steps) is not None:
            steps = shrunk(begin, steps)
            listed = "".join(f"    {step},\n" for step in steps)
            return f"{failure(begin, steps)}, seed {seed}:\n[\n{listed}]"
    return None
