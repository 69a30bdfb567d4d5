"""Measure both sides: ``python -m bench.jvm [--rounds N] [--workload NAME] [--json FILE] [--write FILE]``."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import asdict
from rich.console import Console
from rich.progress import track

from bench.calls import calls, sums
from bench.jvm.comparing import memory, rounds
from bench.jvm.kafka import HELD_AFTER, KafkaEndedError
from bench.jvm.table import comparison
from bench.tables import put
from bench.workloads import WORKLOADS
from tests.oracle.build import RELEASES, Oracle, OracleError, build

if TYPE_CHECKING:
    from argparse import Namespace

    from bench.jvm.comparing import Pair

_BEGIN: Final = "<!-- comparison: what follows is written by `make bench-jvm WRITE=docs/growth.md` -->"
_END: Final = "<!-- end of the comparison -->"


def main() -> None:
    """Build what Kafka's side takes, measure, and say what came of it."""
    parser = ArgumentParser(prog="python -m bench.jvm", description="Measure Kafka's own class and the library.")
    parser.add_argument("--rounds", type=int, default=5, help="how often each workload is measured; 5 unless given")
    parser.add_argument("--workload", choices=WORKLOADS, metavar="NAME", help=f"only one of: {'; '.join(WORKLOADS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to FILE")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in FILE")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds takes 1 or more")
    if arguments.write and arguments.workload:
        parser.error("--write takes all workloads")
    try:
        _compare(arguments)
    except (OracleError, KafkaEndedError) as error:
        sys.exit(f"{parser.prog}: {error}")


def _compare(arguments: Namespace) -> None:
    console = Console(stderr=True)
    oracle = build(sources="bench", say=lambda text: console.print(f"== {text}"))
    about = _about(arguments.rounds)
    pairs = _measured(oracle, arguments, console)
    if arguments.json:
        arguments.json.write_text(json.dumps({"about": about, "pairs": [asdict(pair) for pair in pairs]}, indent=1))
    called = {workload: sums(calls(workload)) for workload in _workloads(arguments)}
    tables = comparison(pairs, about, called)
    if arguments.write:
        put(arguments.write, tables, _BEGIN, _END)
    else:
        sys.stdout.write(tables)


def _measured(oracle: Oracle, arguments: Namespace, console: Console) -> list[Pair]:
    """Measure with a progress bar on standard error if that is a terminal; memory only with all workloads."""
    workloads = _workloads(arguments)
    pairs = chain(rounds(oracle, arguments.rounds, workloads), () if arguments.workload else memory(oracle))
    total = arguments.rounds * len(workloads) + (0 if arguments.workload else len(HELD_AFTER))
    return [*track(pairs, "measuring", total, console=console, transient=True, disable=not console.is_terminal)]


def _workloads(arguments: Namespace) -> list[str]:
    return [arguments.workload] if arguments.workload else [*WORKLOADS]


def _about(rounds: int) -> list[str]:
    """Return what was measured with what."""
    facts = dict(line.removeprefix("- ").partition(": ")[::2] for line in _lines(sys.executable, *_FACTS))
    java = _lines("java", "-version")
    return [
        f"{datetime.now(UTC):%Y-%m-%d}; {facts['cpu_model_name']}, {facts['cpu_count']} cores;",
        f"Python {facts['python_version']} built with {facts['python_compiler']};",
        f"Kafka {RELEASES[0]} on {java[-1]}.",
        f"CPU time of the thread, median of {rounds} rounds; ratios are taken round by round.",
    ]


_FACTS: Final = ("-m", "pyperf", "collect_metadata")


def _lines(*command: str) -> list[str]:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return ended.stdout.splitlines()


if __name__ == "__main__":
    main()
