"""The events of a share partition in the order that its check has found: a history in causal order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sharestate.history import Event
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.schedule import FACTS, LIVES, Schedule, Step, What
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.visible_log import VisibleLog

Key = tuple[str, str, int]


class Stopped(NamedTuple):
    """
    Where the check knows nothing any more, until the state is read again.

    Attributes:
        verdict: The verdict, by its name.
        reason: The reason, in words.
        is_for_good: Whether nothing is known after the state is read again, either.
    """

    verdict: str
    reason: str
    is_for_good: bool


class FoundOrder(NamedTuple):
    """
    What the search for an order has found.

    Attributes:
        plan: The schedule.
        log: The log.
        steps: The steps in the order that was found.
        stops: Where nothing fits, by the line and the kind of the step.
    """

    plan: Schedule
    log: VisibleLog
    steps: list[Step]
    stops: Mapping[tuple[int, What], Stopped]


def ordered_events(key: Key, events: Iterable[Event], verdict: Stopped, found: FoundOrder | None) -> Iterator[Event]:
    """
    Yield the events of a share partition in causal order, with what no line of the log says, and the verdicts.

    What lies behind a verdict by which the state is lost stands in the preferred order. Left out is what decides
    nothing: the answer to a write of a leader that is gone, a request that is there twice, a connection whose loss the
    broker never noticed.

    Args:
        key: The share partition.
        events: Its events in order of arrival.
        verdict: The verdict on all of it, and its reason; empty without one.
        found: The order; None if it was not looked for: all of it is lost then.

    Complexity:
        A pass over the steps, each taken once, and memory for all events.
    """
    events = list(events)
    taken = TakenEvents(key)
    taken.verdict(events[0].time_us, verdict.verdict, verdict.reason or None, "for_good" if found is None else None)
    taken.events += [event for event in events if found is None or event.kind == "unknown"]
    if found is not None:
        _take_steps(CheckedPartition(key, found.plan, found.log, taken=taken), taken, found)
    for seq, event in enumerate(taken.events):
        yield event._replace(seq=seq)


def _take_steps(checked: CheckedPartition, taken: TakenEvents, found: FoundOrder) -> None:
    is_lost = is_for_good = False
    for step in found.steps:
        if step.what in LIVES and not is_for_good:
            is_lost = False
        elif is_lost and step.what not in FACTS:
            if step.what is not What.ARRIVAL:  # a write has one event, which stands where it was answered
                taken.step(step, step.at_us, {})
            continue
        saved = checked.save()
        stopped = found.stops.get((step.line, step.what))
        if stopped is None and checked.take(step, saved) is None:
            continue
        checked.give_up()
        stopped = found.stops[step.line, step.what]
        is_lost, is_for_good = True, stopped.is_for_good
        taken.verdict(step.at_us, stopped.verdict, stopped.reason, "for_good" if is_for_good else "until_read")
        if step.what in FACTS:  # the search stops at one if there is nothing left to spend
            checked.take(step, saved)
        elif step.what is not What.ARRIVAL:
            taken.step(step, step.at_us, {})
