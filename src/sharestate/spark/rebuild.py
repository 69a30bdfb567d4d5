"""
The final state of every share partition, rebuilt on Spark from the records of the state topic.

Spark finds the last snapshot of each share partition and drops the records before it, which is most of them where
snapshots are frequent; what is left goes, in the order of the log, through the codec and the replay of the share
coordinator.

Source:
    ShareCoordinatorShard.replay (Kafka 4.3.1).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from attrs import fields
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StructType

from sharestate.coordinator import (
    COORDINATOR_4_3,
    COORDINATOR_PROFILES,
    CoordinatorProfile,
    CoordinatorShard,
    StoredState,
)
from sharestate.coordinator.records import RecordType, decode_record
from sharestate.errors import MalformedInputError, RecordFormatError, UnreadableFileError
from sharestate.history.columns import STATE_BATCHES
from sharestate.spark.schemas import RECORD_COUNTS, STATE_RECORDS, STATES, arrow_schema, check_columns, shaped
from sharestate.spark.workers import tasks, use_this_python
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_INPUT: Final = StructType([STATE_RECORDS[name] for name in ("key", "value", "topic", "partition", "offset")])
SHARE_PARTITION: Final = ("topic", "partition", "share_partition")
"""The share partition whose record it is. One key of Kafka's lives in one partition of one topic."""

_STORED: Final = tuple(each.name for each in fields(StoredState) if each.name in STATES.fieldNames())
_BATCH: Final = tuple(column.name for column in STATE_BATCHES.columns)

_TYPE_BYTES: Final = 2
"""The size of the record type in a key. [bytes]"""

_ROWS_PER_BATCH: Final = 1000
"""How many states go to Spark at once: a large one has tens of kilobytes. [share partitions]"""


def rebuild_state(
    records: DataFrame,
    *,
    profile: CoordinatorProfile = COORDINATOR_4_3,
    partitions: int | None = None,
    reads_once: bool = False,
) -> DataFrame:
    """
    Return the final state of every share partition that *records* add up to, as a coordinator that loads has it.

    Records that a later snapshot or tombstone of their share partition has replaced are dropped unread. Records of
    unknown types are skipped, as by coordinators; ``count_records`` counts them. The epochs by which a coordinator
    fences, the highest that it has ever seen, are not in the result: what they depend on may have been dropped.

    Args:
        records: Rows with the columns of Spark's Kafka source: ``STATE_RECORDS``, in any order. Columns that it does
            not need may be missing, others are ignored.
        profile: The release by whose rules state batches are combined.
        partitions: The number of tasks that fold; None for ``spark.sql.shuffle.partitions``. It is fixed, so adaptive
            execution does not merge them: rows are small here, but take time. [tasks]
        reads_once: Whether *records* are read once, and all of them shuffled, rather than twice, and most of them
            dropped before. For sources that are slow, or that may have changed when they are read again.

    Returns:
        A frame of schema ``STATES``, computed when it is asked for.

    Raises:
        MalformedInputError: A column is missing or of another type, the profile is not Kafka's, or *partitions* is
            less than 1. When the frame is computed, the job fails with a ``PythonException`` of Spark's that ends in
            UnreadableFileError, with partition and offset: a record that is not of this topic, an offset that comes
            twice, or a source that has changed between two readings.

    Complexity:
        O(n log n) in the records since the last snapshots. A task holds one share partition at a time.
    """
    use_this_python(records.sparkSession)
    check_columns(records, _INPUT, "records")
    if COORDINATOR_PROFILES.get(profile.name) != profile:
        refuse(f"expected one of {', '.join(COORDINATOR_PROFILES)}, got {profile.name!r}", "profile")
    rows = known_records(records).select(*SHARE_PARTITION, "offset", "key", "value")
    needed = _after_last_snapshot_in_one_reading(rows) if reads_once else _after_last_snapshot(rows)
    in_order = needed.repartition(tasks(records, partitions), *SHARE_PARTITION).sortWithinPartitions(
        *SHARE_PARTITION, "offset"
    )
    return in_order.mapInArrow(partial(fold_states, profile.name), STATES)


def count_records(records: DataFrame) -> DataFrame:
    """
    Return how many records of each kind there are in each partition of the state topic, those of unknown types too.

    Args:
        records: Rows with the columns of Spark's Kafka source, in any order.

    Returns:
        A frame of schema ``RECORD_COUNTS``.

    Raises:
        MalformedInputError: A column is missing or of another type.
    """
    check_columns(records, _INPUT, "records")
    kind = record_type(F.col("key"))
    has_value = F.col("value").isNotNull()
    is_known = kind.isin(*map(int, RecordType))
    conditions = {
        "snapshots": (kind == int(RecordType.SHARE_SNAPSHOT)) & has_value,
        "updates": (kind == int(RecordType.SHARE_UPDATE)) & has_value,
        "tombstones": is_known & ~has_value,
        "unknown": ~is_known,
    }
    size = F.length("key") + F.coalesce(F.length("value"), F.lit(0))
    counted = records.groupBy("topic", F.col("partition").alias("state_partition")).agg(
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        *(F.count_if(F.coalesce(condition, F.lit(False))).alias(name) for name, condition in conditions.items()),  # noqa: FBT003 - a value of SQL
        F.sum(size).alias("size"),
    )
    return shaped(counted, RECORD_COUNTS)


def record_type(key: Column) -> Column:
    """Return the number of the record type by which a *key* begins, as a column of integers; null if it is cut off."""
    number = F.substring(key, 1, 2)
    return F.when(F.length(number) == _TYPE_BYTES, F.conv(F.hex(number), 16, 10).cast("int"))


def known_records(records: DataFrame) -> DataFrame:
    """
    Return the records of known types, with the bytes that name their share partition as column ``share_partition``.

    A key without a type is kept, for the fold to refuse.
    """
    kind = record_type(F.col("key"))
    is_known = kind.isNull() | kind.isin(*map(int, RecordType))
    return records.where(is_known).withColumn("share_partition", F.substr(F.col("key"), F.lit(3)))


def fold_states(profile_name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Yield the states that rows add up to: what Spark runs in each task, and any other program may.

    Args:
        profile_name: The release by whose rules state batches are combined.
        batches: Rows with topic, partition, share_partition, offset, key, value and last_snapshot, in this order:
            those of a share partition one after the other, by offset, from the last snapshot on if there is one.

    Raises:
        UnreadableFileError: A record is not of this topic, or offsets are not as they should be; the place is that of
            the record in the topic.
    """
    import pyarrow as pa  # noqa: PLC0415 - only where it runs

    schema = arrow_schema(STATES)
    rows: list[dict[str, Any]] = []
    for state in _states(COORDINATOR_PROFILES[profile_name], _rows(batches)):
        rows.append(state)
        if len(rows) == _ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema)


# ---- in Spark


def _is_snapshot() -> Column:
    return record_type(F.col("key")) == int(RecordType.SHARE_SNAPSHOT)


def _after_last_snapshot(rows: DataFrame) -> DataFrame:
    """Return the rows from each last snapshot, or tombstone, on: by a small aggregate that every task gets."""
    last = rows.where(_is_snapshot()).groupBy(*SHARE_PARTITION).agg(F.max("offset").alias("last_snapshot"))
    return _from_last_snapshot(rows.join(F.broadcast(last), [*SHARE_PARTITION], "left"))


def _after_last_snapshot_in_one_reading(rows: DataFrame) -> DataFrame:
    """Return the same by a window, for which all rows are shuffled and sorted."""
    last = F.max(F.when(_is_snapshot(), F.col("offset"))).over(Window.partitionBy(*SHARE_PARTITION))
    return _from_last_snapshot(rows.withColumn("last_snapshot", last))


def _from_last_snapshot(rows: DataFrame) -> DataFrame:
    is_needed = F.col("last_snapshot").isNull() | (F.col("offset") >= F.col("last_snapshot"))
    return rows.where(is_needed).select(*_Row._fields)


# ---- in its workers


class _Row(NamedTuple):
    """A record of the state topic, and where the last snapshot of its share partition is."""

    topic: str
    partition: int
    share_partition: bytes
    offset: int
    key: bytes
    value: bytes | None
    last_snapshot: int | None

    def refuse(self, message: str, field: str = "", cause: Exception | None = None) -> NoReturn:
        place = f"topic {self.topic}, partition {self.partition}, offset {self.offset}"
        raise UnreadableFileError(message, place, field=field) from cause


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_Row]:
    for batch in batches:
        yield from map(_Row, *(column.to_pylist() for column in batch.columns))


def _states(profile: CoordinatorProfile, rows: Iterator[_Row]) -> Iterator[dict[str, Any]]:
    """Yield the state at the end of the rows of each share partition, if there is one."""
    shard = CoordinatorShard(profile)
    last: _Row | None = None
    for row in rows:
        if last is None or row[:3] != last[:3]:
            yield from _final(shard, last)
            shard = CoordinatorShard(profile)
            _check_first(row)
        elif row.offset == last.offset:  # they are sorted
            row.refuse("there twice", "offset")
        _replay(shard, row)
        last = row
    yield from _final(shard, last)


def _check_first(row: _Row) -> None:
    for name in ("topic", "partition", "offset", "key"):
        if getattr(row, name) is None:
            row.refuse("null", name)
    if row.last_snapshot is not None and row.offset != row.last_snapshot:
        row.refuse(f"the snapshot at offset {row.last_snapshot} is gone: the source has changed while it was read")


def _replay(shard: CoordinatorShard, row: _Row) -> None:
    try:
        shard.replay(row.offset, decode_record(row.key, row.value))
    except RecordFormatError as error:
        row.refuse(f"byte {error.byte_offset}: {error.message}", error.part or "", error)
    except MalformedInputError as error:
        row.refuse(error.message or "", "value", error)
    shard.commit()


def _final(shard: CoordinatorShard, last: _Row | None) -> Iterator[dict[str, Any]]:
    if last is not None:
        for key, state in shard.states.items():
            stored = {name: getattr(state, name) for name in _STORED}
            stored["state_batches"] = [dict(zip(_BATCH, batch, strict=True)) for batch in state.state_batches]
            yield {
                "topic": last.topic,
                "state_partition": last.partition,
                "group_id": key.group_id,
                "topic_id": key.topic_id,
                "partition": key.partition,
                "last_offset": last.offset,
                **stored,
            }
