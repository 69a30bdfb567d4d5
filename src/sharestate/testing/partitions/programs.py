"""
The search for a program of events that ends in a failure of a share partition, and how the program becomes short.

Hypothesis chooses the seed of a run and nothing else: to choose each event takes it four times as long as what happens
then, and to make a program short by leaving out choices takes minutes. Here events are left out. One that refers to a
write or to a dead letter names it by the event that led to it, so that the others may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import Factory, define
from hypothesis import Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sharestate.testing.partitions.events import Event, PartitionSettings, ReadState
from sharestate.testing.shrinking import Pass, shrunk, with_plainer_steps, without_pairs, without_ranges

MOST_EVENTS: Final = 8_000
"""How many events are run at most to make a program shorter: a few seconds for a leader in memory. [events]"""


SHORT: Final = 6
"""A program of that many events is short, the start included: no shorter one is looked for. [events]"""

MOST_SEEDS: Final = 100
"""How many other runs may lead to a shorter program. [runs]"""

MOST_OTHERS: Final = 4
"""How many other programs are made short. [programs]"""

_EVENTS: Final = "sharestate_events"
"""The attribute of an error that has the events that led to it."""


def add_events(error: Exception, events: Sequence[Event]) -> None:
    """Let *error* know the start, and the events that led to it."""
    vars(error)[_EVENTS] = events


def search(
    settings: hypothesis_settings,
    run: Callable[[int], None],
    replay: Replay,
    plain_settings: Mapping[str, Any],
    machine: str,
) -> None:
    """
    Search, and raise the error of the shortest program found that fails, with its text as a note.

    Args:
        settings: The number of runs, and whether programs are made short (``Phase.shrink``).
        run: Runs what a seed leads to; its error knows the events.
        replay: Runs steps.
        plain_settings: The plainest value of each setting that may be another one.
        machine: The name of the machine's class.
    """
    phases = [phase for phase in settings.phases if phase not in {Phase.shrink, Phase.explain}]

    @hypothesis_settings(settings, phases=phases, print_blob=False)
    @given(seed=st.integers(0, 2**24 - 1))  # of larger ones Hypothesis prefers the small ones
    def run_one(seed: int) -> None:
        run(seed)

    try:
        run_one()
    except Exception as error:
        events = vars(error).get(_EVENTS)
        found = shortest(events, replay, plain_settings) if events and Phase.shrink in settings.phases else None
        if found is None or found.error is None:
            raise
        found = _shorter_of_others(found, run, replay, plain_settings)
        failure = found.error or error
        failure.add_note(f"Failing test case: <state machine>\n{found.text(machine)}")
        raise failure from None


def _shorter_of_others(
    found: ProgramRun, run: Callable[[int], None], replay: Replay, plain_settings: Mapping[str, Any]
) -> ProgramRun:
    """Return *found*, or a shorter program that fails in the same way, from one of the first seeds; if it is long."""
    left = MOST_OTHERS
    for seed in range(MOST_SEEDS):
        if len(found.events) <= SHORT or not left:
            break
        try:
            run(seed)
        except Exception as error:  # noqa: BLE001 - whatever the implementation raises
            left -= 1
            other = shortest(vars(error).get(_EVENTS, ()), replay, plain_settings)
            if other and type(other.error) is type(found.error) and len(other.events) < len(found.events):
                found = other
    return found


class Origin(NamedTuple):
    """
    What led to a write, or to a dead letter.

    Attributes:
        step: The number of the step.
        place: Which one it is of those that the step led to.
    """

    step: int
    place: int


class ProgramStep(NamedTuple):
    """
    One event of a program.

    Attributes:
        number: The number that it keeps whatever is left out.
        event: The event; it refers to writes and dead letters by their origin.
    """

    number: int
    event: Event


@define
class _Names:
    """The writes, or the dead letters, of the leader of now: their numbers by their origins, and the reverse."""

    numbers: dict[Origin, int] = Factory(dict)
    origins: dict[int, Origin] = Factory(dict)

    def issued(self, step: int, numbers: range) -> None:
        for place, number in enumerate(numbers):
            origin = Origin(step, place)
            self.numbers[origin] = number
            self.origins[number] = origin


_ANSWERS: Final = {
    "write_is_answered": "write",
    "write_is_answered_again": "write",
    "dead_letter_is_answered": "dead letter",
    "dead_letter_is_answered_again": "dead letter",
}
"""The events that answer something, and what."""


@define
class References:
    """What the events of a program refer to, as far as the leader of now has issued it."""

    names: dict[str, _Names] = Factory(lambda: {"write": _Names(), "dead letter": _Names()})

    def issued(self, step: int, writes: range, dead_letters: range) -> None:
        """Note which writes and dead letters a step led to."""
        self.names["write"].issued(step, writes)
        self.names["dead letter"].issued(step, dead_letters)

    def named(self, event: Event) -> Event:
        """Return *event* with origins in the place of numbers."""
        return self._with(event, lambda kind, each: self.names[kind].origins.get(each, each))

    def numbered(self, event: Event) -> Event:
        """Return *event* with numbers in the place of origins; those that are not there now stay."""
        return self._with(event, lambda kind, each: self.names[kind].numbers.get(each, each))

    @staticmethod
    def _with(event: Event, other: Callable[[str, Any], Any]) -> Event:
        name, *arguments = event
        if name in _ANSWERS:
            return name, other(_ANSWERS[name], arguments[0]), *arguments[1:]
        if name == "leader_fails_over":
            return name, [other("write", each) for each in arguments[0]]
        return event


class ProgramRun(NamedTuple):
    """
    What has become of a program.

    Attributes:
        steps: The steps that were possible, up to a failure; the first one is the start.
        events: The same with the numbers of the leader.
        error: How the last one fails; None if it does not.
        leaders: The starts that would find what each further leader has found, by the index of the step.
    """

    steps: list[ProgramStep]
    events: list[Event]
    error: Exception | None
    leaders: dict[int, Event]

    def later_starts(self) -> Iterator[list[ProgramStep]]:
        """Go through the programs that begin with a further leader, the last one first."""
        for index, start in sorted(self.leaders.items(), reverse=True):
            yield [ProgramStep(self.steps[index].number, start), *self.steps[index + 1 :]]

    def text(self, machine: str) -> str:
        """Return the program as Hypothesis prints it: it runs when it is pasted."""
        (_, settings, log, state), *events = self.events
        lines = [
            f"state = {machine}()",
            f"state.partition_starts(settings={settings!r}, log={log!r}, state={state!r})",
            *(f"state.happens(event={event!r})" for event in events),
            "state.teardown()",
        ]
        return "\n".join(lines)


Replay: TypeAlias = Callable[[Sequence[ProgramStep]], ProgramRun]
"""A function that runs steps as far as they are possible, up to a failure."""


def shortest(events: Sequence[Event], replay: Replay, plain_settings: Mapping[str, Any]) -> ProgramRun | None:
    """
    Return the shortest program found that fails as *events* do; None if they do not fail when they are run again.

    Args:
        events: The start, and what has happened up to the failure.
        replay: Runs steps.
        plain_settings: The plainest value of each setting that may be another one.
    """
    found = replay([ProgramStep(number, event) for number, event in enumerate(events)])
    if found.error is None:
        return None
    kind, left = type(found.error), MOST_EVENTS

    def shows(candidate: list[ProgramStep]) -> ProgramRun | None:
        nonlocal left
        if left <= 0:
            return None
        run = replay(candidate)
        left -= len(run.steps)
        return run if type(run.error) is kind else None

    plainer: Pass[ProgramRun] = with_plainer_steps(lambda step: _smaller_steps(step, plain_settings))
    while True:
        before = found
        found = next(filter(None, map(shows, found.later_starts())), found)
        found = shrunk(found, shows, (without_ranges, plainer, without_pairs))
        lower = _from_zero(found.steps)
        found = (shows(lower) if lower != found.steps else None) or found
        if found.steps == before.steps:
            return found


def _from_zero(steps: list[ProgramStep]) -> list[ProgramStep]:
    """Return the same steps with lower offsets, of which the lowest that is acquired or stored is 0."""
    events = [step.event for step in steps]
    firsts = [batch[0] for _, _, _, state in events[:1] for batch in state.batches]
    firsts += [min(event[2], event[3][0][0]) for event in events if event[0] == "member_acquires"]
    less = min(firsts, default=0)
    return [ProgramStep(step.number, _lowered(step.event, less)) for step in steps]


def _lowered(event: Event, less: int) -> Event:
    """Return *event* with each offset lower by *less*, or 0."""
    match event:
        case ("partition_starts", settings, log, state):
            batches = tuple((first - less, last - less, *more) for first, last, *more in state.batches)
            return "partition_starts", settings, log, ReadState(max(0, state.start_offset - less), batches)
        case ("member_acquires", member, first, found, aborted, most):
            log_batches = [(begin - less, end - less, *more) for begin, end, *more in found]
            transactions = [(producer, max(0, begin - less)) for producer, begin in aborted]
            return "member_acquires", member, max(0, first - less), log_batches, transactions, most
        case ("member_acknowledges", member, ranges):
            return (
                "member_acknowledges",
                member,
                [(max(0, a - less), max(0, z - less), kinds) for a, z, kinds in ranges],
            )
        case ("log_start_moves" | "log_is_compacted" as name, offset):
            return name, max(0, offset - less)
        case _:
            return event


def _smaller_steps(step: ProgramStep, plain_settings: Mapping[str, Any]) -> Iterator[ProgramStep]:
    """Go through the plainer events that may stand in the place of one."""
    name, *arguments = step.event
    smaller = _SMALLER.get(name)
    if name == "partition_starts":
        yield from (
            ProgramStep(step.number, (name, *plainer)) for plainer in _plainer_starts(plain_settings, *arguments)
        )
    elif smaller is not None:
        yield from (ProgramStep(step.number, (name, *plainer)) for plainer in smaller(*arguments))


def _plainer_starts(
    plain_settings: Mapping[str, Any], settings: PartitionSettings, log: str, state: ReadState
) -> Iterator[Sequence[Any]]:
    if log != "single records":
        yield settings, "single records", state
    for name, plain in plain_settings.items():
        if getattr(settings, name) != plain:
            yield settings._replace(**{name: plain}), log, state
    for index in range(len(state.batches)):
        yield settings, log, state._replace(batches=state.batches[:index] + state.batches[index + 1 :])


def _plainer_fetches(
    member: str, first: int, batches: Sequence[Any], aborted: Sequence[Any], most: int
) -> Iterator[Sequence[Any]]:
    if most != _ALL:
        yield member, first, batches, aborted, _ALL
    for fewer in ([*batches[:-1]], [*batches[1:]]):
        if fewer:
            yield member, first, fewer, aborted, most
    if aborted:
        yield member, first, batches, [], most
    if first != batches[0][0]:
        yield member, batches[0][0], batches, aborted, most
    for index, (begin, end, *attributes) in enumerate(batches):
        if begin < end:
            yield member, first, [*batches[:index], (begin, begin, *attributes), *batches[index + 1 :]], aborted, most


def _plainer_acknowledgements(member: str, ranges: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for index, (first, last, names) in enumerate(ranges):
        if len(ranges) > 1:
            yield member, [*ranges[:index], *ranges[index + 1 :]]
        if list(names) != ["ACCEPT"]:
            yield member, [*ranges[:index], (first, last, ["ACCEPT"]), *ranges[index + 1 :]]
        if len(names) > 1:
            yield member, [*ranges[:index], (first, last, [names[0]]), *ranges[index + 1 :]]


def _plainer_answers(number: Any, how: str) -> Iterator[Sequence[Any]]:  # noqa: ANN401 - an origin
    if how != "succeeds":
        yield number, "succeeds"
    if how == "is lost":
        yield number, "fails"


_ALL: Final = 500
"""As many records as there are. [records]"""

_SMALLER: Final[Mapping[str, Callable[..., Iterator[Sequence[Any]]]]] = {
    "member_acquires": _plainer_fetches,
    "member_acknowledges": _plainer_acknowledgements,
    "member_acknowledges_all": lambda member, name: iter([(member, "ACCEPT")] if name != "ACCEPT" else []),
    "write_is_answered": _plainer_answers,
    "leader_fails_over": lambda arriving: iter([([],)] if arriving else []),
}
