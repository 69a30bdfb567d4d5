"""
The programs of events of a share partition: what their events refer to, and how they become shorter and plainer.

An event that answers a write or a dead letter names it by the event that led to it, so that others may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, define

from sharestate.testing.partitions.events import Event, PartitionSettings, ReadState
from sharestate.testing.programs import Origin, ProgramPass, ProgramRun, ProgramStep
from sharestate.testing.shrinking import Shows, with_plainer_steps, without_pairs, without_ranges


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


def passes(plain_settings: Mapping[str, Any]) -> Sequence[ProgramPass]:
    """
    Return what makes programs shorter or plainer.

    Args:
        plain_settings: The plainest value of each setting that may be another one.
    """
    plainer: ProgramPass = with_plainer_steps(lambda step: _smaller_steps(step, plain_settings))
    return _beginning_later, without_ranges, plainer, without_pairs, _with_lower_offsets


def _beginning_later(shown: ProgramRun, shows: Shows[ProgramRun]) -> ProgramRun:
    """Begin with what a further leader has found."""
    return next(filter(None, map(shows, shown.later)), shown)


def _with_lower_offsets(shown: ProgramRun, shows: Shows[ProgramRun]) -> ProgramRun:
    lower = _from_zero(shown.steps)
    return (shows(lower) if lower != shown.steps else None) or shown


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
