"""
Search for the planted bugs, and keep what is found in ``tests/data``, for the docs.

Run it with ``python -m tests.planted.record`` after a change to a machine, to the sequences or to the bugs; it takes
minutes. With names, such as ``persisters``, only these kinds are searched for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import frozen

from sharestate import KAFKA_4_3
from sharestate.testing.search import DifferenceError, Level, compare, plain
from tests.planted import brokers, nodes, persisters, share_groups, share_partitions
from tests.support import mock_machine, node_programs, partition_machine, persister_machine

DATA: Final = Path(__file__).parents[1] / "data"
SHARE_GROUPS: Final = DATA / "planted-bugs.json"
PARTITIONS: Final = DATA / "planted-partition-bugs.json"
PERSISTERS: Final = DATA / "planted-persister-bugs.json"
BROKERS: Final = DATA / "planted-broker-bugs.json"
NODES: Final = DATA / "planted-node-bugs.json"

Row: TypeAlias = dict[str, Any]


@frozen
class Machines:
    """Where a kind of bugs is planted, and what searches for them."""

    bugs: Mapping[str, type]
    """The bugs by their names."""

    machine_of: Callable[[Any], Any]
    """Returns a machine with a bug, which counts its runs."""

    search: Callable[..., Any]
    """Runs a machine, and returns the error that it finds."""

    found_by: str
    """The attribute of the error that says what the bug breaks."""

    def rows(self) -> Iterator[Row]:
        """
        Yield what is found of each bug.

        Raises:
            ValueError: One is not found.
        """
        for name, bug in self.bugs.items():
            machine = self.machine_of(bug)
            self.search(machine)
            shortest = self.search(self.machine_of(bug), shrinks=True)
            if shortest is None:
                message = f"{name}: not found"
                raise ValueError(message)
            program = program_of(shortest)
            yield {
                "bug": name,
                "what": bug.__doc__,
                "found_by": getattr(shortest, self.found_by),
                "runs": machine.runs,
                "steps": steps_of(program),
                "program": program.splitlines(),
            }


def program_of(found: AssertionError) -> str:
    """Return the program that Hypothesis, or the machine, has added to an error."""
    _, _, program = "\n".join(found.__notes__).partition("\n")
    return program


def steps_of(program: str) -> int:
    """Return how many events a program has, the first one included."""
    return sum(line.startswith("state.") for line in program.splitlines()) - 1


def broker_rows() -> Iterator[Row]:
    """
    Yield what `compare` finds of each mock broker.

    Raises:
        ValueError: It finds nothing.
    """
    for bug in brokers.BUGS:
        try:
            compare(bug(), KAFKA_4_3.healed, level=Level.ANSWERS, sequence=plain)
        except DifferenceError as error:
            found = error.finding
            yield {
                "bug": bug.__name__,
                "what": bug.__doc__,
                "found_by": found.op,
                "runs": found.number + 1,
                "steps": found.steps,
            }
        else:
            message = f"{bug.__name__}: not found"
            raise ValueError(message)


def node_rows() -> Iterator[Row]:
    """
    Yield what members find of each bug of a node.

    Raises:
        ValueError: They find nothing.
    """
    for name, bug in nodes.SEEN_BY_MEMBERS.items():
        found = node_programs.search(bug)
        if found is None:
            message = f"{name}: not found"
            raise ValueError(message)
        program, runs = found
        yield {
            "bug": name,
            "what": bug.what,
            "found_by": program.found_by,
            "runs": runs,
            "steps": steps_of("\n".join(program.text)),
            "program": program.text,
        }


KINDS: Final[Mapping[str, tuple[Path, Callable[[], Iterator[Row]]]]] = MappingProxyType(
    {
        "groups": (
            SHARE_GROUPS,
            Machines(share_groups.BUGS, mock_machine.machine_of, mock_machine.broken_by, "guarantee").rows,
        ),
        "partitions": (
            PARTITIONS,
            Machines(share_partitions.BUGS, partition_machine.machine_of, partition_machine.difference_of, "what").rows,
        ),
        "persisters": (
            PERSISTERS,
            Machines(
                persisters.BUGS,
                persister_machine.machine_of,
                partial(persister_machine.difference_of, max_examples=400),
                "what",
            ).rows,
        ),
        "brokers": (BROKERS, broker_rows),
        "nodes": (NODES, node_rows),
    }
)
"""The file of each kind of bugs, and what makes its rows."""


def main(kinds: list[str]) -> None:
    """Write the files of *kinds*, or all."""
    for kind in kinds or KINDS:
        file, rows_of = KINDS[kind]
        rows = []
        for row in rows_of():
            rows.append(row)
            print(row["bug"], row["runs"], row["steps"], flush=True)  # noqa: T201 - a command
        file.write_text(json.dumps({"planted_bugs": 1, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
