"""
A test of persisters with random requests: inherit ``PersisterMachine`` and say how a persister is made.

It is a state machine of Hypothesis (extra ``testing``). Leaders and group coordinators initialize, read, write and
delete the state of several share partitions, with epochs that are too low, batches that overlap and several share
partitions in one request; the persister is closed and opened again. Each answer, and at the end all that is stored, is
compared with an independent model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import groupby, product
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeVar

try:
    from hypothesis import settings as hypothesis_settings
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, TestCaseProperty, rule
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.persisters needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorProfile
from sharestate.error_codes import ErrorCode
from sharestate.persister.protocol import Persister
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionIdData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
    WriteStateParameters,
)
from sharestate.testing.persisters.model import NONE_YET, Batch, PersisterModel, PersisterRules, Place, as_ranges
from sharestate.testing.thorough import PHASES
from sharestate.values.requests import StateBatch

__all__ = ["EXPLANATIONS", "PersisterDiffersError", "PersisterMachine"]

T = TypeVar("T")
Event = tuple[Any, ...]
"""The name of a method of the machine, and its arguments."""

RUNS: Final = 400
"""Runs by default, four for each example of a profile that has fewer of them: more than half repeat most of another."""

CHOICES: Final = 60
"""Choices that an event takes, at most; each is a byte, since nothing has more options than that. [bytes]"""

STEPS: Final = 20
"""Events in a run, at most: few of them bring about what many do."""

TOPIC: Final = "dGhlIHRvcGljJ3MgaWQhIQ"
OTHER_TOPIC: Final = "YW5vdGhlciB0b3BpYydzIQ"
PLACES: Final[Sequence[Place]] = (
    ("orders", TOPIC, 0),
    ("orders", TOPIC, 256),
    ("orders", OTHER_TOPIC, 0),
    ("payments", TOPIC, 0),
)
"""The share partitions: any two of them differ in partition, topic or group; 256 is not 0 in a byte either."""

EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "answers": (
            "Every entry of a request has an answer with an error code of its own.",
            "what is compared with the stored epochs, in which order, and whether one refusal ends a whole request",
        ),
        "state": (
            "A read finds what confirmed writes add up to, record by record, and the state epoch.",
            "how batches that overlap are cut and combined, what a start offset drops, and what is stored for good",
        ),
        "summary": (
            "A summary has the start offset, both epochs and the delivery complete count.",
            "which requests change an epoch or the delivery complete count, and what is stored for good",
        ),
    }
)
"""What should be, and what to look at, by what is compared."""


_CHOICES: Final[SearchStrategy[bytes]] = st.binary(min_size=CHOICES, max_size=CHOICES)


class PersisterDiffersError(AssertionError):
    """A persister does not do what the contract says."""

    def __init__(self, what: str, where: str, wanted: object, got: object, so_far: Iterable[Event]) -> None:
        """Say *what* differs, and what led to it."""
        meaning, look_at = EXPLANATIONS[what]
        lines = [
            f"{what} {where}: expected {wanted}, got {got}",
            f"  What should be: {meaning}",
            "  So far:",
            *(f"    {' '.join(map(str, event))}" for event in so_far),
            f"  Look at: {look_at}.",
        ]
        super().__init__("\n".join(lines))
        self.what = what


@st.composite
def _events(draw: DrawFn) -> Event:
    """Return an event that one value decides: Hypothesis leaves out values, so a whole event is left out at once."""
    machine: PersisterMachine = draw(st.runner())
    choices = iter(draw(_CHOICES))

    def pick(options: Sequence[T]) -> T:
        return options[next(choices, 0) % len(options)]

    return machine.pick_event(pick)


class PersisterMachine(RuleBasedStateMachine):
    """
    A persister and what is asked of it.

    ``make_persister`` returns a new one, in which none of the share partitions is initialized. If anything is to
    outlast it, ``reopen`` closes it and returns another one over what it has stored.

    >>> class TestMyPersister(PersisterMachine.TestCase): ...
    """

    follows: ClassVar[CoordinatorProfile] = LATEST_COORDINATOR
    """Whose rules the persister follows where releases of Kafka differ."""

    timeout_s: ClassVar[float] = 30.0
    """The longest time that an answer may take. [s]"""

    # ---- to be implemented

    def make_persister(self) -> Persister:
        """Return a new persister that stores nothing yet."""
        raise NotImplementedError

    def reopen(self, persister: Persister) -> Persister:
        """Close *persister*, and return another one over what it has stored; if there is such a thing."""
        raise NotImplementedError

    def wait(self, future: Future[T]) -> T:
        """Return what *future* ends with; override it if somebody has to be polled for that."""
        return future.result(timeout=self.timeout_s)

    def stop(self, persister: Persister) -> None:
        """Clean up; called once, at the end."""

    # ---- what happens

    def __init_subclass__(cls, **named: Any) -> None:  # noqa: ANN401 - what the base class takes
        """Run more often than the profile of Hypothesis says, and shorter; ``TestCase.settings`` may be set again."""
        super().__init_subclass__(**named)
        case = TestCaseProperty().__get__(None, cls)
        cls.TestCase = case  # type: ignore[assignment] # Hypothesis forgets it once it has 128 others
        profile = case.settings
        case.settings = hypothesis_settings(
            profile,
            max_examples=max(profile.max_examples, min(RUNS, 4 * profile.max_examples)),
            stateful_step_count=STEPS,
            phases=set(profile.phases) & set(PHASES),
        )

    def __init__(self) -> None:
        """Begin with a new persister, in which a leader with epoch 2 has read the first share partition."""
        super().__init__()
        rules = PersisterRules(
            moves_back=self.follows.lets_start_offset_move_back, takes_any_count=self.follows.takes_any_complete_count
        )
        self._model = PersisterModel(rules)
        self._so_far: list[Event] = []
        self._persister = self.make_persister()
        self._is_over = False
        self.initializes([(PLACES[0], 1, 10)])
        self.reads([(PLACES[0], 2)])

    @rule(event=_events())
    def happens(self, event: Event) -> None:
        """Let one of the following events happen: its name, and its arguments."""
        self._so_far.append(event)
        name, *arguments = event
        self._is_over = True
        getattr(self, name)(*arguments)
        self._is_over = False

    def initializes(self, entries: Sequence[tuple[Place, int, int]]) -> None:
        """Initialize share partitions, each with its state epoch and start offset."""
        request = _request(
            InitializeStateParameters,
            [
                (place, PartitionStateData(partition=place[2], state_epoch=epoch, start_offset=start))
                for place, epoch, start in entries
            ],
        )
        wanted = [self._model.initialize(*entry) for entry in entries]
        self._compare_codes([entry[0] for entry in entries], wanted, self._persister.initialize_state, request)

    def reads(self, entries: Sequence[tuple[Place, int]]) -> None:
        """Read share partitions, each as a leader with its epoch."""
        wanted = [self._model.read(*entry) for entry in entries]
        for (place, _), code, answer in zip(entries, wanted, self._read(entries), strict=True):
            self._expect("answers", f"to the read of {place}", _name(code), _name(answer.error_code))
            if code == ErrorCode.NONE:
                state = self._model.stored[place]
                expected = state.state_epoch, state.start_offset, as_ranges(state.records)
                got = answer.state_epoch, answer.start_offset, self._ranges(place, answer.state_batches)
                self._expect("state", f"of {place}", expected, got)

    def writes(self, entries: Sequence[tuple[Place, tuple[int, int], int, int, Sequence[Batch]]]) -> None:
        """Write: (place, (leader epoch, state epoch), start offset, delivery complete count, batches) for each."""
        request = _request(WriteStateParameters, [(entry[0], _change(*entry)) for entry in entries])
        wanted = [self._model.write(*entry) for entry in entries]
        self._compare_codes([entry[0] for entry in entries], wanted, self._persister.write_state, request)

    def sums(self, place: Place, leader_epoch: int) -> None:
        """Ask for the summary of a share partition."""
        entry = PartitionIdLeaderEpochData(partition=place[2], leader_epoch=leader_epoch)
        result = self.wait(self._persister.read_summary(_request(ReadSummaryParameters, [(place, entry)])))
        answer: Any = self._answers(result, [place])[0]
        state = self._model.stored.get(place)
        expected = (NONE_YET, 0, 0) if state is None else (state.start_offset, state.leader_epoch, state.state_epoch)
        is_read = state is None or state.is_read  # an initialization may leave the leader epoch in the summary or not
        got = answer.start_offset, answer.leader_epoch if is_read else expected[1], answer.state_epoch
        self._expect("summary", f"of {place}", ("NONE", *expected), (_name(answer.error_code), *got))
        count = answer.delivery_complete_count
        if state is None or state.complete_count is None:  # nothing was counted yet: 0, or -1 for none
            self._expect("summary", f"of {place}, delivery complete count", min(0, count), max(NONE_YET, count))
        else:
            self._expect("summary", f"of {place}, delivery complete count", state.complete_count, count)

    def deletes(self, places: Sequence[Place]) -> None:
        """Delete share partitions."""
        request = _request(DeleteStateParameters, [(place, PartitionIdData(partition=place[2])) for place in places])
        wanted = [self._model.delete(place) for place in places]
        self._compare_codes(places, wanted, self._persister.delete_state, request)

    def is_reopened(self) -> None:
        """Close the persister, and open another one over what it has stored."""
        self._persister = self.reopen(self._persister)

    def teardown(self) -> None:
        """Compare all that is stored."""
        try:
            for place in () if self._is_over else PLACES:
                state = self._model.stored.get(place)
                self.sums(place, 0)
                self.reads([(place, 0 if state is None else state.leader_epoch)])
        finally:
            self.stop(self._persister)

    def pick_event(self, pick: Callable[[Sequence[Any]], Any]) -> Event:
        """Pick the next event; an override may leave out what a persister is not meant to bear."""
        has_reopen = type(self).reopen is not PersisterMachine.reopen
        name = pick(("writes", "writes", "writes", "reads", "initializes", "is_reopened", "deletes", "sums"))
        if name == "is_reopened":
            return ("is_reopened",) if has_reopen else ("sums", PLACES[0], 0)
        places = pick(_TOGETHER)
        if name == "deletes":
            return name, places
        if name == "sums":
            return name, places[0], pick((0, 3))
        return name, [(place, *getattr(self, f"_pick_{name}")(pick, place)) for place in places]

    # ---- arguments

    def _pick_initializes(self, pick: Callable[[Sequence[Any]], Any], place: Place) -> Event:
        state = self._model.stored.get(place)
        epoch = 1 if state is None else state.state_epoch
        return pick((epoch, epoch + 1, max(0, epoch - 1))), pick((10, NONE_YET, 12, 0))

    def _pick_reads(self, pick: Callable[[Sequence[Any]], Any], place: Place) -> Event:
        state = self._model.stored.get(place)
        epoch = 0 if state is None else state.leader_epoch
        return (pick((epoch, epoch + 1, max(0, epoch - 1))),)

    def _pick_writes(self, pick: Callable[[Sequence[Any]], Any], place: Place) -> Event:
        state = self._model.stored.get(place)
        leader, epoch, start = (
            (0, 0, 10) if state is None else (state.leader_epoch, state.state_epoch, state.start_offset)
        )
        epochs = pick(
            ((leader, epoch),) * 4 + ((max(0, leader - 1), epoch), (leader, max(0, epoch - 1)), (leader + 1, epoch + 1))
        )
        low = max(10, start)
        start_offset = pick((NONE_YET, low, low + 1, low + 2, low - 1, 0))
        batches, first = [], low + pick((0, 1, 2, 3)) - 1
        for _ in range(pick((1, 2, 3, 0, 12))):
            size, state_number, count, gap = pick(_BATCHES)
            batches.append((first, first + size - 1, state_number, count))
            first += size + gap
        complete_count = pick((NONE_YET, 0, 2, 5))
        if start == start_offset == NONE_YET:  # whether one without a start offset counts is open then
            complete_count = NONE_YET
        return epochs, start_offset, complete_count, batches

    # ---- answers

    def _compare_codes(
        self,
        places: Sequence[Place],
        wanted: Sequence[int],
        send: Callable[[Any], Future[Any]],
        request: Any,  # noqa: ANN401
    ) -> None:
        answers = self._answers(self.wait(send(request)), places)
        got = [_name(answer.error_code) for answer in answers]
        self._expect("answers", f"to {type(request).__name__}", [_name(code) for code in wanted], got)

    def _read(self, entries: Sequence[tuple[Place, int]]) -> list[Any]:
        named = [
            (place, PartitionIdLeaderEpochData(partition=place[2], leader_epoch=epoch)) for place, epoch in entries
        ]
        result = self.wait(self._persister.read_state(_request(ReadStateParameters, named)))
        return self._answers(result, [place for place, _ in entries])

    def _answers(self, result: Result[Any], places: Sequence[Place]) -> list[Any]:
        answers = [result.find(topic_id, partition) for _, topic_id, partition in places]
        for place, answer in zip(places, answers, strict=True):
            if answer is None:
                self._expect("answers", f"about {place}", "an answer", None)
        return answers

    def _ranges(self, place: Place, batches: Sequence[StateBatch]) -> list[Batch]:
        records: dict[int, tuple[int, int]] = {}
        last_offset = NONE_YET
        for first, last, state, count in batches:
            if first <= last_offset:
                self._expect("state", f"of {place}", "batches in ascending order that do not overlap", [*batches])
            last_offset = last
            records.update(dict.fromkeys(range(first, last + 1), (int(state), count)))
        return as_ranges(records)

    def _expect(self, what: str, where: str, wanted: object, got: object) -> None:
        if wanted != got:
            self._is_over = True
            raise PersisterDiffersError(what, where, wanted, got, self._so_far)


_BATCHES: Final = tuple(product((1, 2, 4), (2, 0, 4, 3), (1, 0, 2, 3, 300), (0, 1)))
"""Size, state and delivery count of a batch, and how far it is from the next one."""

_TOGETHER: Final = tuple(
    [PLACES[index] for index in indexes]
    for indexes in ((0,), (0,), (0,), (0,), (1,), (2,), (3,), (0, 1), (2, 0), (1, 0, 2))
)
"""The share partitions that one request names, all of one group."""


def _request(kind: type[Parameters[Any, Any]], entries: Iterable[tuple[Place, Any]]) -> Any:  # noqa: ANN401 - of *kind*
    """Return a request of *kind* with *entries*, which are of one group."""
    listed = list(entries)
    topics = tuple(
        TopicData(topic_id=topic_id, partitions=tuple(entry for _, entry in found))
        for topic_id, found in groupby(listed, key=lambda each: each[0][1])
    )
    return kind(group_id=listed[0][0][0], topics=topics)


def _change(
    place: Place, epochs: tuple[int, int], start_offset: int, complete_count: int, batches: Sequence[Batch]
) -> PartitionStateBatchData:
    return PartitionStateBatchData(
        partition=place[2],
        leader_epoch=epochs[0],
        state_epoch=epochs[1],
        start_offset=start_offset,
        delivery_complete_count=complete_count,
        state_batches=tuple(StateBatch(*batch) for batch in batches),
    )


def _name(code: int) -> str:
    return next((each.name for each in ErrorCode if each == code), str(code))
