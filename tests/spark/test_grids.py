"""Grids of simulated loads on Spark: the same results as without it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sharestate.errors import MalformedInputError
from sharestate.simulate import Exponential, Load, grid_of, rows_of, sweep
from sharestate.spark import sweep_grid

pytestmark = pytest.mark.spark


def test_results_are_the_same(spark: SparkSession) -> None:
    """GridPoint by point and seed by seed, with numbers that are the same to the last bit."""
    load = Load(records=300, processing=Exponential(20), failure_rate=0.1, crash_rate=0.001)
    points = grid_of(load, ["lock=1s,5s", "members=1,3"])

    found = sweep_grid(spark, points, range(2), partitions=2)

    assert found == sweep(points, range(2))
    assert len(list(rows_of(found))) == 8
    with pytest.raises(MalformedInputError, match="expected 1 to"):
        sweep_grid(spark, [])
