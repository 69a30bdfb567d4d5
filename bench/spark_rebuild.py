"""
The state topic rebuilt on Spark and without it: ``python -m bench.spark_rebuild --records 1000000``.

Both read the same Parquet files by turns, in one process, and each figure is wall time; the ratio is what counts.
Snapshots are frequent, as on a busy cluster, so most records have been replaced: Spark drops them unread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.tables import table
from sharestate import SharePartitionKey, StateBatch
from sharestate.cli.spark_job import SETTINGS
from sharestate.coordinator import ShareSnapshot, ShareUpdate, StateRecord, encode_record
from sharestate.state_topic import StateTopic, TopicRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TOPIC: Final = "__share_group_state"
STATE_PARTITIONS: Final = 50
SHARE_PARTITIONS: Final = 2000
UPDATES_PER_SNAPSHOT: Final = 100
BATCHES: Final = (2, 20)
"""State batches of an update and of a snapshot."""

ROWS_PER_BATCH: Final = 50_000
GOAL: Final = 0.25
"""The most that Spark may take of the time without it. [ratio]"""


def records(count: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield partition, key and value of *count* records, share partition by share partition in turn."""
    random = Random(7)  # noqa: S311 - the same records every time
    counts = [random.randrange(UPDATES_PER_SNAPSHOT) for _ in range(SHARE_PARTITIONS)]
    for number, index in zip(range(count), cycle(range(SHARE_PARTITIONS)), strict=False):
        key = SharePartitionKey(
            group_id=f"group-{index % 40}", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=index // 40
        )
        start = number // SHARE_PARTITIONS * 10
        is_snapshot = number < SHARE_PARTITIONS or counts[index] == UPDATES_PER_SNAPSHOT
        counts[index] = 0 if is_snapshot and number >= SHARE_PARTITIONS else counts[index] + 1
        batches = tuple(
            StateBatch(
                start + 5 * at, start + 5 * at + random.randrange(5), random.choice((0, 2)), random.randint(1, 4)
            )
            for at in range(BATCHES[is_snapshot])
        )
        value = (
            ShareSnapshot(
                snapshot_epoch=0,
                state_epoch=1,
                leader_epoch=1,
                start_offset=start,
                create_timestamp_ms=number,
                write_timestamp_ms=number,
                state_batches=batches,
            )
            if is_snapshot
            else ShareUpdate(snapshot_epoch=0, leader_epoch=1, start_offset=start, state_batches=batches)
        )
        encoded_key, encoded_value = encode_record(StateRecord(key, value))
        assert encoded_value is not None  # noqa: S101 - no tombstone
        yield index % STATE_PARTITIONS, encoded_key, encoded_value


def write(path: Path, count: int) -> None:
    """Write records as Parquet, with the columns of a Kafka source."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
    }
    schema = pa.schema(list(types.items()))
    offsets = [0] * STATE_PARTITIONS
    rows: list[tuple[bytes, bytes, str, int, int]] = []
    with pq.ParquetWriter(path, schema) as writer:
        for number, (partition, key, value) in enumerate(records(count), 1):
            rows.append((key, value, TOPIC, partition, offsets[partition]))
            offsets[partition] += 1
            if len(rows) == ROWS_PER_BATCH or number == count:
                columns = zip(*rows, strict=True)
                writer.write_batch(
                    pa.record_batch([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema)
                )
                rows = []


def without_spark(path: Path) -> int:
    """Rebuild in a loop, and return the number of share partitions."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    topic = StateTopic()
    for batch in pq.ParquetFile(path).iter_batches():
        for key, value, _, partition, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            topic.add(TopicRecord(str(path), None, None, partition, offset, None, key, value))
    return len(topic.share_partitions())


def on_spark(spark: SparkSession, path: Path) -> int:
    """Rebuild on Spark, and return the number of share partitions."""
    from sharestate.spark import rebuild_state  # noqa: PLC0415 - an extra

    return len(rebuild_state(spark.read.parquet(str(path)), partitions=8).collect())


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is being done, and since when; nothing elsewhere."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    is_quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_quiet, refresh_per_second=1) as bar:
        bar.add_task(what, total=None)
        yield


def session(scratch: str, master: str = "local[*]") -> SparkSession:
    """Return a session, on all processors of this machine unless *master* says otherwise."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.memory": "2g",
        "spark.local.dir": scratch,
        "spark.sql.files.maxPartitionBytes": "16m",
        **SETTINGS,
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def seconds(spark: SparkSession, path: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Return how long each takes, round by round, one after the other. [s]"""
    taken: tuple[list[float], list[float]] = [], []
    for number in range(1, rounds + 1):
        with waiting(f"round {number} of {rounds}"):
            begin = perf_counter()
            expected = without_spark(path)
            between = perf_counter()
            found = on_spark(spark, path)
            end = perf_counter()
        if found != expected:
            message = f"{found} share partitions on Spark, {expected} without"
            raise AssertionError(message)
        taken[0].append(between - begin)
        taken[1].append(end - between)
    return taken


def main() -> None:
    """Print a table; the first round on Spark includes what Java does once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "records.parquet")
        with waiting("records"):
            write(path, chosen.records)
        spark = session(scratch)
        plain, on = seconds(spark, path, chosen.rounds)
        spark.stop()
    rows = [
        (str(number), f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}")
        for number, (one, two) in enumerate(zip(plain, on, strict=True), 1)
    ]
    ratio = median(two / one for one, two in zip(plain, on, strict=True))
    lines = [
        f"{chosen.records:,} records, {os.cpu_count()} processors",
        "",
        *table(("round", "without Spark, s", "on Spark, s", "ratio"), rows),
        "",
        f"median ratio {ratio:.2f}; goal {GOAL}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
