"""
Search for the bugs of share partitions and of mock brokers, and keep what is found in ``tests/data``, for the docs.

Run it with ``python -m tests.support.record_planted_partition_bugs`` after a change to the machine, to the sequences or
to the bugs; it takes minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from sharestate import KAFKA_4_3
from sharestate.testing.search import DifferenceError, Level, compare, plain
from tests.support import naive_bugs
from tests.support.naive_broker import NaiveBroker
from tests.support.partition_machine import difference_of, machine_of
from tests.support.planted_partition_bugs import BUGS

DATA: Final = Path(__file__).parents[1] / "data"
PARTITIONS: Final = DATA / "planted-partition-bugs.json"
BROKERS: Final = DATA / "planted-broker-bugs.json"


def steps_of(program: str) -> int:
    """Return how many events a program has, the start of the share partition included."""
    return sum(line.startswith("state.") for line in program.splitlines()) - 1


def partition_row(name: str) -> dict[str, Any]:
    """
    Return the row of a bug of a share partition.

    Raises:
        ValueError: It is not found.
    """
    machine = machine_of(BUGS[name])
    difference_of(machine)
    shortest = difference_of(machine_of(BUGS[name]), shrinks=True)
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


def broker_row(bug: type[NaiveBroker]) -> dict[str, Any]:
    """
    Return the row of a bug of a mock broker.

    Raises:
        ValueError: It is not found.
    """
    try:
        compare(bug(), KAFKA_4_3.healed, level=Level.ANSWERS, sequence=plain)
    except DifferenceError as error:
        found = error.finding
        return {
            "bug": bug.__name__,
            "what": bug.__doc__,
            "found_by": found.op,
            "runs": found.number + 1,
            "steps": found.steps,
        }
    message = f"{bug.__name__}: not found"
    raise ValueError(message)


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write the rows of one kind."""
    file.write_text(json.dumps({"planted_bugs": 1, "rows": rows}, indent=1) + "\n")


def main() -> None:
    """Write both files."""
    write(BROKERS, [broker_row(bug) for bug in naive_bugs.BUGS])
    rows = []
    for name in BUGS:
        rows.append(partition_row(name))
        print(name, rows[-1]["runs"], rows[-1]["steps"], flush=True)  # noqa: T201 - a command
    write(PARTITIONS, rows)


if __name__ == "__main__":
    main()
