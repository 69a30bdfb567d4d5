"""Grids of simulated loads on Spark: each point is a task; the results are those of ``sharestate.simulate.sweep``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from sharestate.json_lines import read_json, write_json
from sharestate.simulate import GridPoint, Load, SimulationResult, sweep
from sharestate.simulate.grid import MOST_SIMULATIONS
from sharestate.spark.workers import use_this_python
from sharestate.values.checks import integer, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

_POINTS: Final = StructType([StructField("point", IntegerType()), StructField("load", StringType())])
_RESULTS: Final = StructType([StructField("point", IntegerType()), StructField("results", StringType())])


def sweep_grid(
    spark: SparkSession, points: Sequence[GridPoint], seeds: Sequence[int] = (0,), *, partitions: int | None = None
) -> list[GridPoint]:
    """
    Simulate the points of a grid.

    Args:
        spark: The session.
        points: The points, as ``sharestate.simulate.grid_of`` makes them.
        seeds: The seeds; each point is simulated with each of them, in one task.
        partitions: The number of tasks; None for as many as there are points. [tasks]

    Returns:
        What ``sharestate.simulate.sweep`` returns: the points in the same order with their results.

    Raises:
        MalformedInputError: There are no points, or too many simulations, or a seed is no integer.
    """
    if not points or len(points) * len(seeds) > MOST_SIMULATIONS:
        refuse(f"expected 1 to {MOST_SIMULATIONS} simulations", "points")
    numbers = tuple(integer(seed, "seeds") for seed in seeds)
    count = len(points) if partitions is None else integer(partitions, "partitions", 1)
    use_this_python(spark)
    loads = [(number, write_json(point.load.to_json())) for number, point in enumerate(points)]
    frame = spark.createDataFrame(loads, _POINTS).repartition(count)
    rows = frame.mapInArrow(partial(_simulate, numbers), _RESULTS).collect()
    results = {row.point: tuple(map(SimulationResult.from_json, read_json(row.results))) for row in rows}
    return [point._replace(results=results[number]) for number, point in enumerate(points)]


def _simulate(seeds: tuple[int, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - where the task runs

    for batch in batches:
        for row in batch.to_pylist():
            (point,) = sweep([GridPoint({}, Load.from_json(read_json(row["load"])))], seeds)
            results = write_json([result.to_json() for result in point.results])
            yield pa.RecordBatch.from_pydict({"point": pa.array([row["point"]], pa.int32()), "results": [results]})
