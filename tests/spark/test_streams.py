"""Streams of events and of records of the state topic, batch by batch, and what kills them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sharestate import MalformedInputError
from sharestate.coordinator import COORDINATOR_4_3
from sharestate.errors import UnreadableFileError
from sharestate.history import OUTPUTS, Event, Order, ReplaySettings, create_history, replay_events
from sharestate.history.synthetic import SyntheticHistory
from sharestate.spark import (
    EVENTS,
    read_rebuild_stream,
    read_replay_stream,
    replay_stream,
)
from sharestate.state_topic import TopicRecord
from tests.spark import stream_job
from tests.spark.conftest import HERE
from tests.spark.histories import frame, history, plain
from tests.spark.test_rebuild import last_offsets, on_spark, without_spark
from tests.spark.test_replay import on_spark as rows_on_spark
from tests.spark.test_replay import without_spark as rows_without_spark

pytestmark = pytest.mark.spark

EVERYTHING: Final = ReplaySettings(outputs=frozenset(OUTPUTS))
NOW: Final = {"availableNow": True}
PATIENCE_S: Final = 300


def in_files(events: Iterable[Event], directory: Path, files: int) -> None:
    """Write *events* as Parquet files that a stream reads one after the other, the first events of all in the first."""
    directory.mkdir(exist_ok=True)
    events = list(events)
    size = max(event.seq for event in events) // files + 1
    for number in range(files):
        path = directory / f"{number}.parquet"
        with create_history(path) as file:
            file.write(event for event in events if event.seq // size == number)
        os.utime(path, (1_700_000_000 + number,) * 2)  # by which Spark orders them


def record_files(spark: SparkSession, directory: Path, files: int) -> list[list[TopicRecord]]:
    """Write records of the state topic as Parquet files that a stream reads one after the other, and return them."""
    records = [record for number in range(8) for record in history(COORDINATOR_4_3, number, Random(number))]
    first = {record.state_partition: record.offset or 0 for record in reversed(records)}
    parts: list[list[TopicRecord]] = [[] for _ in range(files)]
    for record in records:
        since_first = (record.offset or 0) - first[record.state_partition]
        parts[min(since_first // 40, files - 1)].append(record)
    for number, part in enumerate(parts):
        before = set(directory.glob("*.parquet"))
        frame(spark, part, Random(number)).coalesce(1).write.mode("append").parquet(str(directory))
        (written,) = set(directory.glob("*.parquet")) - before
        os.utime(written, (1_700_000_000 + number,) * 2)
    return parts


def expected_states(parts: Iterable[list[TopicRecord]]) -> list[dict[str, Any]]:
    """Return the states that the loop without Spark has after *parts*."""
    records = list(chain.from_iterable(parts))
    return without_spark(plain(records, COORDINATOR_4_3), last_offsets(records))


def follow(spark: SparkSession, events: Path, to: Path, **settings: Any) -> None:  # noqa: ANN401 - those of the stream
    """Replay the files in *events*, each as a batch."""
    stream = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(events))
    arguments = {"outputs": EVERYTHING.outputs, "order": Order.CAUSAL, **settings}
    replay_stream(stream, str(to), f"{to}.checkpoint", trigger=NOW, **arguments).awaitTermination()


def kinds(directory: Path) -> Mapping[int, set[str]]:
    """Return the kinds of rows that each batch has."""
    return {
        int(batch.name.removeprefix("batch=")): {kind.name.removeprefix("kind=") for kind in batch.glob("kind=*")}
        for batch in directory.glob("batch=*")
    }


def test_batches_make_the_rows_of_all_events(spark: SparkSession, tmp_path: Path) -> None:
    """A stream of four batches, some without events of some share partitions, has the rows of one replay, each once."""
    events = list(SyntheticHistory(share_partitions=6, events=1500, hot_percent=50, seed=5))
    in_files(events, tmp_path / "events", 4)

    follow(spark, tmp_path / "events", tmp_path / "rows", partitions=3)

    result = read_replay_stream(spark, str(tmp_path / "rows"))
    assert rows_on_spark(result) == rows_without_spark(replay_events(events, EVERYTHING))
    ends = {"metric", "snapshot", "state"}
    assert [ends & found for _, found in sorted(kinds(tmp_path / "rows").items())] == [set(), set(), ends, ends]


def test_ten_thousand_share_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Every share partition is carried from batch to batch, though nothing happens to most of them."""
    quiet = list(SyntheticHistory(share_partitions=10_000, events=20_000))
    busy = list(SyntheticHistory(share_partitions=10, events=200))
    first = [event for event in quiet if (event.key, event.seq) not in {(each.key, each.seq) for each in busy}]
    in_files([*first, *busy], tmp_path / "events", 3)

    follow(spark, tmp_path / "events", tmp_path / "rows", outputs={"metric"})

    result = read_replay_stream(spark, str(tmp_path / "rows"))
    expected = replay_events([*first, *busy], ReplaySettings(outputs=frozenset({"metric", "state"})))
    assert rows_on_spark(result) == rows_without_spark(expected)


def test_old_batches_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """With a number of batches to keep, the directory has no others, and readers take the rows of those."""
    events = list(SyntheticHistory(share_partitions=1, events=100))
    in_files(events, tmp_path / "events", 4)

    follow(spark, tmp_path / "events", tmp_path / "rows", keep_batches=2)

    result = read_replay_stream(spark, str(tmp_path / "rows"))
    assert sorted(kinds(tmp_path / "rows")) == [2, 3]
    assert min(row.seq for row in result.transitions().collect()) >= 50
    assert [row.seq for row in result.states().collect()] == [99]


def test_every_kill_leaves_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    """
    A process that is killed anywhere in a batch goes on as if nothing had happened, and so do both its streams.

    What they make is what the loops without Spark make of all events, and of all records, offsets included.
    """
    events = list(SyntheticHistory(share_partitions=4, events=600, seed=6))
    in_files(events, tmp_path / "events", 3)
    records = record_files(spark, tmp_path / "records", 3)
    command = [sys.executable, "-m", "tests.spark.stream_job", str(tmp_path)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    variables |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(HERE / "conf")}
    root = HERE.parents[1]

    def run_until(place: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, place, "1"],
            cwd=root,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            start_new_session=True,
        )
        return done.returncode, done.stderr

    def states() -> list[dict[str, Any]]:
        return on_spark(read_rebuild_stream(spark, str(tmp_path / "states")))

    for place in stream_job.PLACES:
        code, errors = run_until(place)
        assert code == -signal.SIGKILL, errors
        committed = ["0.json", "1.json"][: 1 + (place == "before Spark commits")]
        for made in ("rows", "states"):
            assert sorted(path.name for path in (tmp_path / made / "_commits").iterdir()) == committed, place
        read_replay_stream(spark, str(tmp_path / "rows")).rows.count()
        assert states() == expected_states(records[: len(committed)]), place
    for query in stream_job.follow(spark, str(tmp_path)):
        assert query.awaitTermination(PATIENCE_S)

    result = read_replay_stream(spark, str(tmp_path / "rows"))
    assert rows_on_spark(result) == rows_without_spark(replay_events(events, EVERYTHING))
    assert len(states()) > 20
    assert states() == expected_states(records)
    assert sorted(path.name for path in (tmp_path / "states").glob("batch=*")) == ["batch=1", "batch=2"]
    assert not list(tmp_path.rglob("_temporary"))


def test_a_batch_with_a_gap_leaves_those_before(spark: SparkSession, tmp_path: Path) -> None:
    """An event that is missing ends the query; what was committed before it stays."""
    events = list(SyntheticHistory(share_partitions=1, events=40))
    in_files([event for event in events if event.seq != 25], tmp_path / "events", 2)

    with pytest.raises(StreamingQueryException, match="event 25 is missing"):
        follow(spark, tmp_path / "events", tmp_path / "rows")

    result = read_replay_stream(spark, str(tmp_path / "rows"))
    assert rows_on_spark(result) == rows_without_spark(replay_events(events[:20], EVERYTHING))


def test_a_directory_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A stream that has lost its checkpoint would write everything twice, so it may not write at all."""
    in_files(SyntheticHistory(share_partitions=1, events=40), tmp_path / "events", 1)
    follow(spark, tmp_path / "events", tmp_path / "rows")
    (tmp_path / "rows.checkpoint").rename(tmp_path / "lost")

    with pytest.raises(StreamingQueryException, match="written by another query"):
        follow(spark, tmp_path / "events", tmp_path / "rows")


def test_directories_of_other_things_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing committed, a version that is not known, and what another function has written."""
    commits = tmp_path / "_commits"
    commits.mkdir()
    with pytest.raises(UnreadableFileError, match="no batch is committed"):
        read_replay_stream(spark, str(tmp_path))
    commit = {"sharestate_stream": 1, "made_by": "rebuild_stream", "batch": 0, "query": "q", "outputs": []}
    for change, field in (({"sharestate_stream": 2}, "sharestate_stream"), ({}, "made_by")):
        (commits / "0.json").write_text(json.dumps({**commit, **change}))

        with pytest.raises(UnreadableFileError) as caught:
            read_replay_stream(spark, str(tmp_path))
        assert (caught.value.field, caught.value.file) == (field, str(commits / "0.json"))


def test_arguments_of_streams_are_judged_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Before the query begins, and before anything is written."""
    stream = spark.readStream.schema(EVENTS).parquet(str(tmp_path))

    wrong: tuple[tuple[str, Any], ...] = (("partitions", 0), ("keep_batches", 1), ("outputs", {"letter"}))
    for name, value in wrong:
        with pytest.raises(MalformedInputError) as caught:
            replay_stream(
                stream, str(tmp_path / "rows"), str(tmp_path / "checkpoint"), **{"order": Order.CAUSAL, name: value}
            )
        assert caught.value.field == name
    assert not list(tmp_path.iterdir())
