"""Runs of brokers on Spark, from log to tables: what is found without Spark, and what the brokers answered."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sharestate.broker_log import read_all_properties
from sharestate.errors import HistoryError
from sharestate.history import Header, Order, create_history, open_history
from sharestate.log_check import PartitionReport, check
from sharestate.spark import (
    EVENTS,
    ReplayResult,
    VerifiedLogs,
    import_logs,
    read_history,
    read_replay_stream,
    replay,
    replay_stream,
    verify,
)
from sharestate.spark.analysis import deliveries
from sharestate.spark.log_verification_columns import VERIFICATION
from tests.support.broker_answers import answers_of, brokers_of
from tests.support.one_truth import expect_one_truth

pytestmark = pytest.mark.spark

RUNS: Final = {"k431-seq": 6, "k440-dlq": 1, "k431-three": 5}
"""The runs, and how many share partitions are explained; nothing is known of the sixth of ``k431-three``."""


class Pipeline(NamedTuple):
    """All runs, imported by themselves, then checked and replayed together: their groups have different names."""

    arrival: str
    reports: list[PartitionReport]
    ordered: list[Any]
    verified: VerifiedLogs
    replayed: ReplayResult
    rows: list[dict[str, Any]]
    path: Path


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The pipeline, and the check of the same histories without Spark."""
    path = tmp_path_factory.mktemp("pipeline")
    for run in RUNS:
        brokers = brokers_of(run)
        import_logs(
            spark,
            [str(broker / "request.log.gz") for broker in brokers],
            str(path / "arrival" / run),
            segments=[str(broker / "segments") for broker in brokers],
            properties=read_all_properties([broker / "server.properties" for broker in brokers])[0],
        )
    arrival = str(path / "arrival" / "*" / "*.parquet")
    checked = [each for file in sorted((path / "arrival").glob("*/*.parquet")) for each in check(file)]
    verified = verify(read_history(spark, arrival), str(path / "checked"))
    replayed = replay(verified.events).write(str(path / "rows"))
    rows = [
        {name: value for name, value in row.asDict(recursive=True).items() if value is not None}
        for row in replayed.rows.orderBy("group_id", "topic_id", "partition", "seq", "at_us").collect()
    ]
    ordered = [event for each in checked for event in each.events()]
    return Pipeline(arrival, [each.report for each in checked], ordered, verified, replayed, rows, path)


def test_the_order_is_that_of_the_check_without_spark(pipeline: Pipeline) -> None:
    """Every event is the same, and so are the header, the verdicts with their counts, and the findings."""
    files = sorted((pipeline.path / "checked" / "history").iterdir())
    made = [event for file in files for event in open_history(file)]
    assert sorted(made, key=lambda each: (each.key, each.seq)) == sorted(
        pipeline.ordered, key=lambda each: (each.key, each.seq)
    )
    with open_history(files[0]) as history:
        assert history.header.order is Order.CAUSAL
        assert set(history.header.topics.values()) == {"m1", "m2"}

    found = {(row.group_id, row.topic_id, row.partition): row for row in pipeline.verified.verdicts.collect()}
    findings = Counter((row.group_id, row.topic_id, row.partition) for row in pipeline.verified.findings.collect())
    assert len(found) == len(pipeline.reports) == sum(RUNS.values()) + 1
    for report in pipeline.reports:
        said, row = report.to_json(), found[report.key]
        assert (row.verdict, row.topic, row.events) == (said["verdict"], said["topic"], said["events"])
        assert row.findings == findings[report.key] == len(said["findings"])
        for side in ("observed", "explained"):
            assert {name: row[f"{side}_{name}"] for name in said[side]} == said[side]
        assert {name: row[f"expiry_delay_{name}_ms"] for name in said["expiry_delay_ms"]} == said["expiry_delay_ms"]


@pytest.mark.parametrize("run", RUNS)
def test_a_replay_counts_what_the_check_counts_and_the_broker_answered(pipeline: Pipeline, run: str) -> None:
    """Deliveries, expiries, writes, dead letters and final states are the same, however they are counted."""
    answers = answers_of(run)
    reports = [report.to_json() for report in pipeline.reports if report.key in answers.acquired]

    assert expect_one_truth(pipeline.rows, reports, answers) == RUNS[run]


def test_tables_have_the_deliveries_that_brokers_answered(pipeline: Pipeline) -> None:
    """Each record of each answer is a delivery; of the share partition that is not checked there is none."""
    answered = sum((answers_of(run).acquired for run in RUNS), Counter[Any]())
    unknown = [report.key for report in pipeline.reports if report.verdict.value != "explained"]

    table = deliveries(pipeline.replayed)

    counted = table.groupBy("group_id", "topic_id", "partition").count().collect()
    assert {(row.group_id, row.topic_id, row.partition): row["count"] for row in counted} == {
        key: count for key, count in answered.items() if key not in unknown
    }
    assert {row.topic for row in table.where("group_id LIKE 'm_'").select("topic").distinct().collect()} == {"m1", "m2"}


def test_a_place_that_is_not_explained_is_a_row(pipeline: Pipeline) -> None:
    """It says where it stands and why, with the comments of its columns."""
    (row,) = pipeline.verified.findings.collect()

    assert (row.group_id, row.topic, row.partition, row.verdict) == ("ma", "m1", 0, "not_checked")
    assert row.reason.startswith("the share coordinator moved or stopped")
    for name, table in VERIFICATION.items():
        schema = pipeline.verified.events.sparkSession.read.parquet(f"{pipeline.path}/checked/{name}").schema
        assert [field.metadata["comment"] for field in schema] == [column.comment for column in table.columns]


def test_the_replay_has_the_verdicts(pipeline: Pipeline) -> None:
    """Each share partition has one, and what is lost for good has no rows but that."""
    rows = pipeline.replayed.verdicts().collect()
    lost = [row for row in rows if row.lost == "for_good"]

    assert Counter(row.verdict for row in rows) == {"explained": sum(RUNS.values()), "not_checked": 1}
    assert [row.group_id for row in lost] == ["ma"]
    kinds = {
        row["kind"] for row in pipeline.rows if (row["group_id"], row["topic_id"], row["partition"]) == lost[0][:3]
    }
    assert kinds == {"metric", "verdict"}


def test_a_stream_takes_what_was_written(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    """It makes the rows that the batch makes; the schema of the events says that they are in causal order."""
    events = spark.readStream.schema(pipeline.verified.events.schema).parquet(f"{pipeline.path}/checked/history")
    query = replay_stream(events, str(tmp_path / "rows"), str(tmp_path / "checkpoint"), trigger={"availableNow": True})
    query.awaitTermination()

    streamed = read_replay_stream(spark, str(tmp_path / "rows"))

    def counted(result: ReplayResult) -> dict[str, int]:
        return {row.kind: row["count"] for row in result.rows.groupBy("kind").count().collect() if row.kind != "state"}

    assert counted(streamed) == counted(pipeline.replayed)


def test_the_largest_share_partition_is_named(pipeline: Pipeline) -> None:
    """It is the one by which more tasks do not help."""
    largest = max(pipeline.reports, key=lambda report: report.events)

    assert pipeline.verified.largest() == (
        largest.key[0],
        largest.topic,
        largest.key[2],
        largest.events,
        sum(report.events for report in pipeline.reports),
    )


def test_what_cannot_be_checked_leaves_nothing(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    """Causal order, a target that is there, a directory of something else, events that are missing."""
    with pytest.raises(HistoryError, match="order: its events are in causal order"):
        verify(pipeline.verified.events, str(tmp_path / "checked"))
    with pytest.raises(HistoryError, match="is there already"):
        verify(read_history(spark, pipeline.arrival), str(tmp_path))
    with pytest.raises(HistoryError, match="expected a directory that 'sharestate spark verify' has written"):
        VerifiedLogs.read(spark, str(pipeline.path / "rows"))
    holes = read_history(spark, pipeline.arrival).where("seq != 3")
    with pytest.raises(PythonException, match="HistoryOrderError: seq: event 3 is missing"):
        verify(holes, str(tmp_path / "checked"))
    assert list(tmp_path.iterdir()) == []


def test_a_history_without_events_has_no_verdicts(spark: SparkSession, tmp_path: Path) -> None:
    """There is a history, without events, and it is read again."""
    with create_history(tmp_path / "none.parquet", Header(order=Order.ARRIVAL)):
        pass

    verified = verify(read_history(spark, str(tmp_path / "none.parquet")), str(tmp_path / "checked"))

    assert verified.events.isEmpty()
    assert verified.largest() is None


def test_workers_run_the_python_that_runs_here(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that Spark has read by itself are checked by the Python that runs here, too."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    arrival = spark.read.schema(EVENTS).parquet(str(pipeline.path / "arrival" / "k440-dlq" / "*.parquet"))

    verified = verify(arrival, str(tmp_path / "checked"))

    assert verified.verdicts.count() > 0
