"""
Search for the bugs of persisters, and keep what is found in ``tests/data``, for the docs.

Run it with ``python -m tests.support.record_planted_persister_bugs`` after a change to the machine or to the bugs; it
takes minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.support.persister_machine import difference_of, machine_of
from tests.support.planted_persister_bugs import BUGS

PERSISTERS: Final = Path(__file__).parents[1] / "data" / "planted-persister-bugs.json"


def steps_of(program: str) -> int:
    """Return how many requests, or closings, a program has."""
    return sum(line.startswith("state.") for line in program.splitlines()) - 1


def row(name: str) -> dict[str, Any]:
    """
    Return the row of a bug.

    Raises:
        ValueError: It is not found.
    """
    machine = machine_of(BUGS[name])
    difference_of(machine, max_examples=400)
    shortest = difference_of(machine_of(BUGS[name]), max_examples=400, shrinks=True)
    if shortest is None:
        message = f"{name}: not found"
        raise ValueError(message)
    _, _, program = "\n".join(shortest.__notes__).partition("\n")
    return {
        "bug": name,
        "what": BUGS[name].__doc__,
        "found_by": shortest.what,
        "runs": machine.runs,
        "steps": steps_of(program),
        "program": program.splitlines(),
    }


def main() -> None:
    """Write the file."""
    rows = []
    for name in BUGS:
        rows.append(row(name))
        print(name, rows[-1]["runs"], rows[-1]["steps"], flush=True)  # noqa: T201 - a command
    PERSISTERS.write_text(json.dumps({"planted_bugs": 1, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
