"""
Hold what workloads cost to the table of record: ``python -m bench.instruction_table [--update] [--table FILE]``.

The table has the instructions of each workload, as valgrind counts them, and the bytecodes that each function executes.
Instructions are those of one build of Python, and have in them what is done in C; bytecodes are those of one version of
Python, and name the functions that have grown. Neither depends on what else the machine does.

The exit status is 0 if all is as in the table, 1 if a workload takes more or less, and 3 if something was not checked.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen

from bench.bytecodes import bytecodes
from bench.instructions import NotCountedError, instructions, lacking
from bench.jvm.library import ROOT, THIS_TREE
from bench.machine import python_build
from bench.workloads import RUNS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TABLE: Final = Path(__file__).with_name("instructions.json")
VERSION: Final = 1
"""Of the format; another one is refused."""

_BOUND: Final = 0.02
"""By how much of what the table says a workload may take more or less."""

_NAMED: Final = 10
"""So many of the functions that have grown are named, those that have grown most first."""

GROWN: Final = 1
NOT_CHECKED: Final = 3


class TableError(Exception):
    """The file is no table of record that can be read; the message names it."""


@frozen
class Counted:
    """What the workloads cost, and what it was counted with."""

    python: str
    """The version of Python without its last part, as ``3.11``: bytecodes are the same with all of it."""

    build: str
    """The build of Python: instructions are the same with this one only."""

    instructions: Mapping[str, int]
    """For a batch of each workload whose writes are read as runs; none where they could not be counted."""

    bytecodes: Mapping[str, Mapping[str, float]]
    """For a batch of each workload, by function."""


def counted() -> Counted:
    """
    Count here and now; takes three quarters of a minute, nearly all of it in valgrind.

    Raises:
        NotCountedError: A workload or valgrind has failed.
    """
    taken = {} if lacking() else {name: round(instructions(name, RUNS, (THIS_TREE, ROOT))) for name in WORKLOADS}
    version = ".".join(map(str, sys.version_info[:2]))
    return Counted(version, " ".join(python_build()).rstrip(";"), taken, {name: bytecodes(name) for name in WORKLOADS})


def read(file: Path) -> Counted:
    """
    Return what *file* says.

    Raises:
        TableError: It is not there, is no JSON, lacks something, or has a version that is not known.
    """
    try:
        table: dict[str, Any] = json.loads(file.read_text("utf-8"))
        if (version := table.pop("version")) != VERSION:
            message = f"{file}: version {version!r} is not known, only {VERSION}"
            raise TableError(message)
        return Counted(**table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{file}: no table of instructions: {error!r}"
        raise TableError(message) from error


def write(file: Path, counted: Counted) -> None:
    """Make *counted* the table of record."""
    file.write_text(json.dumps({"version": VERSION, **asdict(counted)}, indent=1) + "\n", "utf-8")


def unchecked(table: Counted, now: Counted) -> list[str]:
    """Return what cannot be compared, each with the reason."""
    missing = []
    if now.python != table.python:
        missing.append(
            f"bytecodes: not checked, because the table has those of Python {table.python}, not {now.python}"
        )
    if reason := _uncounted(table, now):
        missing.append(f"instructions: not checked, because {reason}")
    return missing


def _uncounted(table: Counted, now: Counted) -> str | None:
    if not now.instructions:
        return lacking() or "none were counted"
    if now.build != table.build:
        return f"the table has those of {table.build}; this is {now.build}"
    return None


def differences(table: Counted, now: Counted) -> Iterator[str]:
    """Yield a line for each workload that takes more or less than *table* says, and for functions that have grown."""
    for name in WORKLOADS:
        before, after = table.bytecodes.get(name, {}), now.bytecodes[name]
        pairs: list[tuple[str, float, float]] = []
        if not _uncounted(table, now):
            pairs.append(("instructions", table.instructions.get(name, 0), now.instructions[name]))
        if now.python == table.python:
            pairs.append(("bytecodes", sum(before.values()), sum(after.values())))
        moved = [(unit, was, is_) for unit, was, is_ in pairs if abs(is_ - was) > _BOUND * was]
        yield from (f"{name}: {was:,.0f} -> {is_:,.0f} {unit}{_percent(was, is_)}" for unit, was, is_ in moved)
        if now.python == table.python and any(is_ > was for _, was, is_ in moved):
            yield from _grown(before, after)


def _percent(was: float, is_: float) -> str:
    return f" ({100 * (is_ / was - 1):+.1f} %)" if was else ""


def _grown(before: Mapping[str, float], after: Mapping[str, float]) -> Iterator[str]:
    """Yield the functions that execute more than they did."""
    growth = {name: count - before.get(name, 0) for name, count in after.items()}
    grown = sorted((name for name in growth if growth[name] > 0), key=growth.__getitem__, reverse=True)
    for name in grown[:_NAMED]:
        yield f"    {name}: {before.get(name, 0):,.0f} -> {after[name]:,.0f} bytecodes"
    if not grown:
        yield "    no function executes more bytecodes: it is in what is written in C"


def main() -> None:
    """Compare, or update the table."""
    parser = ArgumentParser(prog="python -m bench.instruction_table", description="Hold workloads to their table.")
    parser.add_argument("--update", action="store_true", help="make what is counted now the table of record")
    parser.add_argument(
        "--table", type=Path, default=TABLE, metavar="FILE", help="bench/instructions.json unless given"
    )
    arguments = parser.parse_args()
    try:
        sys.exit(_update(arguments.table) if arguments.update else _compare(arguments.table))
    except (TableError, NotCountedError) as error:
        sys.exit(f"{parser.prog}: {error}")


def _update(file: Path) -> int | str:
    if reason := lacking():
        return f"the table is not updated. {reason}"
    write(file, counted())
    return 0


def _compare(file: Path) -> int:
    table, now = read(file), counted()
    for name, taken in now.instructions.items():
        sys.stdout.write(f"{name}: {taken:,} instructions, {sum(now.bytecodes[name].values()):,.0f} bytecodes\n")
    moved, missing = [*differences(table, now)], unchecked(table, now)
    sys.stdout.writelines(f"{line}\n" for line in (*moved, *missing))
    if moved:
        sys.stdout.write("if that is meant: make instructions UPDATE=1\n")
        return GROWN
    return NOT_CHECKED if missing else 0


if __name__ == "__main__":
    main()
