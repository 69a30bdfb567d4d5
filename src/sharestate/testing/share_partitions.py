"""
A test of share partitions, the leader's side: inherit ``SharePartitionMachine`` and implement a few methods.

It is a state machine of Hypothesis (extra ``testing``). Members acquire and acknowledge, and an adversary has the rest
in its hands: writes fail, hang, are answered late, out of order or twice; locks expire while a write is on its way; the
log start moves into what is in flight; the leader fails over in the middle of a write. After every event each result,
each write and each record is compared with an independent model of the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.share_partitions needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.error_codes import ErrorCode
from sharestate.testing.partition_events import (
    SMALL,
    Coordinator,
    Event,
    PartitionEvents,
    PartitionSettings,
    Pick,
    StoredState,
    in_words,
    number_of,
)
from sharestate.testing.record_model import RecordModel
from sharestate.testing.records_in_flight import Rules
from sharestate.values.acknowledgements import AcknowledgeType

__all__ = [
    "EXPLANATIONS",
    "AcknowledgeType",
    "PartitionSettings",
    "Rules",
    "SharePartitionDiffersError",
    "SharePartitionMachine",
    "StoredState",
]

EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "acquired": (
        "A member gets what is available, as much as it wants and as there is room for, and that counts as a delivery.",
        "which records are available while a write is pending or has failed, what counts as in flight, and throttling",
    ),
    "status": (
        "An acknowledgement is refused, all of it, unless the member has acquired every record.",
        "who owns a record after a write has failed or a lock has expired, and what a refusal takes back",
    ),
    "writes": (
        "Each change that is to last goes out in one write, with the SPSO from before it.",
        "which changes are written, and when: acquisitions, renewals and moves of the log start are not",
    ),
    "records": (
        "States, delivery counts and owners are what the commands and the answers to writes have made of them.",
        "what a write that fails restores, what expired meanwhile, and what the log start has archived",
    ),
    "next fetch offset": (
        "The next fetch begins with the lowest record that is available or that the leader before has left unknown.",
        "which releases, expiries and failed writes make a record available again",
    ),
    "start offset": (
        "The SPSO passes what is terminal once its write has succeeded, and nothing else.",
        "when the SPSO moves: after the answer to a write, not with it",
    ),
    "second answer": (
        "A second answer to a write changes nothing; it may be refused.",
        "what finds a write by its number",
    ),
}
"""What should be, and what to look at, by what is compared."""


class SharePartitionDiffersError(AssertionError):
    """A share partition does not do what the rules say."""

    def __init__(self, what: str, wanted: object, got: object, so_far: Iterable[Event]) -> None:
        """Say *what* differs, and what has led to it."""
        meaning, look_at = EXPLANATIONS[what]
        lines = [
            f"{what}: expected {wanted}, got {got}",
            f"  What should be: {meaning}",
            "  So far:",
            *(f"    {' '.join(map(str, event))}" for event in so_far),
            f"  Look at: {look_at}.",
        ]
        super().__init__("\n".join(lines))
        self.what = what


@cache
def _indexes(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


def _picker(draw: DrawFn) -> Pick:
    def pick(options: Sequence[Any]) -> Any:  # noqa: ANN401 - one of the options
        return options[draw(_indexes(len(options)))]

    return pick


@st.composite
def _settings(draw: DrawFn) -> PartitionSettings:
    pick = _picker(draw)
    return PartitionSettings(**{name: pick(values) for name, values in SMALL.items()})


@st.composite
def _events(draw: DrawFn) -> Event:
    machine: SharePartitionMachine = draw(st.runner())
    return machine.pick_event(_picker(draw))


class SharePartitionMachine(RuleBasedStateMachine):
    """
    One share partition in the hands of an adversary.

    The log has an endless number of records, one in each batch, from offset 0 on. Every write is held until
    ``answer_write``. Whatever a method raises fails the test, but for errors that have an error code as ``code`` where
    they are refusals.

    >>> class TestMySharePartition(SharePartitionMachine.TestCase): ...
    """

    follows: ClassVar[Rules] = Rules()
    """The rules: those of Kafka, unless it is said otherwise."""

    members: ClassVar[Sequence[str]] = ("m1", "m2")
    """The member ids."""

    # ---- to be implemented

    def start(self, settings: PartitionSettings, state: StoredState, leader_epoch: int) -> None:
        """Let a new leader take over, which has read *state*."""
        raise NotImplementedError

    def acquire(self, member: str, offsets: range, max_records: int) -> Iterable[Sequence[int]]:
        """Acquire from a fetch that has found *offsets*; return (first offset, last offset, delivery count)."""
        raise NotImplementedError

    def acknowledge(self, member: str, types: Mapping[int, AcknowledgeType]) -> int | None:
        """Acknowledge offsets, which ascend, in one request; return the error code of a refusal, or raise it."""
        raise NotImplementedError

    def release(self, member: str) -> None:
        """Release what *member* has: its session is closed."""
        raise NotImplementedError

    def advance_clock(self, ms: int) -> None:
        """Let time pass, and expire the locks that are over then; with 0 those that are due already."""
        raise NotImplementedError

    def take_writes(self) -> Iterable[Sequence[Any]]:
        """Return the writes since the last call: (number, start offset, batches of (first, last, state, count))."""
        raise NotImplementedError

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        """Report that a write has succeeded, or failed."""
        raise NotImplementedError

    # ---- to be implemented if there is such a thing

    def move_log_start(self, offset: int) -> None:
        """Take note that the log begins at *offset* now."""

    def next_fetch_offset(self) -> int:
        """Return where the next fetch begins."""
        raise NotImplementedError

    def start_offset(self) -> int:
        """Return the SPSO."""
        raise NotImplementedError

    def records(self) -> Mapping[int, tuple[Any, int, str]]:
        """Return state, delivery count and owner (or an empty string) of each record in flight."""
        raise NotImplementedError

    # ---- what happens

    def __init__(self) -> None:
        """Begin with nothing; the first rule starts the share partition."""
        super().__init__()
        self._has = frozenset(
            name
            for name in ("move_log_start", "next_fetch_offset", "start_offset", "records")
            if getattr(type(self), name) is not getattr(SharePartitionMachine, name)
        )
        self._coordinator = Coordinator()
        self._epoch = 0
        self._so_far: list[Event] = []
        self._model = RecordModel(self.follows)
        self._settings = PartitionSettings()
        self._numbers: dict[int, int] = {}
        self._events = PartitionEvents(self._model, self.members, self._has)

    @initialize(settings=_settings())
    def partition_starts(self, settings: PartitionSettings) -> None:
        """Start the share partition, of which nothing is in flight."""
        self._settings = settings
        self._take_over()

    @rule(event=_events())
    def happens(self, event: Event) -> None:
        """Let one of the following events happen: its name, and its arguments."""
        self._so_far.append(event)
        name, *arguments = event
        getattr(self, name)(*arguments)
        self._compare()

    def member_acquires(self, member: str, first: int, count: int, max_records: int) -> None:
        """Acquire from a fetch of *count* records."""
        offsets = range(first, first + count)
        batches = [[offset, offset] for offset in offsets]
        wanted = self._ask(
            "acquire", member=member, fetch_offset=first, batches=batches, max_records=max_records, batch_size=1
        )
        ranges = self.acquire(member, offsets, max_records)
        got = [(offset, count) for first, last, count in ranges for offset in range(first, last + 1)]
        self._expect("acquired", wanted, got)

    def member_acknowledges(self, member: str, types: Sequence[tuple[int, str]]) -> None:
        """Acknowledge offsets; it may be wrong of the member to do so."""
        batches = [[offset, offset, [int(AcknowledgeType[name])]] for offset, name in types]
        wanted = self._ask("acknowledge", member=member, batches=batches)
        got = self._acknowledged(member, {offset: AcknowledgeType[name] for offset, name in types})
        self._expect("status", "ok" if wanted == "pending" else wanted, got)

    def member_acknowledges_all(self, member: str, name: str) -> None:
        """Acknowledge all that a member has in the same way."""
        self.member_acknowledges(member, [(offset, name) for offset in self._events.held_by(member)])

    def member_leaves(self, member: str) -> None:
        """Close a member's session; the same member id may come back."""
        self._ask("release", member=member)
        self.release(member)

    def time_passes(self, ms: int) -> None:
        """Let time pass."""
        self._ask("advance", ms=ms)
        self.advance_clock(ms)

    def log_start_moves(self, offset: int) -> None:
        """Move the log start offset."""
        self._ask("log_start", offset=offset)
        self.move_log_start(offset)

    def write_is_answered(self, number: int, how: str) -> None:
        """Answer a write: it succeeds, fails, or is stored and reported as failed."""
        write = self._model.held[number]
        if how != "fails":
            self._coordinator.store(write.start_offset, write.records)
        self._ask("complete", write=number, answer="ok" if how == "succeeds" else {"error": "NOT_COORDINATOR"})
        self._events.answered.append(number)
        self.answer_write(self._numbers[number], succeeds=how == "succeeds")
        self.advance_clock(0)

    def write_is_answered_again(self, number: int, how: str) -> None:
        """Answer a write a second time."""
        self._model.writes = []
        try:
            self.answer_write(self._numbers[number], succeeds=how == "succeeds")
        except Exception as error:
            if not isinstance(getattr(error, "code", None), int):
                raise

    def leader_fails_over(self, arriving: Sequence[int]) -> None:
        """Let a new leader take over; of the writes on their way some arrive before it reads the state."""
        for number in arriving:
            write = self._model.held[number]
            self._coordinator.store(write.start_offset, write.records)
        self._take_over()

    def pick_event(self, pick: Pick) -> Event:
        """Pick the next event; an override may leave out what an implementation is not meant to bear."""
        return self._events.next(pick)

    # ---- behind the events

    def _take_over(self) -> None:
        state = self._coordinator.state()
        self._epoch += 1
        self._numbers = {}
        self._model = RecordModel(self.follows)
        self._model.default_answer = "hold"
        self._events = PartitionEvents(self._model, self.members, self._has)
        settings = self._settings
        config = {
            "delivery_count_limit": settings.delivery_count_limit,
            "record_lock_duration_ms": settings.lock_duration_ms,
            "max_record_locks": settings.max_record_locks,
        }
        answer = {"start_offset": state.start_offset, "state_batches": [list(batch) for batch in state.batches]}
        self._ask("open", config=config)
        self._ask("initialize", answer=answer)
        self.start(settings, state, self._epoch)

    def _ask(self, op: str, **fields: Any) -> Any:  # noqa: ANN401 - a result of the model
        return self._model.run({"op": op, **fields})

    def _acknowledged(self, member: str, types: Mapping[int, AcknowledgeType]) -> str:
        """Return the name of the error with which an acknowledgement is refused; ``ok`` if it is not."""
        try:
            code = int(self.acknowledge(member, types) or 0)
        except Exception as error:
            code = getattr(error, "code", None)  # type: ignore[assignment] # it is checked
            if not isinstance(code, int):
                raise
        return "ok" if code == 0 else next((each.name for each in ErrorCode if each == code), str(code))

    def _compare(self) -> None:
        """Compare the writes, and what the implementation shows."""
        self._compare_writes()
        model = self._model
        if "next_fetch_offset" in self._has:
            self._expect("next fetch offset", self._ask("next_fetch_offset"), self.next_fetch_offset())
        if "start_offset" in self._has:
            self._expect("start offset", model.start, self.start_offset())
        if "records" in self._has:
            wanted = {offset: in_words(record) for offset, record in sorted(model.records.items())}
            got = {o: (str(getattr(s, "name", s)), count, member) for o, (s, count, member) in self.records().items()}
            self._expect("records", wanted, got)

    def _compare_writes(self) -> None:
        wanted = [(write.start_offset, write.records) for write in self._model.writes]
        taken = list(self.take_writes())
        got = [(start, _by_record(batches)) for _, start, batches in taken]
        if self.follows.is_kip:  # what the KIP's writes contain is more than what has changed
            self._expect("writes", len(wanted), len(got))
        else:
            self._expect("writes", wanted, got)
        for write, (number, *_) in zip(self._model.writes, taken, strict=True):
            self._numbers[write.number] = number
        self._model.writes = []

    def _expect(self, what: str, wanted: object, got: object) -> None:
        if wanted != got:
            raise SharePartitionDiffersError(what, wanted, got, self._so_far)


def _by_record(batches: Iterable[Sequence[Any]]) -> dict[int, tuple[int, int]]:
    return {
        offset: (number_of(state), count) for first, last, state, count in batches for offset in range(first, last + 1)
    }
