"""
Tables of what has become of records in a replay: deliveries and why they ended, lock expiries, times, rates.

Each function makes one table, with the columns that ``ANALYSIS`` lists. Each record is counted for itself, although a
replay has them in ranges, so the cost is that of the records that were delivered, not of the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StringType, StructField, StructType

from sharestate.spark.analysis_columns import ANALYSIS
from sharestate.spark.history_schemas import SHARE_PARTITION
from sharestate.spark.schemas import shaped, struct
from sharestate.values.checks import refuse
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sharestate.spark.batch_replay import ReplayResult

NEW_LEADER: Final = "new leader"
"""The cause of the end of a delivery that a leader has taken with it: what was not persisted is gone."""

_RECORD: Final = (*SHARE_PARTITION, "offset")
_ACQUIRED: Final = int(RecordState.ACQUIRED)
_DONE: Final = tuple(map(int, (RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED)))
_ARCHIVED: Final = tuple(map(int, (RecordState.ARCHIVING, RecordState.ARCHIVED)))
_PERCENTILES: Final = (0.5, 0.9, 0.99)
_US_PER_MS: Final = 1000
_S_PER_HOUR: Final = 3600


def deliveries(result: ReplayResult) -> DataFrame:
    """
    Return every delivery of every record, and why it has ended.

    A delivery ends when its member gives the record back or is done with it, when its lock expires, or when a new
    leader knows nothing of it. If a write fails, and the record is its member's again, the delivery has not ended. If a
    record is delivered again although it was done, that was lost with the leader, which then is the cause.

    Args:
        result: What a replay has made, with acquisitions, transitions and initializations.

    Returns:
        A frame with the columns of ``ANALYSIS["deliveries"]``.

    Raises:
        MalformedInputError: One of these kinds was not made.

    Complexity:
        O(n log n) in the deliveries of single records.
    """
    by_record = Window.partitionBy(*_RECORD).orderBy("seq", "begins", "at_us")
    changes = _begins(result).unionByName(_ends(result), allowMissingColumns=True)
    numbered = changes.withColumn("delivery", F.count_if("begins").over(by_record))  # ends come before begins
    is_end = ~F.col("begins")
    each = (
        numbered.where(F.col("delivery") > 0)
        .groupBy(*_RECORD, "delivery")
        .agg(
            *(F.max(F.when(F.col("begins"), F.col(name))).alias(name) for name in ("member_id", "delivery_count")),
            F.min("seq").alias("seq"),
            F.max(F.when(F.col("begins"), F.col("at_us"))).alias("delivered_us"),
            F.max_by(
                F.when(is_end, F.struct("seq", "at_us", "cause", "to_state")),
                F.when(is_end, F.struct("seq", "at_us", F.col("cause") == Cause.ROLLED_BACK.value)),
            ).alias("end"),
        )
    )
    named = _with_times(_with_new_leaders(each, result)).join(F.broadcast(_topics(result)), ["topic_id"], "left")
    topic = F.coalesce("topic", "topic_id")
    return shaped(named.withColumn("topic", topic), struct(ANALYSIS["deliveries"].columns))


def records(delivered: DataFrame) -> DataFrame:
    """
    Return every record that was delivered, how often, when it was done, and how each delivery has ended.

    Args:
        delivered: What ``deliveries`` returns.
    """
    done_us = F.max(F.when(F.col("is_done"), F.unix_micros("ended_at")))
    first_us = F.min(F.unix_micros("delivered_at"))
    grouped = delivered.groupBy(*_RECORD).agg(
        F.count("*").alias("deliveries"),
        _timestamp(first_us).alias("first_delivered_at"),
        _timestamp(done_us).alias("done_at"),
        ((done_us - first_us) / _US_PER_MS).alias("done_after_ms"),
        F.sort_array(F.collect_list(F.struct("delivery", "member_id", "cause"))).alias("ends"),
    )
    return shaped(grouped, struct(ANALYSIS["records"].columns))


def lock_expiries(delivered: DataFrame) -> DataFrame:
    """
    Return how many records were taken from each member in each hour because their locks had expired.

    Args:
        delivered: What ``deliveries`` returns.
    """
    hour = F.timestamp_seconds(F.floor(F.unix_seconds("ended_at") / _S_PER_HOUR) * _S_PER_HOUR)
    grouped = (
        delivered.where(F.col("cause") == Cause.LOCK_EXPIRED.value)
        .groupBy("group_id", "member_id", hour.alias("hour"))
        .agg(F.count_distinct("topic_id", "partition").alias("share_partitions"), F.count("*").alias("records"))
    )
    return shaped(grouped, struct(ANALYSIS["lock_expiries"].columns))


def completion_times(delivered_records: DataFrame) -> DataFrame:
    """
    Return the percentiles of the times from the first delivery of records until they were done.

    Args:
        delivered_records: What ``records`` returns; those whose times are not known do not count.
    """
    percentiles = F.percentile("done_after_ms", F.array(*map(F.lit, _PERCENTILES)))
    grouped = (
        delivered_records.where(F.col("done_after_ms").isNotNull())
        .groupBy(*SHARE_PARTITION)
        .agg(F.count("*").alias("records"), percentiles.alias("of"), F.max("done_after_ms").alias("max_ms"))
        .withColumns({f"p{100 * each:.0f}_ms": F.get("of", F.lit(at)) for at, each in enumerate(_PERCENTILES)})
    )
    return shaped(grouped, struct(ANALYSIS["completion_times"].columns))


def redelivery_rates(delivered_records: DataFrame) -> DataFrame:
    """
    Return how often the records of each share partition were delivered more than once.

    Args:
        delivered_records: What ``records`` returns.
    """
    total = F.sum("deliveries")
    grouped = delivered_records.groupBy(*SHARE_PARTITION).agg(
        F.count("*").alias("records"),
        total.alias("deliveries"),
        F.count_if(F.col("deliveries") > 1).alias("redelivered_records"),
        ((total - F.count("*")) / total).alias("redelivery_rate"),
    )
    return shaped(grouped, struct(ANALYSIS["redelivery_rates"].columns))


def archived_records(result: ReplayResult) -> DataFrame:
    """
    Return every record that was archived, and why; those archived before the history begins are unknown.

    Args:
        result: What a replay has made, with transitions.

    Raises:
        MalformedInputError: Transitions were not made.
    """
    before, after, cause = F.col("from_state"), F.col("to_state"), F.col("cause")
    enters = after.isin(*_ARCHIVED) & (before.isNull() | ~before.isin(*_ARCHIVED)) & (cause != Cause.READ.value)
    gets_back = before.isin(*_ARCHIVED) & after.isNotNull() & ~after.isin(*_ARCHIVED)
    concerned = result.table("transition").where(enters | gets_back | (cause == Cause.ACQUIRED.value))
    # An aborted transaction's records are acquired and archived at once; a write fails after what it carries.
    rank = F.when(F.col("cause") == Cause.ACQUIRED.value, 0).when(F.col("is_archived"), 1).otherwise(2)
    last = F.max_by(
        F.struct("is_archived", "cause", "at_us", "delivery_count"),
        F.struct("seq", "at_us", rank),
    )
    grouped = (
        _each_record(concerned.withColumn("is_archived", enters))
        .groupBy(*_RECORD)
        .agg(last.alias("last"))
        .where("last.is_archived")
        .select(*_RECORD, "last.delivery_count", "last.cause", _timestamp("last.at_us").alias("archived_at"))
    )
    return shaped(grouped, struct(ANALYSIS["archived_records"].columns))


def start_offsets(result: ReplayResult) -> DataFrame:
    """
    Return where each SPSO has been, since when, and how long: a long stay before records that are done is a stall.

    Args:
        result: What a replay has made, with moves of SPSOs.

    Raises:
        MalformedInputError: They were not made.
    """
    # Locks of different times may expire before one event, and of one time, each with a move of its own.
    in_order = Window.partitionBy(*SHARE_PARTITION).orderBy("seq", "at_us", "start_offset")
    left_us = F.coalesce(F.lead("at_us").over(in_order), "end_us")
    ends = result.rows.groupBy(*SHARE_PARTITION).agg(F.max("at_us").alias("end_us"))
    stays = (
        result.table("start_offset")
        .withColumn("before", F.lag("start_offset").over(in_order))
        .where(F.col("before").isNull() | (F.col("before") != F.col("start_offset")))  # a new leader may not move it
        .join(ends, [*SHARE_PARTITION])
        .withColumn("is_last", F.lead("seq").over(in_order).isNull())
        .withColumn("stayed_ms", (left_us - F.col("at_us")) / _US_PER_MS)
        .withColumn("reached_at", _timestamp("at_us"))
    )
    return shaped(stays, struct(ANALYSIS["start_offsets"].columns))


def in_flight(result: ReplayResult) -> DataFrame:
    """
    Return how many records were in flight, and how many of them acquired, after each change of these numbers.

    Args:
        result: What a replay has made, with initializations and transitions.

    Raises:
        MalformedInputError: One of these kinds was not made.
    """
    before, after = F.col("from_state"), F.col("to_state")
    size = F.col("last_offset") - F.col("first_offset") + 1
    # Locks that expire before an initialization are of the leader before, even if both happen at the same time.
    phase = F.when(F.col("cause").isin(Cause.LOCK_EXPIRED.value, Cause.ARCHIVED_AT_LIMIT.value), 0).otherwise(2)
    changes = result.table("transition").select(
        *SHARE_PARTITION,
        "seq",
        "at_us",
        phase.alias("phase"),
        (size * (before.isNull().cast("int") - after.isNull().cast("int"))).alias("more_in_flight"),
        (size * (_is("to_state", _ACQUIRED) - _is("from_state", _ACQUIRED))).alias("more_acquired"),
    )
    zero = F.lit(0).cast("long")
    leaders = result.table("initialization").select(
        *SHARE_PARTITION,
        "seq",
        "at_us",
        F.lit(1).alias("phase"),
        zero.alias("more_in_flight"),
        zero.alias("more_acquired"),
    )
    in_order = Window.partitionBy(*SHARE_PARTITION).orderBy("seq", "at_us", "phase")
    in_reign = Window.partitionBy(*SHARE_PARTITION, "leader").orderBy("seq", "at_us", "phase")
    counted = (
        changes.where("more_in_flight != 0 OR more_acquired != 0")
        .unionByName(leaders)
        .groupBy(*SHARE_PARTITION, "seq", "at_us", "phase")
        .agg(F.sum("more_in_flight").alias("more_in_flight"), F.sum("more_acquired").alias("more_acquired"))
        .withColumn("leader", F.count_if(F.col("phase") == 1).over(in_order))
        .withColumn("in_flight", F.sum("more_in_flight").over(in_reign))
        .withColumn("acquired", F.sum("more_acquired").over(in_reign))
        .withColumn("at", _timestamp("at_us"))
    )
    return shaped(counted, struct(ANALYSIS["in_flight"].columns))


def write_tables(
    result: ReplayResult, path: str, *, watch: Callable[[Iterable[str]], Iterable[str]] = iter
) -> Mapping[str, DataFrame]:
    """
    Write all tables as Parquet, each into a directory of its name in *path*, and return them as they are read there.

    Args:
        result: What a replay has made and ``ReplayResult.write`` has written, with all kinds but states.
        path: Where to write; directories that are there already are an error of Spark's.
        watch: Yields the names of the tables; to show progress.

    Raises:
        MalformedInputError: A kind that a table needs was not made.
        AnalysisException: A table is there already.
    """
    if result.table("transition").isEmpty() and not result.table("acquisition").isEmpty():
        refuse("expected transitions beside the acquisitions: replay with them", "result")
    spark = result.rows.sparkSession
    written: dict[str, DataFrame] = {}
    for name in watch(_MADE_FROM):
        make, source = _MADE_FROM[name]
        make(result if source is None else written[source]).write.parquet(f"{path}/{name}")
        written[name] = spark.read.schema(struct(ANALYSIS[name].columns)).parquet(f"{path}/{name}")
    return MappingProxyType(written)


_MADE_FROM: Final[Mapping[str, tuple[Callable[[Any], DataFrame], str | None]]] = MappingProxyType(
    {
        "deliveries": (deliveries, None),
        "records": (records, "deliveries"),
        "lock_expiries": (lock_expiries, "deliveries"),
        "completion_times": (completion_times, "records"),
        "redelivery_rates": (redelivery_rates, "records"),
        "archived_records": (archived_records, None),
        "start_offsets": (start_offsets, None),
        "in_flight": (in_flight, None),
    }
)
"""What makes each table, and the table that it is made from; None for the result of the replay."""


# ---- records one by one


def _each_record(ranges: DataFrame) -> DataFrame:
    """Return a row for each record of *ranges*, in the column ``offset``."""
    return ranges.withColumn("offset", F.explode(F.sequence("first_offset", "last_offset")))


def _begins(result: ReplayResult) -> DataFrame:
    """Return when each record was delivered, and to whom."""
    names = (*_RECORD, "seq", "at_us", "member_id", "delivery_count")
    return _each_record(result.table("acquisition")).select(*names, F.lit(True).alias("begins"))  # noqa: FBT003 - a value of SQL


def _ends(result: ReplayResult) -> DataFrame:
    """Return when records were acquired no longer, and when they were again because a write had failed."""
    before, after, cause = F.col("from_state"), F.col("to_state"), F.col("cause")
    leaves = (before == _ACQUIRED) & (after != _ACQUIRED)
    decides = cause.isin(Cause.ROLLED_BACK.value, Cause.ARCHIVED_AT_LIMIT.value)
    names = (*_RECORD, "seq", "at_us", "cause", "to_state")
    ends = result.table("transition").where(leaves | decides)
    return _each_record(ends).select(*names, F.lit(False).alias("begins"))  # noqa: FBT003 - a value of SQL


def _with_new_leaders(each: DataFrame, result: ReplayResult) -> DataFrame:
    """Add what new leaders have ended, and what follows from the end of a delivery."""
    leaders = (
        result.table("initialization")
        .groupBy(*SHARE_PARTITION)
        .agg(F.sort_array(F.collect_list(F.struct("seq", "at_us"))).alias("leaders"))
    )
    by_record = Window.partitionBy(*_RECORD).orderBy("delivery")
    is_again = F.lead("seq").over(by_record).isNotNull()
    is_open = F.coalesce(F.col("end.to_state") == _ACQUIRED, F.col("end").isNull())
    was_lost = ~is_open & F.col("end.to_state").isin(*_DONE) & F.col("is_again")
    since = F.when(is_open, F.col("seq")).when(was_lost, F.col("end.seq"))
    next_leader = F.get(F.filter("leaders", lambda leader: leader["seq"] > F.col("since")), F.lit(0))
    is_ended = F.col("leader").isNull() & ~F.col("is_open")
    return (
        each.withColumns({"is_again": is_again, "is_open": is_open})
        .withColumn("since", since)
        .join(F.broadcast(leaders), [*SHARE_PARTITION], "left")
        .withColumn("leader", next_leader)
        .withColumns(
            {
                "delivered_at": _timestamp("delivered_us"),
                "ended_at": _timestamp(F.when(is_ended, F.col("end.at_us")).otherwise(F.col("leader.at_us"))),
                "cause": F.when(is_ended, F.col("end.cause")).when(F.col("leader").isNotNull(), NEW_LEADER),
                "is_done": is_ended & F.col("end.to_state").isin(*_DONE),
            }
        )
    )


def _with_times(ended: DataFrame) -> DataFrame:
    """Add how long records were held, and how long they waited since the delivery before."""
    by_record = Window.partitionBy(*_RECORD).orderBy("delivery")
    begin_us, end_us = F.unix_micros("delivered_at"), F.unix_micros("ended_at")
    return ended.withColumns(
        {
            "held_ms": (end_us - begin_us) / _US_PER_MS,
            "waited_ms": (begin_us - F.lag(end_us).over(by_record)) / _US_PER_MS,
        }
    )


def _topics(result: ReplayResult) -> DataFrame:
    """Return the names of topics."""
    schema = StructType([StructField("topic_id", StringType()), StructField("topic", StringType())])
    return result.rows.sparkSession.createDataFrame([*result.topics.items()], schema)


# ---- columns


def _timestamp(us: Column | str) -> Column:
    return F.timestamp_micros(us)


def _is(state: str, number: int) -> Column:
    """Return 1 where *state* is *number*, else 0, also for none."""
    return F.coalesce((F.col(state) == number).cast("int"), F.lit(0))
