"""The drawings of both state machines: what is drawn is what the tables say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from re import MULTILINE, findall
from xml.etree import ElementTree as ET

from sharestate.partition.lifecycle import INITIALIZE_REFUSALS, MOVES
from sharestate.partition.record_machine import TRANSITIONS

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def groups(drawing: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of text of each part of *drawing*."""
    for group in ET.parse(DOCS / drawing).iter(f"{SVG}g"):  # noqa: S314 - a file of ours
        yield group.findtext(f"{SVG}title", ""), [text.text or "" for text in group.iter(f"{SVG}text")]


def arrows(drawing: str) -> Iterator[tuple[str, str, str]]:
    """Yield each arrow of *drawing* as often as it has labels: from, to, label."""
    for title, labels in groups(drawing):
        here, to, there = title.partition(" to ")
        if to:
            yield from ((here, there, label) for label in labels)


def test_every_row_of_the_record_machine_is_drawn() -> None:
    """Each row is an arrow, one more where the limit or a dead-letter queue matters, and there are no others."""
    below = [(state.name, rule.target.name, input_.name) for (state, input_), rule in TRANSITIONS.items()]
    at_limit = [
        (state.name, rule.at_limit.name, f"{input_.name} at the limit")
        for (state, input_), rule in TRANSITIONS.items()
        if rule.at_limit is not None
    ]

    queued = [
        (state.name, "ARCHIVING", f"{input_.name}, queue")
        for (state, input_), rule in TRANSITIONS.items()
        if rule.dead_letter is not None
    ]

    assert sorted(arrows("record-machine.svg")) == sorted(below + at_limit + queued)


def test_every_row_of_the_record_machine_is_in_the_table() -> None:
    """Beneath the drawing stands a row for each row."""
    rows = findall(r"^\| (\w+) \| .+? \| (\w+) \| (\w+) \|", (DOCS / "state-machines.md").read_text(), MULTILINE)

    assert rows == [(input_.name, state.name, rule.target.name) for (state, input_), rule in TRANSITIONS.items()]


def test_every_move_of_a_life_is_drawn() -> None:
    """Each move is an arrow, and there are no others."""
    assert sorted(arrows("lifecycle.svg")) == sorted(
        (here.name, there.name, event.value) for (here, event), there in MOVES.items()
    )


def test_every_refusal_is_drawn() -> None:
    """Each state but EMPTY says with which error it refuses to be initialized."""
    states = {title: lines[1:] for title, lines in groups("lifecycle.svg") if len(lines) > 1 and lines[0] == title}

    assert states == {
        state.name: ["initialize raises", error.__name__] for state, (error, _) in INITIALIZE_REFUSALS.items()
    }


def test_a_machine_begins_somewhere() -> None:
    """Records begin AVAILABLE, share partitions EMPTY."""
    assert "begin: AVAILABLE" in dict(groups("record-machine.svg"))
    assert "begin: EMPTY" in dict(groups("lifecycle.svg"))
