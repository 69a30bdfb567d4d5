"""The page with both state machines, drawn from their tables."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from generate.markdown import NOTICE, state_diagram, table
from generate.meanings import meanings
from sharestate import Lifecycle, RecordState
from sharestate.partition.lifecycle import INITIALIZE_REFUSALS, MOVES, Event
from sharestate.partition.transitions import TRANSITIONS, Input, Rule

Arrow = tuple[str, str]

RECORDS = """\
## The record machine

What becomes of one record. An arrow's label is the input that draws it; every other input is refused in that state.
Inputs that would offer a record again archive it once it was delivered as often as the group allows ("at the limit").
ACKNOWLEDGED and ARCHIVED are terminal. The table is `TRANSITIONS` in
[`partition/transitions.py`](../src/sharestate/partition/transitions.py)."""

LIFE = """\
## The life of a share partition

How far a share partition has come at one leader. An arrow's label is the command that draws it, and inside of each
state stands how it refuses `initialize`. No other command changes the state, and only `acquire` asks whether it is
ACTIVE: acknowledgements, releases and lapsing locks go on after fencing. The tables are `MOVES` and
`INITIALIZE_REFUSALS` in [`partition/lifecycle.py`](../src/sharestate/partition/lifecycle.py)."""


def page() -> str:
    """Return the page."""
    parts = [
        NOTICE,
        "# State machines",
        "Two machines make a share partition: one for each record in flight, and one for its own life.",
        RECORDS,
        state_diagram(RecordState.AVAILABLE.name, _grouped(_record_arrows())),
        table(["input", "what has happened", "in", "leads to", "at the limit", "deliveries"], _record_rows()),
        LIFE,
        state_diagram(Lifecycle.EMPTY.name, _grouped(_life_arrows()), dict(_refusals())),
        table(["state", "what it means"], meanings(Lifecycle).items()),
        table(["command", "what has happened"], _event_rows()),
    ]
    return "\n\n".join(parts) + "\n"


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


def _record_rows() -> Iterator[list[str]]:
    said = meanings(Input)
    for (state, input_), rule in TRANSITIONS.items():
        yield [input_.name, said[input_.name], state.name, rule.target.name, *_record_extras(rule)]


def _record_extras(rule: Rule) -> tuple[str, str]:
    return "" if rule.at_limit is None else rule.at_limit.name, f"{rule.delivery:+}" if rule.delivery else ""


def _life_arrows() -> Iterator[tuple[Arrow, str]]:
    for (state, event), target in MOVES.items():
        yield (state.name, target.name), event.value


def _refusals() -> Iterator[tuple[str, str]]:
    for state, (error, _) in INITIALIZE_REFUSALS.items():
        yield state.name, f"initialize raises {error.__name__}"


def _event_rows() -> Iterator[list[str]]:
    said = meanings(Event)
    for event in Event:
        yield [event.value, said[event.name]]
