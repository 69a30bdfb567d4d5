"""
Falsified logs of all kinds: ``python -m tests.falsified_logs RUN...``.

Each kind is tried at several places of each run; what was not caught is printed, with the line.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tests.falsified_logs.harmless import HARMLESS
from tests.falsified_logs.kinds import FALSIFIED
from tests.falsified_logs.logs import RUN, Found, Run, explained, judge


def try_run(home: Path, places: int, seed: int, bar: Progress) -> bool:
    """Falsify a run in every way, and change it in every way that means nothing; return whether the check is right."""
    run, succeeded = Run.read(home), True
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        task = bar.add_task(home.name, total=1 + len(HARMLESS) + places * len(FALSIFIED))
        keys = explained(run.reports(run.lines, scratch))
        sys.stdout.write(f"{home.name}: {len(keys)} share partitions that are explained\n")
        bar.advance(task)
        for name, change in HARMLESS.items():
            clean = explained(run.reports(change(run.lines, random.Random(seed)), scratch))  # noqa: S311 - repeatable
            if lost := set(keys) - set(clean):
                succeeded = False
                sys.stdout.write(f"{home.name}: {name}: no longer explained: {sorted(lost)}\n")
            bar.advance(task)
        tally: Counter[Found] = Counter()
        for kind in FALSIFIED:
            for falsified in run.falsified(kind, keys, random.Random(f"{seed} {kind}"), places):  # noqa: S311 - repeatable
                reports = run.reports(falsified.lines, scratch, falsified.key[0])
                found = judge(run, falsified, reports)
                tally[found] += 1
                if found is Found.BOUND:
                    sys.stdout.write(f"{home.name}: line {falsified.index + 1}: {kind}: {found.value}\n")
                if found in {Found.LATER, Found.MISSED}:
                    succeeded = succeeded and falsified.may_hide
                    reason = f" ({FALSIFIED[kind].hides})" if falsified.may_hide else ""
                    sys.stdout.write(f"{home.name}: line {falsified.index + 1}: {kind}: {found.value}{reason}\n")
                bar.advance(task)
        total = sum(tally.values())
        counts = ", ".join(f"{count} {found.value}" for found, count in tally.items())
        of_kinds = f"{total} falsified logs of {len(FALSIFIED)} kinds"
        sys.stdout.write(f"{home.name}: {of_kinds}: {counts}\n")
    return succeeded


def main() -> None:
    """Try runs."""
    parser = argparse.ArgumentParser(prog="python -m tests.falsified_logs", description="Falsify request logs.")
    parser.add_argument("runs", nargs="*", type=Path, default=[RUN], help="directories with request.log(.gz), segments")
    parser.add_argument("--places", type=int, default=3, help="at how many places each kind is tried; 3")
    parser.add_argument("--seed", type=int, default=0, help="what the choice of places begins with; 0")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        succeeded = [try_run(home, arguments.places, arguments.seed, bar) for home in arguments.runs]
    sys.exit(0 if all(succeeded) else 1)


if __name__ == "__main__":
    main()
