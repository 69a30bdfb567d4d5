"""The page with both state machines, drawn from their tables."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from generate.drawing import Point, StateDiagram
from generate.markdown import NOTICE, table
from generate.meanings import meanings
from sharestate import Lifecycle, RecordState
from sharestate.partition.lifecycle import INITIALIZE_REFUSALS, MOVES, Event
from sharestate.partition.record_machine import TRANSITIONS, Input, Rule

Arrow = tuple[str, str]

RECORD_PLACES: Final = {
    RecordState.AVAILABLE.name: Point(140, 100),
    RecordState.ACQUIRED.name: Point(500, 100),
    RecordState.ACKNOWLEDGED.name: Point(870, 100),
    RecordState.ARCHIVED.name: Point(465, 380),
    RecordState.ARCHIVING.name: Point(870, 380),
}

LIFECYCLE_PLACES: Final = {
    Lifecycle.EMPTY.name: Point(140, 215),
    Lifecycle.INITIALIZING.name: Point(400, 50),
    Lifecycle.FAILED.name: Point(590, 215),
    Lifecycle.ACTIVE.name: Point(862, 215),
    Lifecycle.FENCED.name: Point(400, 380),
}

INTRODUCTION = """\
A share partition has two state machines: one for each record in flight, and one for its lifecycle. Those of [a share
session](sessions.md#sessions-3) and of [a share group](groups.md#groups-1) are drawn on their pages."""

RECORDS = """\
## The record machine

The states of one record. Labels are inputs; every other input is refused in that state. Inputs that would make a record
AVAILABLE again archive it once its delivery count has reached the limit ("at the limit"). Where a group has a
dead-letter queue, some inputs lead to ARCHIVING in place of ARCHIVED ("queue"). ACKNOWLEDGED and ARCHIVED are terminal.
The table is `TRANSITIONS` in
[`partition/record_machine.py`](../src/sharestate/partition/record_machine.py)."""

LIFE = """\
## The lifecycle of a share partition

The lifecycle states of a share partition at one leader. Labels are commands; each state lists the error that
`initialize` raises. No other command changes the state, and only `acquire` requires ACTIVE: acknowledgements, releases
and lock timeouts go on after fencing. The tables are `MOVES` and
`INITIALIZE_REFUSALS` in [`partition/lifecycle.py`](../src/sharestate/partition/lifecycle.py)."""


def page() -> str:
    """Return the page."""
    parts = [
        NOTICE,
        "# State machines",
        INTRODUCTION,
        RECORDS,
        "![The record machine, as in the table below](record-machine.svg)",
        table(
            ["input", "what has happened", "in", "leads to", "at the limit", "count", "to the dead-letter queue as"],
            _record_rows(),
        ),
        LIFE,
        "![The lifecycle of a share partition](lifecycle.svg)",
        table(["state", "what it means"], meanings(Lifecycle).items()),
        table(["command", "what has happened"], _event_rows()),
    ]
    return "\n\n".join(parts) + "\n"


def record_machine() -> str:
    """Return the drawing of the record machine."""
    return StateDiagram(Point(965, 420), RECORD_PLACES, _grouped(_record_arrows())).svg()


def lifecycle() -> str:
    """Return the drawing of the lifecycle."""
    return StateDiagram(Point(955, 430), LIFECYCLE_PLACES, _grouped(_life_arrows()), dict(_refusals())).svg()


def _grouped(arrows: Iterator[tuple[Arrow, str]]) -> Mapping[Arrow, list[str]]:
    grouped = defaultdict(list)
    for arrow, label in arrows:
        grouped[arrow].append(label)
    return grouped


def _record_arrows() -> Iterator[tuple[Arrow, str]]:
    for (state, input_), rule in TRANSITIONS.items():
        yield (state.name, rule.target.name), input_.name
        if rule.at_limit is not None:
            yield (state.name, rule.at_limit.name), f"{input_.name} at the limit"
        if rule.dead_letter is not None:
            yield (state.name, RecordState.ARCHIVING.name), f"{input_.name}, queue"


def _record_rows() -> Iterator[list[str]]:
    said = meanings(Input)
    for (state, input_), rule in TRANSITIONS.items():
        yield [input_.name, said[input_.name], state.name, rule.target.name, *_record_extras(rule)]


def _record_extras(rule: Rule) -> tuple[str, str, str]:
    return (
        "" if rule.at_limit is None else rule.at_limit.name,
        f"{rule.delivery:+}" if rule.delivery else "",
        "" if rule.dead_letter is None else f"`{rule.dead_letter}`",
    )


def _life_arrows() -> Iterator[tuple[Arrow, str]]:
    for (state, event), target in MOVES.items():
        yield (state.name, target.name), event.value


def _refusals() -> Iterator[tuple[str, tuple[str, str]]]:
    for state, (error, _) in INITIALIZE_REFUSALS.items():
        yield state.name, ("initialize raises", error.__name__)


def _event_rows() -> Iterator[list[str]]:
    said = meanings(Event)
    for event in Event:
        yield [event.value, said[event.name]]
