"""
Grade the search: ``python -m tests.oracle.mutants`` sees whether it notices each ``planted_*.py`` within a minute.

The exit status is 1 if one goes unnoticed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from attrs import evolve

from sharestate.values.profiles import KAFKA_4_3
from tests.oracle.build import OracleError, build
from tests.oracle.search.running import Plan, search
from tests.oracle.search.worker import Task

MOST_OPERATIONS: Final = 120_000
"""About a minute's work on two cores. [operations]"""


def planted() -> list[str]:
    """Return the names of the planted modules."""
    return sorted(f"tests.oracle.{file.stem}" for file in Path(__file__).parent.glob("planted_*.py"))


def noticed(plan: Plan, module: str) -> str | None:
    """Search with *module* planted; return how it was noticed, or None."""
    begun = time.monotonic()
    progress = search(evolve(plan, task=evolve(plan.task, plants=(module,))))
    if not progress.findings:
        return None
    finding = progress.findings[0]
    seconds = time.monotonic() - begun
    return (
        f"{progress.compared:,} operations, {seconds:.0f} s; {finding.steps} requests show it: {finding.differences[0]}"
    )


def main() -> None:
    """Say of each planted module how it was noticed."""
    try:
        oracle = build(say=lambda text: _say(f"== {text}"))
    except OracleError as error:
        sys.exit(f"oracle mutants: {error}")
    task = Task(command=tuple(oracle.command()), profile=KAFKA_4_3)
    plan = Plan(task=task, kafka=oracle.kafka, operations=MOST_OPERATIONS, jobs=os.cpu_count() or 1)
    unnoticed = 0
    for module in planted():
        how = noticed(plan, module)
        unnoticed += how is None
        _say(f"{module.rpartition('.')[2]}: {how or 'NOT NOTICED'}")
    _say(f"{unnoticed} unnoticed")
    sys.exit(1 if unnoticed else 0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
