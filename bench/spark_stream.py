"""
What a batch of a stream costs, by the number of share partitions: ``python -m bench.spark_stream``.

The second of two batches has one event for each of a hundred share partitions, and carries the states of all others.
Each run is a query that begins, does this batch and ends, so what does not grow is in the figures, too. Linux only.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from bench.spark_rebuild import session, waiting
from bench.spark_replay import cpu_of_descendants, size_of
from bench.tables import table
from sharestate.history import Event, Order, create_history
from sharestate.history.synthetic import SyntheticHistory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARE_PARTITIONS: Final = (100, 100, 10_000, 20_000)
"""The numbers of share partitions, one after the other; the first run warms Java up."""

EVENTS: Final = 10
"""The events of each in the first batch: some are fetched and not acknowledged yet. [events]"""

TOUCHED: Final = 100
"""How many of them have an event in the second batch."""


def batch(spark: SparkSession, count: int, scratch: Path) -> tuple[float, float, float]:
    """Return wall and CPU time of the second batch, and the size of a state. [s, s, bytes]"""
    events = list(SyntheticHistory(share_partitions=count, events=count * EVENTS))
    last = {event.key: event.at_us for event in events}
    touched = [Event.of(key, EVENTS, "config", at_us=at_us, request={}) for key, at_us in list(last.items())[:TOUCHED]]
    taken = 0.0, 0.0
    for number, part in enumerate((events, touched)):
        path = scratch / "events" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True, parents=True)
        with create_history(path) as file:
            file.write(part)
        os.utime(path, (1_700_000_000 + number,) * 2)
        cpu, begin = cpu_of_descendants(), perf_counter()
        follow(spark, scratch)
        taken = perf_counter() - begin, cpu_of_descendants() - cpu
    return *taken, size_of(scratch / "rows" / "batch=1" / "kind=state", "*.parquet") / count


def follow(spark: SparkSession, scratch: Path) -> None:
    """Replay what is new."""
    from sharestate.spark import EVENTS as COLUMNS  # noqa: PLC0415 - an extra
    from sharestate.spark import replay_stream  # noqa: PLC0415 - an extra

    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(scratch / "events"))
    query = replay_stream(
        stream,
        str(scratch / "rows"),
        str(scratch / "checkpoint"),
        order=Order.CAUSAL,
        partitions=4,
        trigger={"availableNow": True},
    )
    query.awaitTermination()


def main() -> None:
    """Print a table."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(scratch)
        for number, count in enumerate(SHARE_PARTITIONS):
            with waiting(f"{count:,} share partitions"):
                wall, cpu, size = batch(spark, count, Path(scratch, str(number)))
            rows.append((f"{count:,}", f"{wall:.1f}", f"{cpu:.1f}", f"{size:.0f}"))
        spark.stop()
    head = ("share partitions", "a batch, s", "CPU, s", "bytes of a state")
    sys.stdout.write("\n".join(table(head, rows[1:])) + "\n")


if __name__ == "__main__":
    main()
