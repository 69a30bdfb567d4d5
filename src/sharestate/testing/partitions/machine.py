"""
A test of share partitions, the leader's side: inherit ``SharePartitionMachine`` and implement a few methods.

It is a state machine of Hypothesis (extra ``testing``). Members acquire and acknowledge, and an adversary has the rest
in its hands: writes fail, hang, are answered late, out of order or twice; locks expire while a write is on its way; the
log start moves into what is in flight; fetches find other batches, or fewer, than before; the leader fails over in the
middle of a write. After every event each result, each write and each record is compared with an independent model of
the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import initialize, rule
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.partitions needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.error_codes import ErrorCode
from sharestate.testing.coroutines import CoroutineRunner
from sharestate.testing.partitions.adapter import OPTIONAL, SharePartitionAdapter
from sharestate.testing.partitions.differences import KAFKA_BUGS, SharePartitionDiffersError
from sharestate.testing.partitions.event_checks import EVENT_CHECKS
from sharestate.testing.partitions.events import (
    CHOICES,
    CONFIGURED,
    SMALL,
    Coordinator,
    Event,
    EventPicker,
    PartitionSettings,
    Pick,
    ReadState,
    by_record,
    in_words,
    kinds_of_a_run,
    name_of,
    stored_state,
)
from sharestate.testing.partitions.log import LogBatch, PartitionLog, in_json, record_batch
from sharestate.testing.partitions.programs import References, passes
from sharestate.testing.partitions.situations import situations
from sharestate.testing.program_machine import ProgramMachine
from sharestate.testing.programs import ProgramPass, ProgramRun, ProgramStep
from sharestate.testing.record_model.model import RecordModel
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.records import AbortedTransaction

_NOTHING_STORED: Final = ReadState()

RUNS: Final = 1_600
"""Runs of a search at least, but sixteen for each example of the profile at most: they are short."""


@cache
def _indexes(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


def _picker(draw: DrawFn) -> Pick:
    def pick(options: Sequence[Any]) -> Any:  # noqa: ANN401 - one of the options
        return options[draw(_indexes(len(options)))]

    return pick


@st.composite
def _settings(draw: DrawFn) -> PartitionSettings:
    machine: SharePartitionMachine = draw(st.runner())
    return machine.pick_settings(_picker(draw))


@st.composite
def _logs(draw: DrawFn) -> str:
    machine: SharePartitionMachine = draw(st.runner())
    return str(_picker(draw)(machine.logs))


@st.composite
def _states(draw: DrawFn) -> ReadState:
    machine: SharePartitionMachine = draw(st.runner())
    return machine.pick_state(_picker(draw))


@st.composite
def _events(draw: DrawFn) -> Event:
    machine: SharePartitionMachine = draw(st.runner())
    return machine.pick_event(_picker(draw))


class SharePartitionMachine(SharePartitionAdapter, ProgramMachine):
    """
    One share partition in the hands of an adversary.

    The log goes on for ever. Every write is held until ``answer_write``, and so is what goes to the dead-letter queue,
    until ``answer_dead_letter``. A method may be a coroutine: all of a machine run in one event loop. Whatever a method
    raises fails the test, but for errors that have an error code as ``code`` where they are refusals.

    A setting that is set as a class attribute is as it says; the others are drawn, small ones first. All of them go to
    ``start``.

    >>> class TestMySharePartition(SharePartitionMachine.TestCase): ...
    """

    _runs = RUNS
    _runs_for_an_example = 16
    _door = "partitions"
    _event_checks = EVENT_CHECKS
    _start = "partition_starts"
    _start_arguments = ("settings", "log", "state")

    def __init__(self) -> None:
        """Begin with nothing; the first rule starts the share partition."""
        super().__init__()
        self._has = frozenset(
            name for name in OPTIONAL if getattr(type(self), name) is not getattr(SharePartitionAdapter, name)
        )
        self._runner = CoroutineRunner()
        self._coordinator = Coordinator()
        self._log = PartitionLog()
        self._epoch = 0
        self._so_far: list[Event] = []
        self._starts: list[Event] = []
        self._settings = PartitionSettings()
        self._choices: Sequence[str] = CHOICES
        self._has_ended = False
        self._begin()

    def _begin(self) -> None:
        """Forget what is in flight."""
        self._model = RecordModel(self.follows, default_answer="hold", default_letter_answer="hold")
        self._numbers: dict[int, int] = {}
        self._letters: dict[int, int] = {}
        changeable = frozenset(name for name in CONFIGURED if self._declared()[name] is None)
        self._events = EventPicker(
            self._model, self._log, self._settings, self.members, self._has, changeable, self._choices
        )
        self._references = References()

    # ---- what happens

    @initialize(settings=_settings(), log=_logs(), state=_states())
    def partition_starts(
        self, settings: PartitionSettings, log: str = "single records", state: ReadState = _NOTHING_STORED
    ) -> None:
        """Start the share partition, of which *state* is stored; *log* is what fetches will find."""
        self._settings, self._log = settings, PartitionLog(log)
        self._coordinator = Coordinator.of(state)
        with self._failing():
            self._take_over()
            self._compare()

    @rule(event=_events())
    def happens(self, event: Event) -> None:
        """Let one of the following events happen: its name, and its arguments."""
        if self._has_ended:
            return
        for noted in (event[0], *situations(self._model, event)):
            self.note(noted)
        self._so_far.append(event)
        name, *arguments = event
        with self._failing():
            getattr(self, name)(*arguments)
            self._compare()
        self._has_ended = self._shows_copied_bug()

    def _shows_copied_bug(self) -> bool:
        return not self._model.met.isdisjoint(self.copied_bugs)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Let a bug of Kafka that is copied end the run."""
        try:
            yield
        except Exception:
            if not self._shows_copied_bug():
                raise
            self._has_ended = True

    def member_acquires(
        self, member: str, first: int, batches: Sequence[LogBatch], aborted: Sequence[tuple[int, int]], most: int
    ) -> None:
        """Acquire *most* records from a fetch of offset *first*."""
        isolation, mode = self._settings.isolation_level, self._settings.acquire_mode
        wanted = self._ask(
            "acquire",
            member=member,
            fetch_offset=first,
            batches=[in_json(batch) for batch in batches],
            aborted=aborted,
            isolation=isolation,
            mode=mode,
            max_records=most,
            batch_size=self._settings.batch_size,
        )
        fetched = FetchedRecords(
            fetch_offset=first,
            batches=[record_batch(*batch) for batch in batches],
            aborted_transactions=[AbortedTransaction(*transaction) for transaction in aborted],
            isolation=IsolationLevel(isolation),
        )
        ranges = self._call(self.acquire, member, fetched, most)
        got = [(offset, count) for first, last, count in ranges for offset in range(first, last + 1)]
        self._expect("acquired", wanted, got)

    def member_acknowledges(self, member: str, ranges: Sequence[tuple[int, int, Sequence[str]]]) -> None:
        """Acknowledge ranges, with one type for all offsets or one for each; it may be wrong of the member to do so."""
        batches = [AcknowledgementBatch(a, z, tuple(AcknowledgeType[name] for name in names)) for a, z, names in ranges]
        asked = [[first, last, list(map(int, types))] for first, last, types in batches]
        wanted = self._ask("acknowledge", member=member, batches=asked)
        self._expect("status", "ok" if wanted == "pending" else wanted, self._acknowledged(member, batches))

    def member_acknowledges_all(self, member: str, name: str) -> None:
        """Acknowledge all that a member has in the same way."""
        self.member_acknowledges(member, [(first, last, [name]) for first, last in self._events.held_by(member)])

    def member_leaves(self, member: str) -> None:
        """Close a member's session; the same member id may come back."""
        self._ask("release", member=member)
        self._call(self.release, member)

    def time_passes(self, ms: int) -> None:
        """Let time pass."""
        self._ask("advance", ms=ms)
        self._call(self.advance_clock, ms)

    def log_start_moves(self, offset: int) -> None:
        """Move the log start offset."""
        self._ask("log_start", offset=offset)
        self._call(self.move_log_start, offset)

    def group_is_configured(self, name: str, value: Any) -> None:  # noqa: ANN401 - of a setting
        """Change one setting of the group."""
        self._settings = self._events.settings = self._settings._replace(**{name: value})
        self._ask("configure", config=self._settings.config())
        self._call(self.configure, self._settings)

    def log_is_compacted(self, first: int) -> None:
        """Let the log lose the batch that begins at *first*; only fetches show it."""
        self._log.removed.add(first)

    def write_is_answered(self, number: int, how: str) -> None:
        """Answer a write: it succeeds, fails, or is stored and reported as failed."""
        write = self._model.held[number]
        if how != "fails":
            self._coordinator.store(write.start_offset, write.records)
        self._ask("complete", write=number, answer="ok" if how == "succeeds" else {"error": "NOT_COORDINATOR"})
        self._events.answered.append(("write", number))
        self._call(self.answer_write, self._numbers[number], succeeds=how == "succeeds")
        self._call(self.advance_clock, 0)

    def write_is_answered_again(self, number: int, how: str) -> None:
        """Answer a write a second time."""
        self._again(self.answer_write, self._numbers[number], succeeds=how == "succeeds")

    def dead_letter_is_answered(self, number: int, how: str) -> None:
        """Let the dead-letter queue take records, or fail to."""
        self._ask("complete", dlq=number, answer="ok" if how == "taken" else {"error": "INVALID_CONFIG"})
        self._events.answered.append(("dead letter", number))
        self._call(self.answer_dead_letter, self._letters[number], succeeds=how == "taken")

    def dead_letter_is_answered_again(self, number: int, how: str) -> None:
        """Let the dead-letter queue answer a second time."""
        self._again(self.answer_dead_letter, self._letters[number], succeeds=how == "taken")

    def leader_fails_over(self, arriving: Sequence[int]) -> None:
        """Let a new leader take over; of the writes on their way some arrive before it reads the state."""
        for number in arriving:
            write = self._model.held[number]
            self._coordinator.store(write.start_offset, write.records)
        self._take_over()

    def teardown(self) -> None:
        """Clean up."""
        try:
            if self._epoch:
                self._call(self.stop)
        finally:
            self._runner.close()

    # ---- what may happen next

    def pick_state(self, pick: Pick) -> ReadState:
        """Pick what is stored when the first leader takes over."""
        return stored_state(pick)

    def pick_settings(self, pick: Pick) -> PartitionSettings:
        """Pick the settings: those that are declared, the others small."""
        declared = self._declared()
        picked = {name: pick(small) if declared[name] is None else declared[name] for name, small in SMALL.items()}
        return PartitionSettings(**picked)

    def pick_event(self, pick: Pick) -> Event:
        """Pick the next event; an override may leave out what an implementation is not meant to bear."""
        return self._events.next(pick)

    # ---- behind the events

    def _declared(self) -> dict[str, Any]:
        """Return the settings that are not drawn; the others are None."""
        declared: dict[str, Any] = {name: getattr(self, name, None) for name in SMALL}
        if "take_dead_letters" not in self._has or self.follows.is_kip or not self.follows.has_dead_letters:
            declared["has_dead_letter_queue"] = False
        return declared

    def _take_over(self) -> None:
        state = self._coordinator.state()
        self._starts.append(("partition_starts", self._settings, self._log.name, state))
        self._epoch += 1
        self._begin()
        self._ask("open", config=self._settings.config())
        batches = [list(batch) for batch in state.batches]
        self._ask("initialize", answer={"start_offset": state.start_offset, "state_batches": batches})
        self._call(self.start, self._settings, state, self._epoch)

    def _ask(self, op: str, **fields: Any) -> Any:  # noqa: ANN401 - a result of the model
        return self._model.run({"op": op, **fields})

    def _call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401 - what users return
        return self._runner.result_of(method(*args, **named))

    def _again(self, method: Callable[..., Any], number: int, *, succeeds: bool) -> None:
        """Answer a second time, which may be refused."""
        self._model.writes, self._model.letters = [], []
        try:
            self._call(method, number, succeeds=succeeds)
        except Exception as error:
            if not isinstance(getattr(error, "code", None), int):
                raise

    def _acknowledged(self, member: str, batches: Sequence[AcknowledgementBatch]) -> str:
        """Return the name of the error with which an acknowledgement is refused; ``ok`` if it is not."""
        try:
            code = int(self._call(self.acknowledge, member, batches) or 0)
        except Exception as error:
            code = getattr(error, "code", None)  # type: ignore[assignment] # it is checked
            if not isinstance(code, int):
                raise
        return "ok" if code == 0 else next((each.name for each in ErrorCode if each == code), str(code))

    def _compare(self) -> None:
        """Compare the writes, and what the implementation shows."""
        model = self._model
        self._compare_writes()
        if "take_dead_letters" in self._has:
            self._compare_dead_letters()
        if "next_fetch_offset" in self._has:
            self._expect("next fetch offset", self._ask("next_fetch_offset"), self._call(self.next_fetch_offset))
        if "can_acquire" in self._has:
            self._expect("room", self._ask("can_acquire"), self._call(self.can_acquire))
        if "start_offset" in self._has:
            self._expect("start offset", model.start, self._call(self.start_offset))
        if "records" in self._has:
            wanted = {offset: in_words(record) for offset, record in sorted(model.records.items())}
            shown = self._call(self.records)
            got = {offset: (name_of(state), count, member) for offset, (state, count, member) in shown.items()}
            self._expect("records", wanted, got)

    def _compare_writes(self) -> None:
        wanted = [(write.start_offset, write.records) for write in self._model.writes]
        taken = list(self._call(self.take_writes))
        got = [(start, by_record(batches)) for _, start, batches, *_ in taken]
        if self.follows.is_kip:  # what the KIP's writes contain is more than what has changed
            self._expect("writes", len(wanted), len(got))
            for write, (start, records) in zip(self._model.writes, got, strict=True):
                flaw = self._model.flaw(write, start, records) if isinstance(records, dict) else f"twice: {records}"
                self._expect("writes", "no flaw", flaw or "no flaw")
        else:
            self._expect("writes", wanted, got)
        for write, (number, _, _, *count) in zip(self._model.writes, taken, strict=True):
            self._numbers[write.number] = number
            if count:
                self._expect("delivery complete count", write.complete, count[0])
        self._model.writes = []

    def _compare_dead_letters(self) -> None:
        letters = self._model.letters
        taken = list(self._call(self.take_dead_letters))
        got = [(first, last, count, str(getattr(cause, "value", cause))) for _, first, last, count, cause in taken]
        self._expect("dead letters", [(each.first, each.last, each.count, each.cause) for each in letters], got)
        for number, (theirs, *_) in enumerate(taken, start=self._model.handed_over - len(letters)):
            self._letters[number] = theirs
        self._model.letters = []

    def _expect(self, what: str, wanted: object, got: object) -> None:
        if wanted != got:
            raise SharePartitionDiffersError(what, wanted, got, self._so_far)

    # ---- the search

    def __init_subclass__(cls, **named: Any) -> None:  # noqa: ANN401 - what the base class takes
        """
        Run more often than the profile of Hypothesis says, unless ``TestCase.settings`` is set afterwards.

        Raises:
            ValueError: *copied_bugs* has an id that is not in ``KAFKA_BUGS``.
        """
        if unknown := set(cls.copied_bugs) - KAFKA_BUGS.keys():
            message = f"{cls.__name__}.copied_bugs: {sorted(unknown)} are none of {', '.join(KAFKA_BUGS)}"
            raise ValueError(message)
        super().__init_subclass__(**named)

    def _happens_at_random(self, pick: Pick, count: int) -> None:
        self._choices = kinds_of_a_run(pick)
        self.partition_starts(self.pick_settings(pick), pick(self.logs), self.pick_state(pick))
        for _ in range(count):
            self.happens(self.pick_event(pick))

    @property
    def _program(self) -> list[Event]:
        return [*self._starts[:1], *self._so_far]

    @classmethod
    def _passes(cls) -> Sequence[ProgramPass]:
        return passes({name: small[0] for name, small in SMALL.items() if getattr(cls, name, None) is None})

    def _numbered(self, event: Event) -> Event | None:
        numbered = self._references.numbered(event)
        return numbered if self._events.is_possible(numbered) else None

    def _named(self, event: Event) -> Event:
        return self._references.named(event)

    def _run(self, number: int, event: Event) -> None:
        name, *arguments = event
        writes, letters = self._model.issued, self._model.handed_over
        if name == "partition_starts":
            self.partition_starts(*arguments)
        else:
            self.happens(event)
        if name in {"partition_starts", "leader_fails_over"}:
            writes = letters = 0
        self._references.issued(number, range(writes, self._model.issued), range(letters, self._model.handed_over))

    def _later(self, run: ProgramRun) -> Sequence[list[ProgramStep]]:
        """Return the programs that begin with a further leader, the last one first."""
        further = (index for index, event in enumerate(run.events) if event[0] == "leader_fails_over")
        found = zip(further, self._starts[1:], strict=False)  # the last one may not have come so far
        return [[ProgramStep(run.steps[at].number, start), *run.steps[at + 1 :]] for at, start in found][::-1]
