"""The drawings of both state machines: what is drawn is what the tables say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sharestate.partition.lifecycle import INITIALIZE_REFUSALS, MOVES
from sharestate.partition.transitions import TRANSITIONS

PAGE = Path(__file__).parents[2] / "docs/state-machines.md"
RECORD_MACHINE, LIFE = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", PAGE.read_text(), re.DOTALL)

Arrow = tuple[str, str, str]


def arrows(diagram: str) -> Iterator[Arrow]:
    """Yield each arrow of *diagram* as often as it has lines of text: from, to, text."""
    for here, there, labels in re.findall(r"^ +(\w+) --> (\w+) : (.+)$", diagram, re.MULTILINE):
        for label in labels.split("<br/>"):
            yield here, there, label


def remarks(diagram: str) -> dict[str, str]:
    """Return what is written inside of states: the last line that begins with the state's name."""
    return dict(re.findall(r"^ +(\w+) : (.+)$", diagram, re.MULTILINE))


def test_every_row_of_the_record_machine_is_drawn() -> None:
    """Each row is an arrow, a second one where the limit matters, and there are no others."""
    below = [(state.name, rule.target.name, input_.name) for (state, input_), rule in TRANSITIONS.items()]
    at_limit = [
        (state.name, rule.at_limit.name, f"{input_.name} at the limit")
        for (state, input_), rule in TRANSITIONS.items()
        if rule.at_limit is not None
    ]

    assert sorted(arrows(RECORD_MACHINE)) == sorted(below + at_limit)


def test_every_row_of_the_record_machine_is_in_the_table() -> None:
    """Beneath the drawing stands a row for each row."""
    rows = re.findall(r"^\| (\w+) \| .+? \| (\w+) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)

    assert rows == [(input_.name, state.name, rule.target.name) for (state, input_), rule in TRANSITIONS.items()]


def test_every_move_of_a_life_is_drawn() -> None:
    """Each move is an arrow, and there are no others."""
    assert sorted(arrows(LIFE)) == sorted(
        (here.name, there.name, event.value) for (here, event), there in MOVES.items()
    )


def test_every_refusal_is_drawn() -> None:
    """Each state but EMPTY says with which error it refuses to be initialised."""
    assert remarks(LIFE) == {
        state.name: f"initialize raises {error.__name__}" for state, (error, _) in INITIALIZE_REFUSALS.items()
    }


def test_a_machine_begins_somewhere() -> None:
    """Records begin AVAILABLE, share partitions EMPTY."""
    assert "[*] --> AVAILABLE\n" in RECORD_MACHINE
    assert "[*] --> EMPTY\n" in LIFE
