"""
Streams as users write them, of events and of records of the state topic: ``stream_job.py DIRECTORY PLACE BATCH``.

It kills itself, and the JVM with it, when both streams have got to a place in a batch: no handler runs, and nothing is
flushed.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Barrier
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from sharestate.history import OUTPUTS, Order
from sharestate.spark import EVENTS, STATE_RECORDS, rebuild_stream, replay_stream
from sharestate.spark.batch_directory import BatchDirectory
from tests.spark.conftest import QUICK

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PLACES: Final = {"before it is written": "batch", "before it is committed": "commit", "before Spark commits": "retain"}
"""The method of a directory of batches that is called first after each place."""

STREAMS: Final = 2
PATIENCE_S: Final = 120


def kill_at(place: str, number: int) -> None:
    """Kill all processes of this session when both streams are at *place* in batch *number*."""
    name = PLACES[place]
    method = getattr(BatchDirectory, name)
    both_are_there = Barrier(STREAMS, timeout=PATIENCE_S)

    def killing(directory: BatchDirectory, batch: int, *more: Any) -> Any:  # noqa: ANN401 - what the method takes
        if batch == number:
            both_are_there.wait()
            os.killpg(0, signal.SIGKILL)
        return method(directory, batch, *more)

    setattr(BatchDirectory, name, killing)


def follow(spark: SparkSession, directory: str) -> tuple[StreamingQuery, StreamingQuery]:
    """Replay the files in ``events``, and rebuild the states of those in ``records``, each as a batch."""
    files = spark.readStream.option("maxFilesPerTrigger", 1)
    trigger = {"availableNow": True}
    events = files.schema(EVENTS).parquet(f"{directory}/events")
    replaying = replay_stream(
        events,
        f"{directory}/rows",
        f"{directory}/rows.checkpoint",
        order=Order.CAUSAL,
        outputs=frozenset(OUTPUTS),
        trigger=trigger,
    )
    records = files.schema(STATE_RECORDS).parquet(f"{directory}/records")
    rebuilding = rebuild_stream(records, f"{directory}/states", f"{directory}/states.checkpoint", trigger=trigger)
    return replaying, rebuilding


def main(directory: str, place: str, number: str) -> None:
    """Run both streams until they kill all processes."""
    kill_at(place, int(number))
    spark = SparkSession.builder.master("local[2]").config(map={**QUICK}).getOrCreate()
    for query in follow(spark, directory):
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
