"""What callers of the workloads read, and what is counted of it."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench import instructions, workloads
from bench.jvm.library import ROOT, THIS_TREE
from bench.machine import configured, python_build
from bench.partitions import acknowledge_all, acquire, opened
from bench.workloads import EVERY_BATCH, READINGS, RECORDS, RUNS, WORKLOADS, repeated
from sharestate import SharePartition, StateBatch, StateRun, WriteShareGroupState

PRINTS_A_SUM = """#!{python}
import os, sys
print("==1== I   refs:      " + f"{{int(sys.argv[-1]) * 1_000 + 70_000_000:,}}", file=sys.stderr)
"""
DIES = "#!{python}\nimport sys\nsys.exit('no such tool')\n"


def written(workload: str) -> list[WriteShareGroupState]:
    """Return the writes of a workload, none of which was looked at."""
    calls, _ = WORKLOADS[workload]
    partition, writes = opened(), list[WriteShareGroupState]()
    acquire(partition, 0, RECORDS)
    for call in calls(0):
        acknowledge_all(partition, call, read=writes.append)
    return writes


@pytest.mark.parametrize("workload", WORKLOADS)
def test_both_readings_see_every_record_once(workload: str) -> None:
    """Runs and state batches say the same of the 500 records."""
    writes = written(workload)

    batches = [batch for write in writes for batch in write.state_batches]
    assert sorted(o for batch in batches for o in range(batch.first_offset, batch.last_offset + 1)) == [*range(RECORDS)]
    assert [batch for write in writes for run in READINGS[RUNS](write) for batch in run.batches()] == batches  # type: ignore[attr-defined]


def test_runs_are_read_without_making_a_state_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the runs does not pay for state batches; whoever reads every state batch does."""
    made, original = [], StateRun.batches

    def batches(run: StateRun) -> Iterator[StateBatch]:
        made.append(run)
        return original(run)

    monkeypatch.setattr(StateRun, "batches", batches)
    (write,) = written("one entry, 500 types")

    READINGS[RUNS](write)
    assert made == []
    READINGS[EVERY_BATCH](write)
    assert made != []


def test_a_workload_is_run_as_often_as_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the difference of two counts is divided by is what was run."""
    acquired: list[int] = []

    def counted(partition: SharePartition, first: int, size: int) -> None:
        acquired.append(first)
        acquire(partition, first, size)

    monkeypatch.setattr(workloads, "acquire", counted)
    (run,) = repeated("whole", times=3)
    run()

    assert acquired == [0, 500, 1000]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Another program in the place of valgrind: the one that is the parameter."""
    program = tmp_path / "valgrind"
    program.write_text(request.param.format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("fake", [PRINTS_A_SUM], indirect=True)
def test_what_python_needs_to_start_cancels_out() -> None:
    """A batch takes the difference of two runs by the difference of their lengths."""
    assert instructions.lacking() is None
    assert instructions.instructions("whole", (THIS_TREE, ROOT)) == 1_000


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("fake", [DIES], indirect=True)
def test_a_count_that_fails_says_why() -> None:
    """What was written to standard error becomes the message."""
    with pytest.raises(instructions.NotCountedError, match="no such tool"):
        instructions.instructions("whole", (THIS_TREE, ROOT))


def test_without_valgrind_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what is missing and how to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "apt-get install valgrind" in (instructions.lacking() or "")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'", "Py_ENABLE_SHARED": 0},
            "configured with --enable-optimizations (PGO) and with --with-lto (LTO), linked statically",
        ),
        (
            {"CONFIG_ARGS": "'--enable-shared'", "Py_ENABLE_SHARED": 1},
            "configured without --enable-optimizations (PGO) and without --with-lto (LTO), shared library",
        ),
        ({}, "configured without --enable-optimizations (PGO) and without --with-lto (LTO), linked statically"),
    ],
)
def test_the_build_of_python_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, object], expected: str
) -> None:
    """A build without profile-guided optimization is slower, so the figures say which one it was."""
    monkeypatch.setattr(sysconfig, "get_config_var", variables.get)

    assert configured() == expected
    assert python_build()[1] == f"{expected};"
