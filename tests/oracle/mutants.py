"""
Grade the searches: ``python -m tests.oracle.mutants [WORD]`` sees whether they notice each change within a minute.

They are those of each module in ``tests/planted/rules``, beside Kafka's SharePartition, of
``tests/planted/share_coordinator.py``, beside its share coordinator, and of ``tests/planted/group_coordinator.py``,
beside its group coordinator; with WORD, those whose names have it, such as ``coordinator`` or ``groups``. The exit
status is 1 if one goes unnoticed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from attrs import evolve

from sharestate.testing.search import Plan, search
from tests.oracle.build import OracleError, build
from tests.oracle.coordinator import search as conversations
from tests.oracle.coordinator.search import Subject
from tests.oracle.groups.search import GROUPS
from tests.oracle.search.profiles import profile_of
from tests.oracle.search.task import KafkaTask

MOST_OPERATIONS: Final = 120_000
"""About a minute's work on two cores. [operations]"""


RULES: Final = Path(__file__).parents[1] / "planted" / "rules"

RELEASE: Final = "4.3.1"
"""The release of a module that names none."""


def planted() -> list[str]:
    """Return the names of the planted modules."""
    return sorted(f"tests.planted.rules.{file.stem}" for file in RULES.glob("*.py"))


def release_of(module: str) -> str:
    """Return the release of Kafka beside which *module* shows."""
    return str(getattr(import_module(module), "RELEASE", RELEASE))


def noticed(plan: Plan) -> str | None:
    """Search as *plan* says; return how what is planted was noticed, or None."""
    begun = time.monotonic()
    progress = search(plan)
    if not progress.findings:
        return None
    finding = progress.findings[0]
    seconds = time.monotonic() - begun
    return (
        f"{progress.compared:,} operations, {seconds:.0f} s; {finding.steps} requests show it: {finding.differences[0]}"
    )


def noticed_beside(subject: Subject, name: str) -> str | None:
    """Search beside a class of Kafka's with the change *name* planted; return how it was noticed, or None."""
    begun = time.monotonic()
    task = conversations.task_of(subject.planted[name].kafka, subject)
    compared, finding = conversations.search(evolve(task, plants=(name,)), operations=MOST_OPERATIONS)
    if finding is None:
        return None
    seconds = time.monotonic() - begun
    steps = len(finding.exchanges)
    return f"{compared:,} requests, {seconds:.0f} s; {steps} requests show it: {finding.differences[0]}"


def grades(word: str) -> Iterator[tuple[str, str | None]]:
    """Yield how each change whose name has *word* was noticed, or None."""
    for module in planted():
        if word in module:
            yield module.rpartition(".")[2], noticed(plan_for(release_of(module), module))
    for subject in (conversations.COORDINATOR, GROUPS):
        for name in subject.planted:
            if word in f"{subject.name}: {name}":
                yield f"{subject.name}: {name}", noticed_beside(subject, name)


def main() -> None:
    """Say of each change how it was noticed."""
    unnoticed = 0
    try:
        for name, how in grades(sys.argv[1] if len(sys.argv) > 1 else ""):
            unnoticed += how is None
            _say(f"{name}: {how or 'NOT NOTICED'}")
    except OracleError as error:
        sys.exit(f"oracle mutants: {error}")
    _say(f"{unnoticed} unnoticed")
    sys.exit(1 if unnoticed else 0)


def plan_for(kafka: str, module: str) -> Plan:
    """
    Return the search beside the release *kafka* with *module* planted.

    Raises:
        OracleError: Its class cannot be built.
    """
    oracle = build(kafka, say=lambda text: _say(f"== {text}"))
    command = tuple(oracle.command())
    task = KafkaTask(command=command, profile=profile_of(kafka), kafka=kafka, plants=(module,))
    return Plan(task=task, operations=MOST_OPERATIONS, jobs=os.cpu_count() or 1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
