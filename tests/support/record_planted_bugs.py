"""
Search for the planted bugs and keep what is found in ``tests/data/planted-bugs.json``, which the docs show.

Run it with ``python -m tests.support.record_planted_bugs`` after a change to the machine or to the bugs; it takes
minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from sharestate.testing.share_groups import GuaranteeBrokenError
from tests.support.mock_machine import broken_by, machine_of
from tests.support.planted_bugs import BUGS

FILE: Final = Path(__file__).parents[1] / "data/planted-bugs.json"


def program_of(found: GuaranteeBrokenError) -> str:
    """Return the program that Hypothesis has printed."""
    _, _, program = "\n".join(found.__notes__).partition("\n")
    return program


def steps_of(program: str) -> int:
    """Return how many events a program has, the start of the group included."""
    return sum(line.startswith("state.") for line in program.splitlines()) - 1


def row_of(name: str) -> dict[str, Any]:
    """
    Return a row of the file.

    Raises:
        ValueError: The bug is not found.
    """
    machine = machine_of(BUGS[name])
    broken_by(machine)
    shortest = broken_by(machine_of(BUGS[name]), shrinks=True)
    if shortest is None:
        message = f"{name}: not found"
        raise ValueError(message)
    program = program_of(shortest)
    return {
        "bug": name,
        "what": BUGS[name].__doc__,
        "found_by": shortest.guarantee,
        "runs": machine.runs,
        "steps": steps_of(program),
        "program": program.splitlines(),
    }


def main() -> None:
    """Write the file."""
    rows = []
    for name in BUGS:
        rows.append(row_of(name))
        print(name, rows[-1]["runs"], rows[-1]["steps"], flush=True)  # noqa: T201 - a command
    FILE.write_text(json.dumps({"planted_bugs": 1, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
