"""
How much of Kafka's SharePartition a search reaches: ``python -m tests.oracle.coverage [--ops N] [--seed N]``.

The search runs under JaCoCo. Of the branches that were missed, ``unreachable-branches.json`` names those that no
conversation can reach, with reasons. The exit status is 1 if too many of the others were missed, too many are named, or
one that is named was reached.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from attrs import evolve, frozen

from sharestate.testing.search import Plan, search
from tests.oracle.build import FLAGS, RELEASES, Oracle, OracleError, build
from tests.oracle.search.profiles import profile_of
from tests.oracle.search.task import KafkaTask

FILE: Final = Path(__file__).parents[1] / "data/unreachable-branches.json"

CLASS: Final = "kafka/server/share/SharePartition"
"""What is measured."""

LEAST_COVERED: Final = 95
"""How many of the branches that can be reached have to be. [%]"""

MOST_UNREACHABLE: Final = 15
"""How many of all branches may be named unreachable. [%]"""


@frozen
class Line:
    """A line of SharePartition with branches."""

    number: int
    """Its number in SharePartition.java."""

    missed: int
    """The branches that were not taken."""

    covered: int
    """The branches that were."""


@frozen(kw_only=True)
class Coverage:
    """What was reached of SharePartition."""

    lines: tuple[Line, ...]
    """Its lines with branches."""

    unreachable: Mapping[int, int]
    """How many branches of which lines cannot be reached."""

    @property
    def total(self) -> int:
        """All branches."""
        return sum(line.missed + line.covered for line in self.lines)

    @property
    def covered(self) -> int:
        """The branches that were taken."""
        return sum(line.covered for line in self.lines)

    @property
    def reachable(self) -> int:
        """The branches that can be taken."""
        return self.total - sum(self.unreachable.values())

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The lines with branches that could have been taken and were not, and how many."""
        left = ((line.number, line.missed - self.unreachable.get(line.number, 0)) for line in self.lines)
        return tuple((number, missed) for number, missed in left if missed > 0)

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong."""
        missed = {line.number: line.missed for line in self.lines}
        refuted = [
            f"line {line} was reached" for line, named in self.unreachable.items() if missed.get(line, 0) < named
        ]
        if 100 * self.covered < LEAST_COVERED * self.reachable:
            refuted.append(f"less than {LEAST_COVERED} % of the branches that can be reached were")
        if 100 * (self.total - self.reachable) > MOST_UNREACHABLE * self.total:
            refuted.append(f"more than {MOST_UNREACHABLE} % of all branches are named unreachable")
        return tuple(refuted)


def unreachable(kafka: str) -> dict[int, int]:
    """Return how many branches of which lines are named unreachable in the release *kafka*; none if no list has it."""
    lists = json.loads(FILE.read_text(encoding="utf-8"))["lists"]
    return {row["line"]: row["branches"] for list_ in lists if list_["kafka"] == kafka for row in list_["rows"]}


def coverage(oracle: Oracle, plan: Plan, scratch: Path) -> Coverage:
    """
    Search as *plan* says, and return what was reached.

    Raises:
        OracleError: The search has found a difference.
    """
    measured = scratch / "jacoco.exec"
    agent = f"-javaagent:{_jar(oracle, 'org.jacoco.agent')}=destfile={measured},includes={CLASS.replace('/', '.')}"
    task = evolve(plan.task, command=tuple(oracle.command(flags=(*FLAGS, agent))))
    progress = search(evolve(plan, task=task))
    if progress.findings:
        message = f"sequence {progress.findings[0].number} shows a difference; make oracle tells more"
        raise OracleError(message)
    classes = scratch / "classes"
    with zipfile.ZipFile(_jar(oracle, "kafka_2.13")) as jar:
        jar.extract(f"{CLASS}.class", classes)
    report = scratch / "report.xml"
    command = ["java", "-jar", str(_jar(oracle, "org.jacoco.cli")), "report", str(measured), "--quiet"]
    subprocess.run([*command, "--classfiles", str(classes), "--xml", str(report)], check=True)
    return Coverage(lines=_lines(report), unreachable=unreachable(oracle.kafka))


def _jar(oracle: Oracle, name: str) -> Path:
    (jar,) = (jar for jar in oracle.jars.glob(f"{name}-*.jar") if not jar.stem.endswith(("-test", "-test-fixtures")))
    return jar


def _lines(report: Path) -> tuple[Line, ...]:
    root = ET.parse(report).getroot()  # noqa: S314 - JaCoCo wrote it a moment ago
    lines = (Line(*(int(line.get(name, 0)) for name in ("nr", "mb", "cb"))) for line in root.iter("line"))
    return tuple(line for line in lines if line.missed + line.covered)


def main() -> None:
    """Search, and say what was reached."""
    parser = ArgumentParser(prog="python -m tests.oracle.coverage", description="Measure what a search reaches.")
    parser.add_argument("--kafka", default=RELEASES[0], help=f"{' or '.join(RELEASES)}; {RELEASES[0]} unless given")
    parser.add_argument("--ops", type=int, default=200_000, help="how many requests to compare at least")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first sequence")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    arguments = parser.parse_args()
    try:
        oracle = build(arguments.kafka, say=lambda text: _say(f"== {text}"))
        task = KafkaTask(command=(), profile=profile_of(oracle.kafka), kafka=oracle.kafka)
        plan = Plan(task=task, operations=arguments.ops, seed=arguments.seed, jobs=arguments.jobs)
        with tempfile.TemporaryDirectory() as scratch:
            found = coverage(oracle, plan, Path(scratch))
    except OracleError as error:
        sys.exit(f"oracle coverage: {error}")
    sys.exit(1 if tell(found, oracle.kafka) else 0)


def tell(found: Coverage, kafka: str) -> bool:
    """Say what was reached of the release *kafka*; return whether something is wrong."""
    _say(f"branches of SharePartition (Kafka {kafka}): {found.total}")
    _say(f"  covered: {found.covered}, {100 * found.covered / found.total:.1f} % of all")
    _say(f"  can be reached: {found.reachable}, of which covered: {100 * found.covered / found.reachable:.1f} %")
    for number, missed in found.missing:
        _say(f"  missed: {missed} in line {number}")
    for complaint in found.complaints:
        _say(f"WRONG: {complaint}")
    return bool(found.complaints)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
