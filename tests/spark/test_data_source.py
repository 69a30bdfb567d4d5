"""The state topic as a data source, from log segments."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from sharestate.spark import STATE_RECORDS, rebuild_state, register
from sharestate.state_topic import StateTopic, StateTopicFile, state_topic_files

pytestmark = pytest.mark.spark

SEGMENTS: Final = Path(__file__).parents[1] / "data" / "segments"
DUMP: Final = [
    (each.state_partition, each.offset, each.key, each.value) for each in StateTopicFile(SEGMENTS / "state.jsonl")
]
"""What a consumer of the same topic got."""

FORMAT: Final = "share_group_state"


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    register(spark)


def test_segments_are_read_as_a_consumer_gets_them(spark: SparkSession) -> None:
    """Every record, with its place and time, a task for each partition."""
    frame = spark.read.format(FORMAT).load(str(SEGMENTS))
    rows = frame.sort("partition", "offset").collect()

    assert frame.schema == STATE_RECORDS
    assert [(row.partition, row.offset, bytes(row.key), row.value and bytes(row.value)) for row in rows] == sorted(DUMP)
    assert {row.topic for row in rows} == {"__share_group_state"}
    assert frame.rdd.getNumPartitions() == 3
    times = frame.selectExpr("partition", "offset", "unix_millis(timestamp)").collect()
    consumed = (
        (each.state_partition, each.offset, each.timestamp_ms) for each in StateTopicFile(SEGMENTS / "state.jsonl")
    )
    assert sorted(map(tuple, times)) == sorted(consumed)


def test_states_are_rebuilt_from_segments(spark: SparkSession) -> None:
    """The rows have the columns that rebuilding takes."""
    topic = StateTopic()
    topic.read(state_topic_files(SEGMENTS))

    rows = rebuild_state(spark.read.format(FORMAT).load(str(SEGMENTS))).collect()

    assert {(row.group_id, row.topic_id, row.partition, row.start_offset) for row in rows} == {
        (*(each.key.group_id, each.key.topic_id, each.key.partition), each.state.start_offset)
        for each in topic.share_partitions()
    }


def test_options_leave_partitions_and_groups_out(spark: SparkSession) -> None:
    """One task reads one partition, and other groups' records are not read; also in SQL."""
    two = spark.read.format(FORMAT).option("partitions", "0, 2").load(str(SEGMENTS))
    assert {row.partition for row in two.select("partition").distinct().collect()} == {0, 2}
    assert two.rdd.getNumPartitions() == 2

    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW b USING {FORMAT} OPTIONS (path '{SEGMENTS}', group 'del-b')")
    assert spark.sql("SELECT partition, count(*) FROM b GROUP BY 1").collect() == [(0, 335)]


def test_a_reused_frame_is_not_changed_by_a_filter(spark: SparkSession) -> None:
    """No filter is pushed into the source, where Spark would keep it for the next query of the frame."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format(FORMAT).load(str(SEGMENTS))
        counts = [frame.count(), frame.where("partition = 2").count(), frame.count()]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")

    assert counts == [1222, 291, 1222]


def test_what_is_written_later_is_not_in_the_frame(spark: SparkSession, tmp_path: Path) -> None:
    """A frame has the records that were there when it was made, however often it is computed."""
    directory = tmp_path / "__share_group_state-2"
    shutil.copytree(SEGMENTS / directory.name, directory)
    (segment,) = directory.glob("*.log")
    whole = segment.read_bytes()
    end = int.from_bytes(whole[8:12]) + 12  # of the first record batch
    segment.write_bytes(whole[:end])
    frame = spark.read.format(FORMAT).load(str(tmp_path))
    before = frame.count()

    segment.write_bytes(whole)

    assert 0 < before < 291
    assert frame.count() == before
    assert spark.read.format(FORMAT).load(str(tmp_path)).count() == 291


def test_segments_that_are_gone_end_the_job(spark: SparkSession, tmp_path: Path) -> None:
    """Records that were there when the frame was made, and are not any more, are no empty frame."""
    directory = tmp_path / "__share_group_state-2"
    shutil.copytree(SEGMENTS / directory.name, directory)
    frame = spark.read.format(FORMAT).load(str(directory))
    shutil.rmtree(directory)

    with pytest.raises(PythonException, match=r"UnreadableFileError: .*No such file"):
        frame.count()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "MalformedInputError: path: expected this option or bootstrap, got neither"),
        ({"path": str(SEGMENTS), "bootstrap": "localhost:1"}, "MalformedInputError: bootstrap: path is given, too"),
        (
            {"path": str(SEGMENTS), "partition": "1"},
            "MalformedInputError: partition: an unknown option; there are bootstrap, ",
        ),
        (
            {"path": str(SEGMENTS), "partitions": "1-3"},
            "MalformedInputError: partitions: expected numbers, got '1-3'",
        ),
        ({"path": "/nowhere"}, "UnreadableFileError: /nowhere"),
    ],
)
def test_wrong_options_are_refused(spark: SparkSession, options: dict[str, str], message: str) -> None:
    """When the frame is made, before any job, and with the library's own error."""
    with pytest.raises(AnalysisException, match=message):
        spark.read.format(FORMAT).options(**options).load()
