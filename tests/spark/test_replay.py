"""Histories replayed on Spark: the same rows as without it, and what is refused."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    KAFKA_4_4,
    KIP_932,
    AcknowledgementBatch,
    AcquiredRecords,
    MalformedInputError,
    Profile,
    ShareConfig,
)
from sharestate.history import (
    OUTPUTS,
    Event,
    Header,
    HistoryError,
    Order,
    OutputRow,
    ReplaySettings,
    create_history,
    replay_events,
    replay_files,
)
from sharestate.history.arrow import encode_events, encode_rows
from sharestate.history.columns import AppendedBatch
from sharestate.history.synthetic import SyntheticHistory
from sharestate.spark import EVENTS, REPLAY_ROWS, REPLAY_TABLES, ReplayResult, read_history, replay
from sharestate.spark.batch_replay import replay_batches
from sharestate.spark.history_schemas import ORDER

pytestmark = pytest.mark.spark

EVERYTHING: Final = frozenset(OUTPUTS)
KEY: Final = ("g", "AAECAwQFBgcICQoLDA0ODw", 0)


def frame(spark: SparkSession, events: Iterable[Event], seed: int = 1) -> DataFrame:
    """Return *events* as a frame, shuffled."""
    table = pa.Table.from_batches([encode_events(list(events))])
    events_frame = spark.createDataFrame(table)
    shuffled = events_frame.withColumn("at_random", F.rand(seed)).repartition(4, "at_random")
    return shuffled.withColumn("kind", F.col("kind").alias("kind", metadata={ORDER: Order.CAUSAL.value}))


def counted(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Return *rows* with how often each of them is there."""
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def on_spark(result: ReplayResult) -> Counter[str]:
    """Return the rows of all kinds."""
    return counted(row.asDict(recursive=True) for row in result.rows.select(*REPLAY_ROWS.names).collect())


def without_spark(rows: Iterable[OutputRow]) -> Counter[str]:
    """Return the rows of the loop without Spark, nulls and all."""
    return counted(row for batch in encode_rows(list(rows)) for row in batch.to_pylist())


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set values of the session for a while."""
    before = {name: str(spark.conf.get(name)) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932], ids=lambda profile: profile.name)
def test_rows_are_those_of_the_loop_without_spark(spark: SparkSession, profile: Profile) -> None:
    """Whatever has happened, in whatever order it is read, every row is there as often as without Spark."""
    events = list(SyntheticHistory(share_partitions=12, events=3000, hot_percent=40, seed=3, profile=profile))
    expected = without_spark(replay_events(events, ReplaySettings(profile=profile, outputs=EVERYTHING)))

    result = replay(frame(spark, events), profile=profile, config=ShareConfig(), outputs=EVERYTHING)

    assert on_spark(result) == expected


def test_tables_are_read_from_what_was_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """Each kind has its table with its columns and their meanings, with adaptive execution on, as it is by default."""
    events = list(SyntheticHistory(share_partitions=5, events=2000, seed=4))
    expected = Counter(row.kind for row in replay_events(events, ReplaySettings(outputs=EVERYTHING)))
    path = str(tmp_path / "rows")

    with settings(spark, {"spark.sql.adaptive.enabled": "true"}):
        written = replay(frame(spark, events), outputs=EVERYTHING, partitions=3).write(path)
    read = ReplayResult.read(spark, path)

    tables = {kind: getattr(read, f"{kind}s")() for kind in OUTPUTS}
    rows = without_spark(replay_events(events, ReplaySettings(outputs=EVERYTHING)))
    assert on_spark(written) == on_spark(read) == rows
    assert {kind: table.count() for kind, table in tables.items()} == {kind: expected[kind] for kind in OUTPUTS}
    for kind, table in tables.items():
        assert [(each.name, each.dataType.simpleString(), each.metadata) for each in table.schema] == [
            (each.name, each.dataType.simpleString(), each.metadata) for each in REPLAY_TABLES[kind]
        ]


def test_the_plain_runners_files_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """What ``sharestate history replay`` has written is a result, too."""
    source = tmp_path / "history.parquet"
    events = list(SyntheticHistory(share_partitions=3, events=500))
    with create_history(source) as file:
        file.write(events)
    summary = replay_files(source, tmp_path / "rows")

    result = ReplayResult.read(spark, str(tmp_path / "rows"))

    assert result.writes().count() == summary.rows["write"] > 0
    assert result.acquisitions().count() == summary.rows["acquisition"] > 0


def test_kinds_that_were_not_made_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A table of a kind that nobody asked for is refused rather than empty, after reading, too."""
    path = str(tmp_path / "rows")
    result = replay(frame(spark, SyntheticHistory(share_partitions=1, events=50)), outputs={"write"})
    result.write(path)

    for each in (result, ReplayResult.read(spark, path)):
        with pytest.raises(MalformedInputError, match="expected one of write, got 'transition'"):
            each.transitions()


def test_nothing_makes_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Without events every table is empty, also when what was written is read again."""
    written = replay(spark.createDataFrame([], EVENTS), order=Order.CAUSAL).write(str(tmp_path / "rows"))
    read = ReplayResult.read(spark, str(tmp_path / "rows"))

    for result in (written, read):
        assert result.writes().collect() == result.snapshots().collect() == []


def test_there_is_one_shuffle(spark: SparkSession) -> None:
    """The plan has a single exchange, with the number of tasks that was asked for, and one sort above it."""
    plan = StringIO()
    events = spark.createDataFrame([], EVENTS)

    with redirect_stdout(plan):
        replay(events, order=Order.CAUSAL, partitions=7).rows.explain()

    text = plan.getvalue()
    assert text.count("Exchange") == 1
    assert "hashpartitioning(group_id" in text
    assert ", 7), REPARTITION_BY_NUM" in text
    assert text.index("MapInArrow") < text.index("Sort [") < text.index("Exchange")
    assert text.count("Sort [") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda events: events.where("seq != 17"), "event 17 is missing: 18 comes after 16"),
        (lambda events: events.union(events.where("seq = 17")), "event 17 comes again, or too late"),
        (lambda events: events.where("seq > 0"), "the first event is 1: the beginning is missing"),
    ],
    ids=["missing", "twice", "the first one is missing"],
)
def test_events_that_are_missing_or_come_twice_are_refused(spark: SparkSession, change: Any, message: str) -> None:  # noqa: ANN401 - a lambda
    """The job fails, and names the share partition and the event."""
    events = frame(spark, SyntheticHistory(share_partitions=2, events=100))

    with pytest.raises(PythonException, match=message):
        replay(change(events)).rows.collect()


def test_a_rebalanced_frame_is_refused(spark: SparkSession) -> None:
    """A hint that splits share partitions among tasks makes the fold fail; `replay` itself shuffles after it."""
    events = list(SyntheticHistory(share_partitions=2, events=400))
    split = frame(spark, events).hint("rebalance")
    values = {"spark.sql.adaptive.enabled": "true", "spark.sql.adaptive.coalescePartitions.enabled": "false"}

    with settings(spark, values):
        ordered = split.sortWithinPartitions("group_id", "topic_id", "partition", "seq").drop("at_random")
        with pytest.raises(PythonException, match=r"is missing"):
            ordered.mapInArrow(partial(replay_batches, ReplaySettings()), REPLAY_ROWS).collect()
        found = on_spark(replay(split, outputs=EVERYTHING))

    assert found == without_spark(replay_events(events, ReplaySettings(outputs=EVERYTHING)))


def hot_events(fetches: int) -> Iterator[Event]:
    """Yield the events of a share partition whose records are fetched and accepted, ten at a time."""
    seq = count()

    def event(kind: str, request: dict[str, Any], response: dict[str, Any] | None) -> Event:
        return Event.of(KEY, next(seq), kind, member_id="member", request=request, response=response)

    yield event("config", {"auto_offset_reset": "earliest"}, None)
    yield event("initialize", {"leader_epoch": 0}, {"state_epoch": 0, "start_offset": 0, "state_batches": ()})
    for first in range(0, 10 * fetches, 10):
        last = first + 9
        fetched = {"fetch_offset": first, "batches": (AppendedBatch(first, last),)}
        yield event("fetch", fetched, {"acquired": (AcquiredRecords(first, last, 1),)})
        yield event("acknowledge", {"batches": (AcknowledgementBatch(first, last, (1,)),)}, {})


@pytest.mark.skipif(sys.platform != "linux", reason="it is Linux that says how much memory a process has had")
def test_memory_does_not_grow_with_a_hot_share_partition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker needs less than half the memory that the events of one share partition take, adaptive execution on."""

    def memory(name: str) -> int:
        return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) * 1024

    def measured(file: str, settings: ReplaySettings, batches: Any) -> Iterator[Any]:  # noqa: ANN401 - Arrow has no types
        import sharestate.history.arrow_replay  # noqa: F401, PLC0415 - no part of what is measured

        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = memory("VmRSS")
        yield from replay_batches(settings, batches)
        Path(file).write_text(str(memory("VmHWM") - before))

    fetches, long_name = 10_000, 12_000
    events = frame(spark, hot_events(fetches)).withColumn("member_id", F.repeat("member_id", long_name // 6))
    values = {"spark.sql.adaptive.enabled": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "250"}
    file = tmp_path / "peak"
    monkeypatch.setattr("sharestate.spark.batch_replay.replay_batches", partial(measured, str(file)))

    with settings(spark, values):
        metrics = (
            replay(events, order=Order.CAUSAL, outputs={"metric"}, lacks={"write"}, partitions=1).metrics().collect()
        )

    assert {row.name: row.value for row in metrics}["records_acquired"] == 10 * fetches
    # It was 54 MB, most of it code that had not run before, and 252 MB for a fold over a list of all batches.
    assert 0 < 2 * int(file.read_text()) < 2 * fetches * long_name


def test_columns_are_judged_at_once(spark: SparkSession) -> None:
    """A column that is missing, or of another type, is named before anything runs."""
    events = spark.createDataFrame([], EVENTS)

    with pytest.raises(HistoryError, match="missing") as missing:
        replay(events.drop("connection"), order=Order.CAUSAL)
    with pytest.raises(HistoryError, match="expected int64, got string") as other:
        replay(events.withColumn("seq", F.lit("1")), order=Order.CAUSAL)

    assert (missing.value.field, other.value.field) == ("connection", "seq")


def test_only_events_in_causal_order_are_replayed(spark: SparkSession, tmp_path: Path) -> None:
    """Those in order of arrival are refused with the command that orders them, and so is a frame that does not say."""
    create_history(tmp_path / "arrival.jsonl", Header(order=Order.ARRIVAL)).close()
    arrival = read_history(spark, str(tmp_path / "arrival.jsonl"))
    silent = spark.createDataFrame([], EVENTS)

    for events, order, message in (
        (arrival, None, "sharestate log verify"),
        (silent, None, "nothing says"),
        (silent, Order.ARRIVAL, "sharestate log verify"),
    ):
        with pytest.raises(HistoryError, match=message) as caught:
            replay(events, order=order)
        assert caught.value.field == "order"


def test_arguments_are_judged_at_once(spark: SparkSession) -> None:
    """Unknown kinds, and a number of tasks that is none, are refused by the name of the argument."""
    events = spark.createDataFrame([], EVENTS)

    wrong: tuple[tuple[str, Any], ...] = (("lacks", {"letter"}), ("outputs", {"letter"}), ("partitions", 0))
    for name, value in wrong:
        with pytest.raises(MalformedInputError) as caught:
            replay(events, **{"order": Order.CAUSAL, name: value})
        assert caught.value.field == name


# ---- files


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_histories_are_read_from_files(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    """A history may be in parts, in files of each format, and what their headers say they lack reaches the replay."""
    whole = list(SyntheticHistory(share_partitions=4, events=600))
    for number, part in enumerate((range(100), range(100, 600))):
        with create_history(tmp_path / f"part {number}{suffix}", Header(lacks={"write"})) as file:
            file.write(event for event in whole if event.seq in part)
    settings = ReplaySettings(lacks=frozenset({"write"}), outputs=EVERYTHING)

    events = read_history(spark, str(tmp_path))

    assert events.count() == 600
    assert on_spark(replay(events, outputs=EVERYTHING)) == without_spark(replay_events(whole, settings))


def test_files_that_are_no_histories_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A version that is not known, a file of another kind, one without a byte beside others, and no file at all."""
    later, other, empty = tmp_path / "later.jsonl", tmp_path / "other.txt", tmp_path / "empty"
    later.write_text('{"sharestate_history": 3}\n')
    other.write_text("Hello.\n")
    empty.mkdir()

    with pytest.raises(HistoryError, match="version") as caught:
        read_history(spark, str(later))
    with pytest.raises(HistoryError, match="expected a name that ends with"):
        read_history(spark, str(other))
    with pytest.raises(HistoryError, match="no files"):
        read_history(spark, str(empty))
    for name in ("is not é%20.jsonl", "is.jsonl"):
        create_history(empty / name).close()
    (empty / "is not é%20.jsonl").write_bytes(b"")
    with pytest.raises(HistoryError, match=r"is not é%20\.jsonl: expected a history, got an empty file"):
        read_history(spark, str(empty))

    assert (caught.value.line, caught.value.field) == (1, "sharestate_history")


def test_files_that_do_not_belong_together_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Histories that lack different kinds of events, or have different formats, are not replayed as one."""
    for name, lacks in (("a.jsonl", {"write"}), ("b.jsonl", set()), ("c.parquet", set())):
        create_history(tmp_path / name, Header(lacks=lacks)).close()

    with pytest.raises(HistoryError, match=r"lacks nothing, but .*a\.jsonl write"):
        read_history(spark, str(tmp_path / "[ab].jsonl"))
    with pytest.raises(HistoryError, match="has another format than"):
        read_history(spark, str(tmp_path / "[bc]*"))


def test_a_malformed_event_is_named_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    """The job fails with the place of the event in its file."""
    path = tmp_path / "history.jsonl"
    create_history(path).close()
    with path.open("a") as file:
        file.write('{"group_id": "g", "topic_id": "t", "partition": 0, "seq": 0, "kind": "fence", "at_us": "now"}\n')

    with pytest.raises(PythonException, match=r"history\.jsonl:2: at_us"):
        read_history(spark, str(path)).collect()


def test_workers_run_the_python_that_runs_here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``PYSPARK_PYTHON`` they would take the first ``python3`` on the path."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")

    result = replay(frame(spark, SyntheticHistory(share_partitions=1, events=20, seed=1)))

    assert result.metrics().count() > 0


def test_what_is_no_replay_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A table of events would be a replay without rows."""
    frame(spark, SyntheticHistory(share_partitions=1, events=20, seed=1)).write.parquet(str(tmp_path / "events"))

    with pytest.raises(HistoryError, match="expected the rows of a replay, got a table with other columns"):
        ReplayResult.read(spark, str(tmp_path / "events"))
