"""
A job as users write one: ``rebuild_job.py RECORDS.parquet HISTORY.parquet RESULT.json [SEGMENTS]``.

It runs wherever Spark runs it: on a cluster with the archive, or on Spark Connect if ``SPARK_REMOTE`` names a server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import RecordBatch
from pyspark.sql import SparkSession

import sharestate
from sharestate.spark import health_table, read_history, rebuild_state, register, replay


def builds(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield which build of the library a worker runs."""
    for batch in batches:
        yield RecordBatch.from_pydict({"is_compiled": [sharestate.is_compiled()] * batch.num_rows})


def main(records: str, history: str, result: str, segments: str | None = None) -> None:
    """Write the states that *records* add up to, and a replay, as JSON; with *segments*, more of what there is, too."""
    spark = SparkSession.builder.getOrCreate()
    frame = spark.read.parquet(records)
    replayed = replay(read_history(spark, history), partitions=2).write(f"{result}.rows")
    found: dict[str, Any] = {
        "library": sharestate.__file__,
        "is_compiled": [row.is_compiled for row in spark.range(1).mapInArrow(builds, "is_compiled boolean").collect()],
        "session": type(spark).__module__,
        "writes": [row.asDict(recursive=True) for row in replayed.writes().collect()],
        "states": [row.asDict(recursive=True) for row in rebuild_state(frame).collect()],
    }
    if segments is not None:
        found["health"] = health_table(frame).count()
        register(spark)
        topic = spark.read.format("share_group_state").load(segments)
        found["segments"] = [row.start_offset for row in rebuild_state(topic).sort("start_offset").collect()]
    Path(result).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
