"""
What an operator asks of the state topic: what keeps it from being pruned, and which share partitions need attention.

Source:
    ShareCoordinatorOffsetsManager (Kafka 4.3.1); lag: KIP-1226.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StructType

from sharestate.coordinator import COORDINATOR_4_3, CoordinatorProfile, RecordType
from sharestate.spark.rebuild import SHARE_PARTITION, count_records, known_records, rebuild_state, record_type
from sharestate.spark.schemas import HEALTH, LOG_ENDS, STATE_RECORDS, check_columns, shaped
from sharestate.values.checks import integer
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

STUCK_AFTER: Final = 10
"""The number of changes after which an SPSO that has not moved is stuck. [records]"""

DELIVERY_COUNT_LIMIT: Final = 5
"""``group.share.delivery.count.limit``, as brokers have it by default. [deliveries]"""

_STATE_PARTITION: Final = ("topic", "state_partition")
_SNAPSHOTS_START: Final = 15
_UPDATES_START: Final = 11
"""Where the start offset begins in the values of snapshots and updates, the first byte being 1 as in SQL: after the
version and the epochs, of which a snapshot has three and an update two (ShareSnapshotValue.json). [bytes]"""


def health_table(  # noqa: PLR0913 - what an operator may set, by name
    records: DataFrame,
    log_ends: DataFrame | None = None,
    *,
    profile: CoordinatorProfile = COORDINATOR_4_3,
    delivery_count_limit: int = DELIVERY_COUNT_LIMIT,
    stuck_after: int = STUCK_AFTER,
    partitions: int | None = None,
) -> DataFrame:
    """
    Return what may need attention, share partition by share partition.

    It reads *records* several times: ``records.persist()`` first if that is slow, or if they may change meanwhile.

    Args:
        records: Rows with the columns of Spark's Kafka source, ``STATE_RECORDS``, in any order.
        log_ends: Where the consumed partitions end, ``LOG_ENDS``. Without it, or where it has no row, no lag is known.
        profile: The release by whose rules state batches are combined.
        delivery_count_limit: The groups' delivery count limit; at least 1. [deliveries]
        stuck_after: How many changes leave an SPSO where it is, with terminal records behind it, until it is stuck.
            [records]
        partitions: The number of tasks that fold, as for ``rebuild_state``. [tasks]

    Returns:
        A frame of schema ``HEALTH``.

    Raises:
        MalformedInputError: A column is missing or of another type, or a number is out of bounds. The job may fail as
            that of ``rebuild_state`` does.
    """
    check_columns(records, StructType([STATE_RECORDS["timestamp"]]), "records")
    integer(delivery_count_limit, "delivery_count_limit", 1)
    integer(stuck_after, "stuck_after", 1)
    states = rebuild_state(records, profile=profile, partitions=partitions)
    rows = _with_blocked_offsets(states, count_records(records))
    rows = _with_lag(rows.join(_start_offsets(records), [*_STATE_PARTITION, "last_offset"], "left"), log_ends)
    rows = rows.withColumn("terminal_records", _count(_is_terminal)).withColumn(
        "records_near_limit", _count(lambda batch: _is_near_limit(batch, delivery_count_limit))
    )
    is_stuck = (F.col("changes_since") >= stuck_after) & (F.col("terminal_records") > 0)
    return shaped(rows.withColumn("is_stuck", is_stuck), HEALTH)


def _start_offsets(records: DataFrame) -> DataFrame:
    """
    Return since when each SPSO is where it is; the last offset of a share partition says which it is.

    An SPSO is the last one that a record has named since the last tombstone, or -1. Windows over small rows find it, as
    most of these records have been replaced, and no state remembers them.
    """
    in_order = Window.partitionBy(*SHARE_PARTITION).orderBy("offset")
    in_life = Window.partitionBy(*SHARE_PARTITION, "life").orderBy("offset")
    start = F.coalesce(F.last("named", ignorenulls=True).over(in_life), F.lit(-1))
    has_moved = F.coalesce(F.col("start") != F.lag("start").over(in_life), F.lit(True))  # noqa: FBT003 - a value of SQL
    rows = (
        known_records(records)
        .select(*SHARE_PARTITION, "offset", "timestamp", "value", _named_start().alias("named"))
        .withColumn("life", F.count_if(F.col("value").isNull()).over(in_order))
        .where(F.col("value").isNotNull())
        .withColumn("start", start)
        .withColumn("moved", F.when(has_moved, F.row_number().over(in_order)))
        .withColumn("number", F.row_number().over(in_order))
    )
    return (
        rows.groupBy(*SHARE_PARTITION)
        .agg(
            F.max("offset").alias("last_offset"),
            F.max_by("timestamp", "moved").alias("start_timestamp"),
            (F.max("number") - F.max("moved")).alias("changes_since"),
        )
        .select("topic", F.col("partition").alias("state_partition"), "last_offset", "start_timestamp", "changes_since")
    )


def _named_start() -> Column:
    """Return the start offset in a value; null in an update that leaves it as it is."""
    is_snapshot = record_type(F.col("key")) == int(RecordType.SHARE_SNAPSHOT)
    begin = F.when(is_snapshot, _SNAPSHOTS_START).otherwise(_UPDATES_START)
    number = F.conv(F.hex(F.substr(F.col("value"), begin, F.lit(8))), 16, -10).cast("long")
    return F.when(is_snapshot | (number != -1), number)


def _with_blocked_offsets(states: DataFrame, counts: DataFrame) -> DataFrame:
    """Add what could be deleted: up to the next snapshot if a share partition's is the oldest that is needed."""
    oldest_first = Window.partitionBy(*_STATE_PARTITION).orderBy(F.col("snapshot_offset").asc_nulls_last())
    ends = counts.select(*_STATE_PARTITION, (F.col("last_offset") + 1).alias("end"))
    blocks = (F.row_number().over(oldest_first) == 1) & F.col("snapshot_offset").isNotNull()
    free_until = F.coalesce(F.lead("snapshot_offset").over(oldest_first), F.col("end"))
    return (
        states.join(F.broadcast(ends), [*_STATE_PARTITION])
        .withColumn("blocks_pruning", blocks)
        .withColumn("blocked_offsets", F.when(blocks, free_until - F.col("snapshot_offset")).otherwise(0))
    )


def _with_lag(rows: DataFrame, log_ends: DataFrame | None) -> DataFrame:
    """Add the lag where the end of the log, the SPSO and the delivery complete count are all known."""
    if log_ends is None:
        rows = rows.withColumn("log_end_offset", F.lit(None))
    else:
        check_columns(log_ends, LOG_ENDS, "log_ends")
        rows = rows.join(log_ends.select(LOG_ENDS.fieldNames()), ["topic_id", "partition"], "left")
    is_known = (F.col("start_offset") >= 0) & (F.col("delivery_complete_count") >= 0)
    lag = F.col("log_end_offset") - F.col("start_offset") - F.col("delivery_complete_count")
    return rows.withColumn("lag", F.when(is_known, lag))


def _is_terminal(batch: Column) -> Column:
    return batch["delivery_state"].isin(int(RecordState.ACKNOWLEDGED), int(RecordState.ARCHIVED))


def _is_near_limit(batch: Column, limit: int) -> Column:
    """Return what ``is_near_limit`` does."""
    is_deliverable = batch["delivery_state"].isin(int(RecordState.AVAILABLE), int(RecordState.ACQUIRED))
    return is_deliverable & (batch["delivery_count"] >= max(limit - 1, 1))


def _count(is_counted: Callable[[Column], Column]) -> Column:
    """Return the number of records in state batches of one kind."""
    return F.aggregate(
        F.filter("state_batches", is_counted),
        F.lit(0).cast("long"),
        lambda total, batch: total + batch["last_offset"] - batch["first_offset"] + 1,
    )
