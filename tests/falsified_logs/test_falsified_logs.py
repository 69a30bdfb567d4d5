"""
A request log with a line falsified is caught, and one that only looks otherwise is not.

``make falsified`` tries all kinds, at several places of whole runs.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Final

import pytest

from sharestate.log_check import Verdict
from tests.falsified_logs.harmless import HARMLESS
from tests.falsified_logs.kinds import parts
from tests.falsified_logs.logs import RUN, Found, Run, judge

LINES: Final = 1500
"""How much of the run there is."""

GROUP: Final = "seq-b"
"""A group of the run with three share partitions."""

KINDS: Final = (
    "a fetch has acquired a much higher count",
    "a fetch has acquired a range twice",
    "a fetch was answered with another lock duration",
    "an acknowledgement was taken",
    "an accepted record was rejected",
    "one record more was acknowledged",
    "a write with a higher complete count",
    "a write with another leader epoch",
    "a write of an available record as accepted",
    "a write of other records",
    "a write is missing",
    "a read with a batch more",
)
"""Kinds of each sort, of those that the search gives up on quickly: for others it tries orders for seconds."""


@pytest.fixture(scope="module")
def run() -> Run:
    """The first lines of a run of which everything is explained, as test_verify.py holds."""
    return Run.read(RUN, LINES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_falsified_line_is_named(run: Run, kind: str, tmp_path: Path) -> None:
    """Where a line says what is not so, it is named, or the next event of its share partition."""
    keys = {(logged["request"]["groupId"], *part.partition) for logged in run.logged.values() for part in parts(logged)}
    (falsified,) = run.falsified(kind, keys, random.Random(kind), 1)  # noqa: S311 - the same each time

    found = judge(run, falsified, run.reports(falsified.lines, tmp_path, falsified.key[0]))

    assert found in {Found.NAMED, Found.NEXT}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_means_nothing_stays_clean(run: Run, name: str, tmp_path: Path) -> None:
    """Nothing contradicts where lines are in another order, times are not exact, or more is said, or less."""
    lines = HARMLESS[name](run.lines, random.Random(name))  # noqa: S311 - the same each time

    reports = run.reports(lines, tmp_path, GROUP)

    assert {report.verdict for report in reports} == {Verdict.EXPLAINED}


def test_rotated_files_stay_clean(run: Run, tmp_path: Path) -> None:
    """A log may be in several files, some of them compressed, that are named in any order."""
    parts_of_log = [run.lines[:300], run.lines[300:500], run.lines[500:]]
    old, middle, new = (tmp_path / name for name in ("request.log.2.gz", "request.log.1", "request.log"))
    old.write_bytes(gzip.compress("".join(parts_of_log[0]).encode()))
    middle.write_text("".join(parts_of_log[1]))
    new.write_text("".join(parts_of_log[2]))

    reports = run.reports_of([new, old, middle], GROUP)

    assert {report.verdict for report in reports} == {Verdict.EXPLAINED}
