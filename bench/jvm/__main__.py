"""Measure all sides: ``python -m bench.jvm [--base COMMIT | --wheel FILE] [--no-jvm] [--rounds N] ...``."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import asdict
from rich.console import Console
from rich.progress import track

from bench.calls import calls, sums
from bench.instructions import NotCountedError, lacking
from bench.jvm.comparing import (
    CALIBRATED,
    UnknownCommitError,
    WheelError,
    checked_out,
    counts,
    memory,
    readings,
    rounds,
    unpacked,
)
from bench.jvm.goals import RELEASE
from bench.jvm.kafka import HELD_AFTER, KafkaEndedError
from bench.jvm.library import OPERATION_NAMES, ROOT, LibraryEndedError
from bench.jvm.table import comparison
from bench.machine import python_build
from bench.tables import put
from bench.workloads import READINGS, WORKLOADS
from tests.oracle.build import Oracle, OracleError, build

if TYPE_CHECKING:
    from argparse import Namespace

    from bench.jvm.comparing import Round

BEGIN: Final = "<!-- comparison: what follows is written by `make growth` -->"
END: Final = "<!-- end of the comparison -->"
"""The lines between which the tables belong."""


def main() -> None:
    """Build what Kafka's side takes, measure, and say what came of it."""
    parser = _parser()
    arguments = parser.parse_args()
    for wrong, complaint in (
        (arguments.rounds < 1, "--rounds takes 1 or more"),
        (arguments.write and arguments.workload, "--write takes all workloads"),
        (
            arguments.no_jvm and not (arguments.base or arguments.wheel or arguments.instructions),
            "--no-jvm takes --base, --wheel or --instructions",
        ),
        (arguments.operations and not arguments.no_jvm, "--operations takes --no-jvm: Kafka runs the workloads only"),
    ):
        if wrong:
            parser.error(complaint)
    try:
        _compare(arguments)
    except (OracleError, KafkaEndedError, LibraryEndedError, NotCountedError, UnknownCommitError, WheelError) as error:
        sys.exit(f"{parser.prog}: {error}")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m bench.jvm", description="Measure Kafka's own class, the library, and the library as it was."
    )
    base = parser.add_mutually_exclusive_group()
    base.add_argument("--base", metavar="COMMIT", help="the library as COMMIT has it is measured too")
    base.add_argument("--wheel", type=Path, metavar="FILE", help="so is the one in FILE, such as the compiled wheel")
    parser.add_argument("--kafka", default=RELEASE, metavar="RELEASE", help=f"{RELEASE} unless given")
    parser.add_argument("--no-jvm", action="store_true", help="leave Kafka's own class out; no Java is needed then")
    parser.add_argument("--rounds", type=int, default=5, help="how often each workload is measured; 5 unless given")
    parser.add_argument("--workload", choices=WORKLOADS, metavar="NAME", help=f"only one of: {'; '.join(WORKLOADS)}")
    parser.add_argument("--operations", action="store_true", help="single operations too, small partitions and large")
    parser.add_argument("--instructions", action="store_true", help="count them too, by valgrind; they do not wobble")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to FILE")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in FILE")
    return parser


def _compare(arguments: Namespace) -> None:
    console = Console(stderr=True)
    with ExitStack() as stack:
        base = stack.enter_context(_base(arguments))
        oracle = None if arguments.no_jvm else _built(arguments.kafka, console)
        about = _about(arguments)
        measured = _measured(oracle, base, arguments, console)
    if arguments.json:
        arguments.json.write_text(json.dumps({"about": about, "rounds": [asdict(each) for each in measured]}, indent=1))
    called = {} if arguments.no_jvm else {workload: sums(calls(workload)) for workload in _names(arguments)}
    tables = comparison(measured, about, called)
    if arguments.write:
        put(arguments.write, tables, BEGIN, END)
    else:
        sys.stdout.write(tables)


def _base(arguments: Namespace) -> AbstractContextManager[Path | None]:
    if arguments.base:
        return checked_out(arguments.base)
    return unpacked(arguments.wheel) if arguments.wheel else nullcontext()


def _built(kafka: str, console: Console) -> Oracle:
    return build(kafka, sources="bench", say=lambda text: console.print(f"== {text}"))


def _measured(oracle: Oracle | None, base: Path | None, arguments: Namespace, console: Console) -> list[Round]:
    """Measure with a progress bar on standard error if that is a terminal; memory only with Kafka and all workloads."""
    names = _names(arguments)
    held = () if oracle is None or arguments.workload else memory(oracle, base)
    workloads = [name for name in names if name in WORKLOADS and arguments.instructions and not lacking()]
    timed = arguments.rounds * sum(len(readings(name)) + len(CALIBRATED) for name in names)
    total = timed + len(READINGS) * len(workloads) + (len(HELD_AFTER) if held else 0)
    each = chain(rounds(arguments.rounds, names, oracle, base), counts(workloads, base), held)
    return [*track(each, "measuring", total, console=console, transient=True, disable=not console.is_terminal)]


def _names(arguments: Namespace) -> list[str]:
    if arguments.workload:
        return [arguments.workload]
    return [*WORKLOADS, *OPERATION_NAMES] if arguments.operations else [*WORKLOADS]


def _about(arguments: Namespace) -> list[str]:
    """Return what was measured with what."""
    facts = dict(line.removeprefix("- ").partition(": ")[::2] for line in _lines(sys.executable, *_FACTS))
    about = [
        f"{datetime.now(UTC):%Y-%m-%d}; {facts['cpu_model_name']}, {facts['cpu_count']} cores;",
        *python_build(),
    ]
    if not arguments.no_jvm:
        about.append(f"Kafka {arguments.kafka} on {_lines('java', '-version')[-1]}.")
    if arguments.base:
        about.extend(_lines("git", "-C", str(ROOT), "log", "-1", "--format=Base: %h of %cs.", arguments.base))
    if arguments.wheel:
        about.append(f"Base: {arguments.wheel.name}.")
    if arguments.instructions and (reason := lacking()):
        about.append(f"{reason}.")
    return [*about, f"CPU time, median of {arguments.rounds} rounds; ratios are taken round by round."]


_FACTS: Final = ("-m", "pyperf", "collect_metadata")


def _lines(*command: str) -> list[str]:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return ended.stdout.splitlines()


if __name__ == "__main__":
    main()
