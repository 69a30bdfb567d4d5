"""
Replays and states that follow a stream, batch by batch, exactly once.

Each batch folds what is new, beginning with the states at the end of the batch before, and writes the states at its own
end beside what it makes. So a batch costs what all share partitions cost, those too of which nothing is new.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import LongType, StringType, StructType

from sharestate.coordinator import COORDINATOR_4_3, CoordinatorProfile, ShareSnapshot, StateRecord, encode_record
from sharestate.errors import UnreadableFileError
from sharestate.history import Order, ReplaySettings
from sharestate.spark.batch_directory import BatchDirectory, located
from sharestate.spark.batch_replay import ALL_BUT_STATES, ReplayResult, events_in_order, replay_batches, settings_of
from sharestate.spark.history_schemas import REPLAY_ROWS, SHARE_PARTITION, checked_events
from sharestate.spark.rebuild import rebuild_state
from sharestate.spark.schemas import STATE_RECORDS, STATES, arrow_schema, check_columns, shaped
from sharestate.spark.workers import tasks, use_this_python
from sharestate.values.checks import integer
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sharestate.values.config import ShareConfig

_ENDS: Final = ("metric", "snapshot", "state")
"""The kinds of rows that say how share partitions are at the end of a batch; those of the last batch are true."""

_RECORDS: Final = StructType([STATE_RECORDS[name] for name in ("key", "value", "topic", "partition", "offset")])
_STATE_KEY: Final = ("topic", "state_partition", *SHARE_PARTITION)


def replay_stream(  # noqa: PLR0913 - the settings of a replay and of a stream, by name
    events: DataFrame,
    path: str,
    checkpoint: str,
    *,
    profile: Profile = LATEST,
    config: ShareConfig | None = None,
    order: Order | None = None,
    lacks: Iterable[str] | None = None,
    outputs: Iterable[str] = ALL_BUT_STATES,
    partitions: int | None = None,
    keep_batches: int | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """
    Replay a stream of events, and append the rows of each batch to a directory, which ``read_replay_stream`` reads.

    All batches together make the rows that one replay of all events makes. Acquisition locks expire by the times of the
    events of their share partition, as always, and not by those of others: a source that wants the locks of a quiet one
    to expire gives it an event with a time, for which an empty ``config`` will do.

    Args:
        events: A stream with the columns of ``EVENTS``. Within a batch they may be in any order; the events of a share
            partition in a batch must follow those in the batches before.
        path: The directory for the rows: of this machine, or a URI that Spark and pyarrow both know.
        checkpoint: The directory in which Spark keeps the stream's offsets. It belongs to *path*: with another one,
            or none, what was written is refused.
        profile: As for ``replay``, and so are *config*, *order*, *lacks*, *outputs* and *partitions*.
        config: The groups' settings until ``config`` events change them.
        order: The order of the events; only those in causal order are replayed.
        lacks: The kinds that the history lacks.
        outputs: The kinds of rows to make; ``state`` is always made.
        partitions: The number of tasks of each batch. [tasks]
        keep_batches: How many batches are kept, at least 2; None for all. Ends (``metric``, ``snapshot`` and ``state``)
            are kept of the last two anyway. [batches]
        trigger: What Spark's ``DataStreamWriter.trigger`` takes, such as ``{"availableNow": True}``; None for a batch
            whenever the one before is done.

    Returns:
        The query, which runs. It fails with a ``StreamingQueryException`` whose text ends as ``replay`` says, or
        in an UnreadableFileError if another query has written to *path*; batches before that stay.

    Raises:
        HistoryError: A column is missing or of another type; ``field`` says which.
        MalformedInputError: An argument is wrong.

    Complexity:
        A batch costs O(n log n) in its events and all share partitions that ever had one.
    """
    settings = settings_of(events, profile, config, order, lacks, frozenset(outputs) | {"state"})
    checked_events(events)
    directory = BatchDirectory(located(path), "replay_stream", tuple(sorted(settings.outputs)), located(checkpoint))
    tasks(events, partitions)
    return _start(events, _ReplayBatches(directory, settings, partitions, _kept(keep_batches)), trigger)


def read_replay_stream(spark: SparkSession, path: str) -> ReplayResult:
    """
    Return what ``replay_stream`` has made so far: the rows of all batches that are committed, and the last ends.

    Raises:
        UnreadableFileError: Nothing is committed, or by something else, or in a version that is not known.
    """
    directory = BatchDirectory(located(path), "replay_stream")
    commits = _commits(directory)
    with_batch = StructType([*REPLAY_ROWS.fields]).add("batch", LongType())
    reader = spark.read.schema(with_batch).option("basePath", directory.path)
    rows = reader.parquet(*(directory.batch(commit["batch"]) for commit in commits))
    is_current = ~F.col("kind").isin(*_ENDS) | (F.col("batch") == commits[-1]["batch"])
    outputs = frozenset.intersection(*(frozenset(commit["outputs"]) for commit in commits))
    return ReplayResult(rows.where(is_current).drop("batch"), outputs)


def rebuild_stream(  # noqa: PLR0913 - the settings of a stream, by name
    records: DataFrame,
    path: str,
    checkpoint: str,
    *,
    profile: CoordinatorProfile = COORDINATOR_4_3,
    partitions: int | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """
    Follow the state topic, and keep the state of every share partition, which ``read_rebuild_stream`` reads.

    After each batch the states are those that ``rebuild_state`` returns for all records so far.

    Args:
        records: A stream with the columns of ``STATE_RECORDS``. Within a batch they may be in any order; those of a
            partition in a batch must follow those in the batches before.
        path: The directory for the states, of which the last two batches are kept.
        checkpoint: The directory in which Spark keeps the stream's offsets; see ``replay_stream``.
        profile: The release by whose rules state batches are combined.
        partitions: The number of tasks of each batch. [tasks]
        trigger: As for ``replay_stream``.

    Returns:
        The query, which runs. It fails as the job of ``rebuild_state`` does; batches before that stay.

    Raises:
        MalformedInputError: A column is missing or of another type, or an argument is wrong.

    Complexity:
        A batch costs O(n log n) in its records and all share partitions.
    """
    check_columns(records, _RECORDS, "records")
    tasks(records, partitions)
    directory = BatchDirectory(located(path), "rebuild_stream", checkpoint=located(checkpoint))
    return _start(records, _RebuildBatches(directory, profile, partitions), trigger)


def read_rebuild_stream(spark: SparkSession, path: str) -> DataFrame:
    """
    Return the states that ``rebuild_stream`` has committed last: a frame of schema ``STATES``.

    Raises:
        UnreadableFileError: Nothing is committed, or by something else, or in a version that is not known.
    """
    directory = BatchDirectory(located(path), "rebuild_stream")
    return _states(spark, directory, _commits(directory)[-1]["batch"])


# ---- batches


@frozen
class _ReplayBatches:
    """What is done with each batch of events."""

    directory: BatchDirectory
    settings: ReplaySettings
    partitions: int | None
    keep_batches: int | None

    def __call__(self, events: DataFrame, number: int) -> None:
        """Write and commit batch *number*, unless that was done before."""
        if not self.directory.begin(number):
            return
        rows = checked_events(events).withColumn("state", F.lit(None).cast(StringType()))
        if number > 0:
            rows = rows.unionByName(self._states_before(events.sparkSession, number), allowMissingColumns=True)
        in_order = events_in_order(rows, tasks(events, self.partitions))
        made = in_order.mapInArrow(partial(replay_batches, self.settings), REPLAY_ROWS)
        _write(made, self.directory.batch(number), "kind")
        self.directory.commit(number)
        self.directory.retain(number, [f"kind={kind}" for kind in _ENDS], self.keep_batches)

    def _states_before(self, spark: SparkSession, number: int) -> DataFrame:
        """Return the states at the end of the batch before, which come ahead of all events."""
        rows = spark.read.schema(REPLAY_ROWS).parquet(self.directory.batch(number - 1)).where(F.col("kind") == "state")
        return rows.select(*SHARE_PARTITION, F.lit(-1).cast(LongType()).alias("seq"), "state")


@frozen
class _RebuildBatches:
    """What is done with each batch of records of the state topic."""

    directory: BatchDirectory
    profile: CoordinatorProfile
    partitions: int | None

    def __call__(self, records: DataFrame, number: int) -> None:
        """Write and commit batch *number*, unless that was done before."""
        if not self.directory.begin(number):
            return
        spark = records.sparkSession
        before = _states(spark, self.directory, number - 1) if number > 0 else spark.createDataFrame([], STATES)
        everything = records.select(*_RECORDS.names).union(before.mapInArrow(_snapshots, _RECORDS))
        states = rebuild_state(everything, profile=self.profile, partitions=self.partitions, reads_once=True)
        _write(_with_snapshot_offsets(states, before), self.directory.batch(number))
        self.directory.commit(number)
        self.directory.retain(number, [], 1)


def _snapshots(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each state as a snapshot in the place of the last record that has made it what it is."""
    import pyarrow as pa  # noqa: PLC0415 - only where it runs

    schema = arrow_schema(_RECORDS)
    for batch in batches:
        yield pa.RecordBatch.from_pylist(list(map(_snapshot, batch.to_pylist())), schema)


def _snapshot(row: dict[str, Any]) -> dict[str, Any]:
    key = SharePartitionKey(group_id=row["group_id"], topic_id=row["topic_id"], partition=row["partition"])
    fields = (
        "snapshot_epoch",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "create_timestamp_ms",
        "write_timestamp_ms",
        "delivery_complete_count",
    )
    batches = tuple(StateBatch(*each.values()) for each in row["state_batches"])
    value = ShareSnapshot(**{name: row[name] for name in fields}, state_batches=batches)
    record_key, record_value = encode_record(StateRecord(key, value))
    return {
        "key": record_key,
        "value": record_value,
        "topic": row["topic"],
        "partition": row["state_partition"],
        "offset": row["last_offset"],
    }


def _with_snapshot_offsets(states: DataFrame, before: DataFrame) -> DataFrame:
    """Return *states*, those that began with one of *before* with the offset of its snapshot."""
    opened = before.select(
        *_STATE_KEY,
        F.col("last_offset").alias("opened_at"),
        F.col("snapshot_offset").alias("earlier"),
    )
    joined = states.join(opened, list(_STATE_KEY), "left")
    is_opened = F.coalesce(F.col("snapshot_offset") == F.col("opened_at"), F.lit(False))  # noqa: FBT003 - a value of SQL
    offset = F.when(is_opened, F.col("earlier")).otherwise(F.col("snapshot_offset"))
    return shaped(joined.withColumn("snapshot_offset", offset), STATES)


# ---- what both have in common


def _start(
    frame: DataFrame, batches: _ReplayBatches | _RebuildBatches, trigger: Mapping[str, Any] | None
) -> StreamingQuery:
    use_this_python(frame.sparkSession)
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", batches.directory.checkpoint)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def _write(frame: DataFrame, path: str, *partition_by: str) -> None:
    writer = frame.write.mode("overwrite").option("partitionOverwriteMode", "static")
    (writer.partitionBy(*partition_by) if partition_by else writer).parquet(path)


def _kept(keep_batches: int | None) -> int | None:
    return None if keep_batches is None else integer(keep_batches, "keep_batches", 2)


def _commits(directory: BatchDirectory) -> list[dict[str, Any]]:
    commits = directory.commits()
    if not commits:
        message = "no batch is committed"
        raise UnreadableFileError(message, directory.path)
    return commits


def _states(spark: SparkSession, directory: BatchDirectory, number: int) -> DataFrame:
    return spark.read.schema(STATES).parquet(directory.batch(number))
