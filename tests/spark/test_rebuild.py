"""The final state of every share partition, and what an operator asks, on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.testing.utils import assertDataFrameEqual

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    COORDINATOR_4_3,
    COORDINATOR_PROFILES,
    CoordinatorProfile,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    encode_record,
)
from sharestate.errors import MalformedInputError
from sharestate.spark import HEALTH, RECORD_COUNTS, STATES, count_records, health_table, rebuild_state
from sharestate.state_topic import StateTopic, TopicRecord
from tests.spark.histories import TOPIC, UNKNOWN_KEY, frame, history, plain

pytestmark = pytest.mark.spark

DATA: Final = Path(__file__).parents[1] / "data"
DUMP: Final = DATA / "segments" / "state.jsonl"
KEY: Final = SharePartitionKey(group_id="g", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
START: Final = ShareSnapshot(
    snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=5, create_timestamp_ms=1, write_timestamp_ms=1
)
CHANGE: Final = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=-1, state_batches=(StateBatch(7, 9, 2, 1),))


def logged(offset: int, value: ShareSnapshot | ShareUpdate | None, partition: int = 0) -> TopicRecord:
    """Return a record of one share partition."""
    return TopicRecord("test", None, None, partition, offset, 1000 + offset, *encode_record(StateRecord(KEY, value)))


def by_share_partition(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *rows* in one order."""
    names = ("state_partition", "group_id", "topic_id", "partition")
    return sorted(rows, key=lambda row: tuple(row[name] for name in names))


def on_spark(states: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, structs as tuples."""
    rows = (row.asDict() for row in states.collect())
    return by_share_partition({**row, "state_batches": list(map(tuple, row["state_batches"]))} for row in rows)


def without_spark(topic: StateTopic, ends: dict[tuple[int | None, str], int]) -> list[dict[str, Any]]:
    """Return the rows that *topic*, the loop without Spark, would have."""
    return by_share_partition(
        {
            **each.to_json(),
            "topic": TOPIC,
            "state_partition": each.state_partition,
            "state_batches": list(map(tuple, each.state.state_batches)),
            "create_timestamp_ms": each.state.create_timestamp_ms,
            "write_timestamp_ms": each.state.write_timestamp_ms,
            "snapshot_offset": each.state.snapshot_offset,
            "last_offset": ends[each.state_partition, str(each.key)],
        }
        for each in topic.share_partitions()
    )


def last_offsets(records: Iterable[TopicRecord]) -> dict[tuple[int | None, str], int]:
    """Return where the last record of each share partition is."""
    known = (each for each in records if each.key != UNKNOWN_KEY)
    return {(each.state_partition, str(each.decode().key)): each.offset or 0 for each in known}


def random_histories(profile: CoordinatorProfile, seed: int, partitions: int = 24) -> list[TopicRecord]:
    """Return the records of several partitions of a state topic."""
    return [record for number in range(partitions) for record in history(profile, number, Random(f"{seed} {number}"))]


@pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=lambda profile: profile.name)
@pytest.mark.parametrize("reads_once", [False, True])
def test_random_histories_end_as_without_spark(
    spark: SparkSession, profile: CoordinatorProfile, *, reads_once: bool
) -> None:
    """Whatever coordinators have written, in whatever order it is read, the loop without Spark gets the same states."""
    records = random_histories(profile, seed=1)
    expected = without_spark(plain(records, profile), last_offsets(records))

    states = rebuild_state(frame(spark, records, Random(2)), profile=profile, reads_once=reads_once)

    assert len(expected) > 100
    assert on_spark(states) == expected


def test_a_dump_ends_as_in_kafka(spark: SparkSession) -> None:
    """The states of a broker's records are those that Kafka's own class has after it has loaded them."""
    rebuilt = [json.loads(line) for line in (DATA / "segments" / "rebuilt.jsonl").read_text().splitlines()]
    kafka = [
        (
            *(key["group"], key["topic"], key["partition"]),
            *(key["data"][name] for name in ("state_epoch", "leader_epoch", "snapshot_epoch", "start_offset")),
            *(key["data"]["complete"], list(map(tuple, key["data"]["batches"]))),
        )
        for line in rebuilt
        if line["dump"] == "segments/state.jsonl"
        for key in line["keys"]
    ]

    lines = spark.read.json(str(DUMP), "key string, value string, statePartition int, offset long, timestamp long")
    records = lines.selectExpr(
        "unbase64(key) AS key",
        "unbase64(value) AS value",
        "'__share_group_state' AS topic",
        "statePartition AS partition",
        "offset",
        "timestamp_millis(timestamp) AS timestamp",
        "0 AS timestampType",
    )
    rows = rebuild_state(records).collect()

    assert kafka
    assert sorted(kafka) == sorted((*row[2:10], list(map(tuple, row["state_batches"]))) for row in rows)


def test_the_result_is_the_same_with_adaptive_execution(spark: SparkSession) -> None:
    """Adaptive execution, which is on by default, neither merges nor splits what has to stay together."""
    records = random_histories(COORDINATOR_4_3, seed=3)
    rows = frame(spark, records, Random(4))
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        states = rebuild_state(rows, partitions=5)
        found, tasks = on_spark(states), states.rdd.getNumPartitions()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")

    assert found == without_spark(plain(records, COORDINATOR_4_3), last_offsets(records))
    assert tasks == 5


def test_the_schemas_are_what_comes_out(spark: SparkSession) -> None:
    """Names, types and metadata of the results are those of the constants."""
    rows = frame(spark, [logged(0, START)])
    for found, schema in (
        (rebuild_state(rows), STATES),
        (count_records(rows), RECORD_COUNTS),
        (health_table(rows), HEALTH),
    ):
        assert [(each.name, each.dataType, each.metadata) for each in found.schema] == [
            (each.name, each.dataType, each.metadata) for each in schema
        ]
        assertDataFrameEqual(found, spark.createDataFrame(found.collect(), schema))


def test_nothing_adds_up_to_nothing(spark: SparkSession) -> None:
    """Without records there are no states, no counts and nothing to say of their health."""
    rows = frame(spark, [])

    assert [found.collect() for found in (rebuild_state(rows), count_records(rows), health_table(rows))] == [[], [], []]


def test_health_is_that_of_the_loop_without_spark(spark: SparkSession) -> None:
    """Since when an SPSO stands, what is terminal or near the limit, what blocks pruning: as `state rebuild` has it."""
    records = random_histories(COORDINATOR_4_3, seed=5)
    topic = plain(records, COORDINATOR_4_3)
    blockers = {(number, each.pruning().key): each.pruning() for number, each in topic.partitions.items()}
    expected = by_share_partition(
        {
            "state_partition": each.state_partition,
            "group_id": each.key.group_id,
            "topic_id": each.key.topic_id,
            "partition": each.key.partition,
            "start_offset": each.state.start_offset,
            "start_ms": each.start_timestamp_ms,
            "changes_since": each.change_count,
            "terminal_records": each.terminal_count,
            "is_stuck": each.is_stuck(3),
            "records_near_limit": each.count_near_limit(4),
            "blocks_pruning": (each.state_partition, each.key) in blockers,
            "blocked_offsets": blockers[each.state_partition, each.key].blocked_count
            if (each.state_partition, each.key) in blockers
            else 0,
        }
        for each in topic.share_partitions()
    )

    found = health_table(frame(spark, records, Random(6)), stuck_after=3, delivery_count_limit=4)
    rows = found.selectExpr("*", "unix_millis(start_timestamp) AS start_ms").drop(
        "topic", "start_timestamp", "log_end_offset", "lag"
    )

    assert by_share_partition(row.asDict() for row in rows.collect()) == expected
    assert {row["is_stuck"] for row in expected} == {True, False}


def test_the_lag_is_what_is_left_to_finish(spark: SparkSession) -> None:
    """The end of the log less the SPSO less what is complete above it, where all three are known (KIP-1226)."""
    known = ShareSnapshot(
        snapshot_epoch=0,
        state_epoch=1,
        leader_epoch=0,
        start_offset=5,
        create_timestamp_ms=1,
        write_timestamp_ms=1,
        delivery_complete_count=3,
    )
    ends = spark.createDataFrame([(KEY.topic_id, 0, 20)], "topic_id string, partition int, log_end_offset bigint")
    rows = frame(spark, [logged(0, known), logged(0, START, partition=1)])

    assert health_table(rows, ends).sort("state_partition").select("log_end_offset", "lag").collect() == [
        Row(log_end_offset=20, lag=12),
        Row(log_end_offset=20, lag=None),
    ]


def test_kinds_are_counted_and_unknown_types_skipped(spark: SparkSession) -> None:
    """A record of a type that no release knows changes no state, and is counted."""
    unknown = TopicRecord("test", None, None, 0, 3, None, UNKNOWN_KEY, b"123")
    records = [logged(0, START), logged(1, CHANGE), logged(2, CHANGE), unknown, logged(9, None)]

    (row,) = count_records(frame(spark, records)).drop("topic", "size").collect()

    assert row.asDict() == {
        "state_partition": 0,
        "first_offset": 0,
        "last_offset": 9,
        "snapshots": 1,
        "updates": 2,
        "tombstones": 1,
        "unknown": 1,
    }
    assert rebuild_state(frame(spark, records[:4])).select("last_offset").collect() == [Row(last_offset=2)]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([logged(0, START), logged(1, CHANGE), logged(1, CHANGE)], "offset 1: offset: there twice"),
        ([TopicRecord("", None, None, 0, 4, None, b"\0", b"")], "offset 4: key: byte 0: "),
        ([TopicRecord("", None, None, 0, 4, None, b"\5", b"")], "offset 4: key: byte 0: "),  # of no unknown type
        ([TopicRecord("", None, None, 0, None, None, *encode_record(StateRecord(KEY, START)))], "offset: null"),
        (
            [TopicRecord("", None, None, 2, 8, None, encode_record(StateRecord(KEY, CHANGE))[0], None)],
            f"topic {TOPIC}, partition 2, offset 8: value: byte 0: a tombstone of an update",
        ),
    ],
)
def test_what_is_no_record_ends_the_job(spark: SparkSession, records: list[TopicRecord], message: str) -> None:
    """The error is the library's own, and names topic, partition and offset."""
    with pytest.raises(PythonException) as caught:
        rebuild_state(frame(spark, records)).collect()

    assert "sharestate.errors.UnreadableFileError: topic " in str(caught.value)
    assert message in str(caught.value)


def test_a_frame_without_a_column_is_refused(spark: SparkSession) -> None:
    """The error names the column, and so it does for one of another type; no job is started."""
    rows = frame(spark, [logged(0, START)])

    for wrong, field in (
        (rows.drop("offset"), "records.offset"),
        (rows.selectExpr("key", "string(value) value", "topic", "partition", "offset"), "records.value"),
    ):
        with pytest.raises(MalformedInputError) as caught:
            rebuild_state(wrong)
        assert caught.value.field == field


def test_a_number_out_of_bounds_is_refused(spark: SparkSession) -> None:
    """Tasks, limits and counts of changes are at least 1."""
    rows = frame(spark, [])
    for field in ("partitions", "stuck_after", "delivery_count_limit"):
        with pytest.raises(MalformedInputError) as caught:
            health_table(rows, **{field: 0})  # type: ignore[arg-type] # one of three integers
        assert caught.value.field == field
