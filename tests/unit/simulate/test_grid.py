"""Grids have every combination, each with its results, in this process or in others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

import pytest

from sharestate import MalformedInputError
from sharestate.simulate import Exponential, Load, grid_json, grid_of, rows_of, simulate, spread_of, sweep

MANY = ",".join(map(str, range(1, 500)))
LOAD = Load(records=200, processing=Exponential(20), failure_rate=0.1)

LONG_SWEEP: Final = """
from sharestate.simulate import Load, grid_of, sweep
def watch(points):
    for point in points:
        print("one is done", flush=True)
        yield point
if __name__ == "__main__":
    sweep(grid_of(Load(), ["records=10,1000000,1000001,1000002"]), range(100), processes=2, watch=watch)
"""


def test_every_combination_is_simulated() -> None:
    """In the order of the axes, the last one fastest; each is what the load alone comes to."""
    points = sweep(grid_of(LOAD, ["lock=1s,30s", "members=1,2,2"]), seeds=(3, 4))

    assert [tuple(point.changes.values()) for point in points] == [("1s", "1"), ("1s", "2"), ("30s", "1"), ("30s", "2")]
    for point in points:
        assert point.results == tuple(simulate(point.load, seed) for seed in (3, 4))
    assert points[1].load == LOAD.changed("lock=1s", "members=2")


def test_other_processes_come_to_the_same() -> None:
    """Results do not depend on the number of processes."""
    points = grid_of(LOAD, ["members=1,2"])

    assert sweep(points, processes=2) == sweep(points)


@pytest.mark.skipif(os.name == "nt", reason="signals go to groups of processes")
def test_an_interrupt_ends_other_processes() -> None:
    """Ctrl-C does not wait for what others simulate, minutes of it, and nothing is said but that it came."""
    with subprocess.Popen(
        [sys.executable, "-c", LONG_SWEEP], stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "one is done\n"
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()  # with whatever waits for it

    assert (process.returncode, said.count("Traceback"), said.splitlines()[-1:]) == (-2, 1, ["KeyboardInterrupt"])


def test_no_axis_is_the_load_alone() -> None:
    """A grid without axes has one point."""
    (point,) = grid_of(LOAD, [])

    assert (dict(point.changes), point.load) == ({}, LOAD)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["lock"], "expected SETTING=VALUE,VALUE"),
        (["lock=1s", "lock_duration=2s"], "lock_duration_ms: comes twice"),
        (["lock=1s,soon"], "lock_duration_ms: expected a time"),
        ([f"poll={MANY}", f"members={MANY}"], "more than 100000 points"),
    ],
)
def test_axes_that_make_no_sense_are_refused(axes: list[str], message: str) -> None:
    """With what is wrong."""
    with pytest.raises(MalformedInputError, match=message):
        grid_of(LOAD, axes)


def test_too_many_seeds_are_refused() -> None:
    """The number of simulations has a bound."""
    with pytest.raises(MalformedInputError, match="more than 100000 simulations"):
        sweep(grid_of(LOAD, []), range(100_001))


def test_rows_and_json_have_the_same_numbers() -> None:
    """A row for each simulation, with the changes beside what came of it."""
    points = sweep(grid_of(LOAD, ["records=100,200"]), seeds=(0, 1))
    rows = list(rows_of(points))
    value = grid_json(LOAD, points)

    assert [(row["records_set"], row["records"], row["seed"]) for row in rows] == [
        ("100", 100, 0),
        ("100", 100, 1),
        ("200", 200, 0),
        ("200", 200, 1),
    ]
    assert [result["duplicates"] for point in value["points"] for result in point["results"]] == [
        row["duplicates"] for row in rows
    ]


def test_a_measure_has_a_spread() -> None:
    """Its mean, the least and the greatest value; none where a seed has none."""
    (point,) = sweep(grid_of(Load(records=50, poison_rate=1), []), seeds=(0, 1))

    assert point.measure("archived_at_limit") == (50, 50, 50)
    assert point.measure("latency_p50_ms") is None
    assert spread_of([]) is None
