"""Programs of events as files: JSON with a version, and checks that turn it into events again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import asdict, has

from sharestate.input_errors import MalformedInputError
from sharestate.json_checks import Check, Field, a_list, list_of, one_of, record, refuse, row, text, version
from sharestate.json_lines import Json, read_json
from sharestate.testing.programs import Event

PROGRAM_VERSION: Final = 2
"""The version of the format: 2 has events at other share partitions."""

READ_VERSIONS: Final = (1, PROGRAM_VERSION)
"""The versions that are read; others are refused."""

MAX_PROGRAM: Final = 2**20
"""The largest program: a thousand times as large as one of sixty events. [characters]"""

EventChecks: TypeAlias = Mapping[str, tuple[Check[Any], ...]]
"""The checks of the arguments of each event, by its name."""


def write_program(file: Path, machine: str, events: Sequence[Event]) -> None:
    """
    Write a program.

    Args:
        file: The file; it is replaced.
        machine: The kind of machine that can run it.
        events: The start, and the events after it.
    """
    lines = ",\n  ".join(json.dumps(_plain(event)) for event in events)
    head = f'{{"sharestate_program": {PROGRAM_VERSION},\n "machine": {json.dumps(machine)},\n "events": [\n  '
    file.write_text(f"{head}{lines}\n]}}\n", encoding="utf-8")


def _plain(value: Any) -> Any:  # noqa: ANN401 - an argument of an event
    """Return a value as JSON has it: settings and states as objects."""
    if has(type(value)):
        return _plain(asdict(value))
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def read_program(file: Path, machine: str, start: str, checks: EventChecks) -> tuple[Event, ...]:
    """
    Return the events of a program.

    Args:
        file: The file.
        machine: The kind of machine that is to run it.
        start: The name of the first event, which no other one may have.
        checks: The events that there are, and the checks of their arguments.

    Raises:
        MalformedInputError: It is not one, of another version or machine, or has unknown events or arguments.
        OSError: It cannot be read.
    """
    fields = {
        "sharestate_program": Field(version(*READ_VERSIONS)),
        "machine": Field(one_of({machine: machine})),
        "events": Field(list_of(event_of(checks))),
    }
    with file.open(encoding="utf-8", errors="surrogateescape") as stream:
        content = stream.read(MAX_PROGRAM + 1)
    try:
        events: tuple[Event, ...] = record(fields, lambda events, **_: events)(_bounded(content), "")
        if [event[0] for event in events].count(start) != 1 or events[0][0] != start:
            refuse(f"a list that begins with {start}, which comes once", [each[0] for each in events], "events")
    except MalformedInputError as error:
        error.add_note(f"in {file}")
        raise
    return events


def _bounded(content: str) -> Json:
    if len(content) > MAX_PROGRAM:
        message = f"expected a program of {MAX_PROGRAM} characters at most"
        raise MalformedInputError(message)
    return read_json(content)


def event_of(checks: EventChecks) -> Check[Event]:
    """Return the check for an event: its name, which *checks* has, and its arguments."""

    def check(value: Json, path: str) -> Event:
        name = next(iter(a_list(value, path)), None)
        arguments = one_of(checks)(name, f"{path}[0]")
        return row(text, *arguments, make=lambda *items: items)(value, path)

    return check
