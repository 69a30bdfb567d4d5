"""
A stream as users write one: ``stream_job.py EVENTS DIRECTORY CHECKPOINT [PLACE BATCH]``.

With a place it kills itself, and the JVM with it, when it gets there in that batch: no handler runs, and nothing is
flushed.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final

from pyspark.sql import SparkSession

from sharestate.history import OUTPUTS
from sharestate.spark import EVENTS, replay_stream
from sharestate.spark.batch_directory import BatchDirectory
from tests.spark.conftest import QUICK

PLACES: Final = {"before it is written": "batch", "before it is committed": "commit", "before Spark commits": "retain"}
"""The method of a directory of batches that is called first after each place."""


def kill_at(place: str, number: int) -> None:
    """Kill all processes of this session when the stream gets to *place* in batch *number*."""
    name = PLACES[place]
    method = getattr(BatchDirectory, name)

    def killing(directory: BatchDirectory, batch: int, *more: Any) -> Any:  # noqa: ANN401 - what the method takes
        if batch == number:
            os.killpg(0, signal.SIGKILL)
        return method(directory, batch, *more)

    setattr(BatchDirectory, name, killing)


def main(events: str, directory: str, checkpoint: str, place: str | None = None, number: str = "") -> None:
    """Replay the files in *events*, each as a batch."""
    if place is not None:
        kill_at(place, int(number))
    spark = SparkSession.builder.master("local[2]").config(map={**QUICK}).getOrCreate()
    stream = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(events)
    trigger = {"availableNow": True}
    query = replay_stream(stream, directory, checkpoint, outputs=frozenset(OUTPUTS), trigger=trigger)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
