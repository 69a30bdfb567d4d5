"""
The programs of events around a share group: what their events refer to, and how they become shorter and plainer.

An event names an offset by the event that has appended it, so that batches before it may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from attrs import Factory, define, evolve

from sharestate.testing.groups.events import EVERYTHING, Range
from sharestate.testing.groups.settings import GroupSettings
from sharestate.testing.programs import Event, Origin, ProgramPass, ProgramRun, ProgramStep
from sharestate.testing.shrinking import Shows, with_plainer_steps, without_pairs, without_ranges


@define
class Offsets:
    """The offsets that events refer to: what has appended them, and the reverse."""

    numbers: dict[Origin, int] = Factory(dict)
    origins: dict[int, Origin] = Factory(dict)

    def appended(self, step: int, offsets: range) -> None:
        """Note which offsets a step has appended."""
        for place, offset in enumerate(offsets):
            origin = Origin(step, place)
            self.numbers[origin] = offset
            self.origins[offset] = origin

    def named(self, event: Event) -> Event:
        """Return *event* with origins in the place of offsets; those that the log does not have yet stay."""
        match event:
            case ("at_once", delays, events):
                return "at_once", delays, [*map(self.named, events)]
            case ("member_acknowledges", member, ranges):
                return "member_acknowledges", member, _with(ranges, lambda offset: self.origins.get(offset, offset))
            case ("records_are_deleted", before):  # by the last one that is deleted: the next one need not be there
                return "records_are_deleted", self.origins.get(before - 1, before)
            case _:
                return event

    def numbered(self, event: Event) -> Event | None:
        """Return *event* with offsets in the place of origins; None if one of them is not there now."""
        try:
            return self._numbered(event)
        except KeyError:
            return None

    def _numbered(self, event: Event) -> Event:
        match event:
            case ("at_once", delays, events):
                return "at_once", delays, [*map(self._numbered, events)]
            case ("member_acknowledges", member, ranges):
                return "member_acknowledges", member, _with(ranges, self._number)
            case ("records_are_deleted", Origin() as last):
                return "records_are_deleted", self.numbers[last] + 1
            case _:
                return event

    def _number(self, offset: int | Origin) -> int:
        return self.numbers[offset] if isinstance(offset, Origin) else offset


def _with(ranges: Sequence[Range], other: Callable[[Any], Any]) -> list[tuple[Any, Any, list[str]]]:
    return [(other(first), other(last), names) for first, last, names in ranges]


def passes(plain_settings: Mapping[str, Any], member: str) -> Sequence[ProgramPass]:
    """
    Return what makes programs shorter or plainer.

    Args:
        plain_settings: The plainest value of each setting that may be another one.
        member: The plainest member.
    """
    plainer: ProgramPass = with_plainer_steps(lambda step: _plainer_steps(step, plain_settings, member))
    # the last event stays only if a program fails before its end: otherwise it fails when everything is drained
    return (
        partial(without_ranges, last=0),
        plainer,
        partial(_with_fewer_members, member=member),
        partial(without_pairs, last=0),
        _with_longer_times,
    )


def _with_fewer_members(shown: ProgramRun, shows: Shows[ProgramRun], *, member: str) -> ProgramRun:
    """Let one member do what another one does."""
    others = dict.fromkeys(found for step in shown.steps if (found := _member_of(step)) not in {"", member})
    for other in others:
        steps = [
            ProgramStep(step.number, (step.event[0], member, *step.event[2:])) if _member_of(step) == other else step
            for step in shown.steps
        ]
        shown = shows(steps) or shown
    return shown


def _member_of(step: ProgramStep) -> str:
    name, *arguments = step.event
    return arguments[0] if name in _OF_MEMBERS else ""


def _with_longer_times(shown: ProgramRun, shows: Shows[ProgramRun]) -> ProgramRun:
    """Let time pass once in the place of twice."""
    places = [place for place, step in enumerate(shown.steps) if step.event[0] == "time_passes"]
    for first, second in pairwise(places):
        for kept in (first, second):
            steps = [*shown.steps]
            ms = steps[first].event[1] + steps[second].event[1]
            steps[kept] = ProgramStep(steps[kept].number, ("time_passes", ms))
            del steps[first + second - kept]
            shorter = shows(steps)
            if shorter is not None:
                return shorter
    return shown


def _plainer_steps(step: ProgramStep, plain_settings: Mapping[str, Any], member: str) -> Iterator[ProgramStep]:
    """Go through the plainer events that may stand in the place of one."""
    name, *arguments = step.event
    if name == "group_starts":
        events = _plainer_starts(plain_settings, *arguments)
    else:
        events = _PLAINER.get(name, _no_plainer)(*arguments)
        if _member_of(step) not in {"", member}:
            events = iter([*events, (name, member, *arguments[1:])])
    yield from (ProgramStep(step.number, event) for event in events)


def _plainer_starts(plain_settings: Mapping[str, Any], settings: GroupSettings, count: int) -> Iterator[Event]:
    if count > 1:
        yield "group_starts", settings, 1
    for name, plain in plain_settings.items():
        if getattr(settings, name) != plain:
            yield "group_starts", evolve(settings, **{name: plain}), count


def _plainer_fetches(member: str, max_records: int) -> Iterator[Event]:
    if max_records != EVERYTHING:
        yield "member_fetches", member, EVERYTHING


def _plainer_acknowledgements(member: str, ranges: Sequence[Range]) -> Iterator[Event]:
    for index, (first, last, names) in enumerate(ranges):
        before, after = ranges[:index], ranges[index + 1 :]
        if len(ranges) > 1:
            yield "member_acknowledges", member, [*before, *after]
        if first != last:
            yield "member_acknowledges", member, [*before, (first, first, names[:1]), *after]
            yield "member_acknowledges", member, [*before, (last, last, names[-1:]), *after]
        if len(names) > 1:
            yield "member_acknowledges", member, [*before, (first, last, names[:1]), *after]
        if len(names) == 1 and names != ["ACCEPT"]:
            yield "member_acknowledges", member, [*before, (first, last, ["ACCEPT"]), *after]


def _plainer_batches(count: int, producer: str | None = None) -> Iterator[Event]:
    if count > 1:
        yield "producer_sends", 1, producer
    if producer is not None:
        yield "producer_sends", count, None


def _plainer_overlaps(delays: Sequence[int], events: Sequence[Event]) -> Iterator[Event]:
    for left_out in range(len(events)):
        fewer = [*events[:left_out], *events[left_out + 1 :]]
        yield fewer[0] if len(fewer) == 1 else ("at_once", delays, fewer)
    if any(delays):
        yield "at_once", [0], events
    for index, (name, *arguments) in enumerate(events):
        for plainer in _PLAINER.get(name, _no_plainer)(*arguments):
            yield "at_once", delays, [*events[:index], plainer, *events[index + 1 :]]


def _no_plainer(*_: object) -> Iterator[Event]:
    return iter(())


_OF_MEMBERS: Final = frozenset(
    {
        "member_fetches",
        "member_fetches_all",
        "member_acknowledges",
        "member_acknowledges_all",
        "member_renews_later",
        "member_leaves",
    }
)
"""The events that begin with a member."""

_PLAINER: Final[Mapping[str, Callable[..., Iterator[Event]]]] = {
    "at_once": _plainer_overlaps,
    "member_fetches": _plainer_fetches,
    "member_fetches_all": lambda member: iter([("member_fetches", member, EVERYTHING)]),
    "member_acknowledges": _plainer_acknowledgements,
    "member_acknowledges_all": lambda member, name: iter(
        [] if name == "ACCEPT" else [("member_acknowledges_all", member, "ACCEPT")]
    ),
    "producer_sends": _plainer_batches,
    "transaction_ends": lambda producer, how: iter(
        [] if how == "commit" else [("transaction_ends", producer, "commit")]
    ),
}
"""The plainer events of each kind; none of them leads back."""
