"""
Hold what things cost to the table of record: ``python -m bench.instruction_table [--bytecodes] [--update]``.

The table has the instructions of each row, as valgrind counts them, with the library in Python and with that in the
compiled wheel that ``--wheel`` names, and the bytecodes that each function executes. ``--update`` makes all that the
table, and writes what docs/install.md has of it into that page. Instructions are those of one build of Python and have
in them what is done in C, but where a process has its memory moves them by a few per cent. Bytecodes are the same with
every build of one version of Python, in every directory and with every seed of hashes, take seconds to count, and name
the functions that have grown: ``--bytecodes`` holds to them alone. Neither depends on what else the machine does.

The exit status is 0 if all is as in the table, 1 if a row takes more or less, and 3 if something was not checked.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, evolve, frozen

from bench.bytecodes import bytecodes
from bench.instructions import NotCountedError, instructions, lacking
from bench.jvm.comparing import WheelError, unpacked
from bench.jvm.library import ROOT, THIS_TREE
from bench.machine import python_build
from bench.rows import COMMANDS, OF_RECORD, REPLAYED
from bench.tables import put
from bench.tables import table as markdown
from bench.workloads import WORKLOADS
from sharestate.partition import share_partition

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

TABLE: Final = Path(__file__).with_name("instructions.json")
PAGE: Final = ROOT / "docs/install.md"
BEGIN: Final = "<!-- instructions: what follows is written by `make instructions UPDATE=1` -->"
END: Final = "<!-- end of the instructions -->"
"""The lines of the page between which the table belongs."""

VERSION: Final = 2
"""Of the format; another one is refused."""

_BOUND: Final = 0.02
"""By how much of what the table says a row may take more or less."""

_NAMED: Final = 10
"""So many of the functions that have grown are named, those that have grown most first."""

GROWN: Final = 1
NOT_CHECKED: Final = 3


class TableError(Exception):
    """The file is no table of record that can be read; the message names it."""


@frozen
class Counted:
    """What the rows cost, and what it was counted with."""

    python: str
    """The version of Python without its last part, as ``3.11``: bytecodes are the same with all of it."""

    build: str
    """The build of Python: instructions are the same with this one only."""

    instructions: Mapping[str, int]
    """For each row; none where they were not counted."""

    compiled: Mapping[str, int]
    """The same with the compiled library; none where there was no wheel of it."""

    bytecodes: Mapping[str, Mapping[str, float]]
    """For each row, by function; none where the library is compiled."""


def counted(*, wheel: Path | None = None, bytecodes_only: bool = False) -> Counted:
    """
    Count here and now; takes two minutes, as long again with a compiled *wheel*, or with *bytecodes_only* some seconds.

    Raises:
        NotCountedError: What a row does, or valgrind, has failed.
        WheelError: The wheel cannot be read.
    """
    is_counted = not bytecodes_only and not lacking()
    version = ".".join(map(str, sys.version_info[:2]))
    compiled: Mapping[str, int] = {}
    if is_counted and wheel is not None:
        with unpacked(wheel) as library:
            compiled = _instructions(library)
    return Counted(
        version,
        " ".join(python_build()).rstrip(";"),
        _instructions(THIS_TREE) if is_counted else {},
        compiled,
        {} if _is_compiled() else {name: bytecodes(name) for name in OF_RECORD},
    )


def _instructions(library: Path) -> dict[str, int]:
    return {name: round(instructions(name, (library, ROOT))) for name in OF_RECORD}


def _is_compiled() -> bool:
    return not str(share_partition.__file__).endswith(".py")


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


def unchecked(table: Counted, now: Counted, *, bytecodes_only: bool = False) -> list[str]:
    """Return what cannot be compared, each with the reason; instructions are not missed with *bytecodes_only*."""
    reasons = {"bytecodes": _no_bytecodes(table, now)}
    if not bytecodes_only:
        reasons["instructions"] = _no_instructions(table, now)
        reasons["instructions, compiled"] = _no_compiled(table, now)
    return [f"{what}: not checked, because {reason}" for what, reason in reasons.items() if reason]


def _no_bytecodes(table: Counted, now: Counted) -> str | None:
    if not now.bytecodes:
        return "the library is compiled"
    if now.python != table.python:
        return f"the table has those of Python {table.python}, not {now.python}"
    return None


def _no_instructions(table: Counted, now: Counted) -> str | None:
    if not now.instructions:
        return lacking() or "none were counted"
    if now.build != table.build:
        return f"the table has those of {table.build}; this is {now.build}"
    return None


def _no_compiled(table: Counted, now: Counted) -> str | None:
    if now.instructions and not now.compiled:
        return "there was no wheel: make wheel-compiled"
    return _no_instructions(table, now)


def differences(table: Counted, now: Counted) -> Iterator[str]:
    """Yield a line for each row that takes more or less than *table* says, and for functions that have grown."""
    has_bytecodes, has_instructions = not _no_bytecodes(table, now), not _no_instructions(table, now)
    has_compiled = not _no_compiled(table, now)
    for name in OF_RECORD:
        before, after = table.bytecodes.get(name, {}), now.bytecodes.get(name, {})
        pairs: list[tuple[str, float, float]] = []
        if has_instructions:
            pairs.append(("instructions", table.instructions.get(name, 0), now.instructions[name]))
        if has_compiled:
            pairs.append(("instructions, compiled", table.compiled.get(name, 0), now.compiled[name]))
        if has_bytecodes:
            pairs.append(("bytecodes", sum(before.values()), sum(after.values())))
        moved = [(unit, was, is_) for unit, was, is_ in pairs if abs(is_ - was) > _BOUND * was]
        yield from (f"{name}: {was:,.0f} -> {is_:,.0f} {unit}{_percent(was, is_)}" for unit, was, is_ in moved)
        if has_bytecodes and any(is_ > was for _, was, is_ in moved):
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


def page_table(table: Counted) -> str:
    """Return the table of docs/install.md: workloads, and events of a history, in Python and compiled."""
    rows = [
        (name, *(f"{counts[name] / 1000:,.0f}" for counts in (table.instructions, table.compiled)))
        for name in (*WORKLOADS, COMMANDS, REPLAYED)
    ]
    head = ("500 records, or one event", "Python: thousands of instructions", "compiled")
    return "\n".join(markdown(head, rows))


def main() -> None:
    """Compare, or update the table."""
    parser = ArgumentParser(prog="python -m bench.instruction_table", description="Hold what things cost to a table.")
    parser.add_argument("--bytecodes", action="store_true", help="count bytecodes alone: seconds, and no valgrind")
    parser.add_argument("--update", action="store_true", help="make what is counted now the table of record")
    parser.add_argument(
        "--table", type=Path, default=TABLE, metavar="FILE", help="bench/instructions.json unless given"
    )
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="docs/install.md unless given")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="the compiled wheel, which is counted too")
    arguments = parser.parse_args()
    run = _update if arguments.update else _compare
    try:
        sys.exit(run(arguments))
    except (TableError, NotCountedError, WheelError) as error:
        sys.exit(f"{parser.prog}: {error}")


def _update(arguments: Namespace) -> int | str:
    if _is_compiled():
        return "the table is not updated. The library is compiled, and executes no bytecodes"
    if arguments.bytecodes:
        now = counted(bytecodes_only=True)
        write(arguments.table, evolve(read(arguments.table), python=now.python, bytecodes=now.bytecodes))
        return 0
    if reason := lacking():
        return f"the table is not updated. {reason}"
    if arguments.wheel is None:
        return "the table is not updated. It takes the compiled wheel, too: make wheel-compiled, and --wheel"
    table = counted(wheel=arguments.wheel)
    put(arguments.page, f"{page_table(table)}\n", BEGIN, END)
    write(arguments.table, table)
    return 0


def _compare(arguments: Namespace) -> int:
    table, now = read(arguments.table), counted(wheel=arguments.wheel, bytecodes_only=arguments.bytecodes)
    for name in OF_RECORD:
        taken = [f"{now.instructions[name]:,} instructions"] if now.instructions else []
        taken += [f"{now.compiled[name]:,} compiled"] if now.compiled else []
        taken += [f"{sum(now.bytecodes[name].values()):,.0f} bytecodes"] if now.bytecodes else []
        sys.stdout.write(f"{name}: {', '.join(taken)}\n")
    moved, missing = [*differences(table, now)], unchecked(table, now, bytecodes_only=arguments.bytecodes)
    sys.stdout.writelines(f"{line}\n" for line in (*moved, *missing))
    if moved:
        command = "make bytecodes UPDATE=1" if arguments.bytecodes else "make instructions UPDATE=1"
        sys.stdout.write(f"if that is meant: {command}\n")
        return GROWN
    return NOT_CHECKED if missing else 0


if __name__ == "__main__":
    main()
