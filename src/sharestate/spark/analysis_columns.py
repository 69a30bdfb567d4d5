"""
The tables of what has become of records in a replay, and their columns, as data.

Spark's schemas and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.columns import Column, ColumnTable, Rows, Scalar, by_name, required
from sharestate.history.columns import KEY_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping


_RECORD: Final = (*KEY_COLUMNS, required("offset", Scalar.INT64, "the record"))
_END_OF_DELIVERY: Final = "why the delivery has ended; null if it has not: a cause of a transition, or `new leader`"
_MEMBER: Final = required("member_id", Scalar.TEXT, "the member that had the record")

ANALYSIS: Final[Mapping[str, ColumnTable]] = by_name(
    ColumnTable(
        "deliveries",
        "a delivery of a record to a member",
        (
            *_RECORD,
            required("topic", Scalar.TEXT, "the name of the topic; its id if that is not known"),
            required("delivery", Scalar.INT32, "the number of the delivery, from 1 on, all leaders together"),
            required(
                "delivery_count", Scalar.INT16, "Kafka's own count, which a new leader may not know", "deliveries"
            ),
            _MEMBER,
            Column("delivered_at", Scalar.TIMESTAMP, "when it was acquired; null if not known"),
            Column("waited_ms", Scalar.DOUBLE, "the time since the delivery before it has ended", "ms"),
            Column("ended_at", Scalar.TIMESTAMP, "when the delivery has ended; null if not known"),
            Column("held_ms", Scalar.DOUBLE, "the time between the two", "ms"),
            Column("cause", Scalar.TEXT, _END_OF_DELIVERY),
            required(
                "is_done", Scalar.BOOLEAN, "whether the record was done with this delivery: acknowledged or archived"
            ),
        ),
    ),
    ColumnTable(
        "records",
        "a record that was delivered",
        (
            *_RECORD,
            required("deliveries", Scalar.INT32, "how often it was delivered", "deliveries"),
            Column("first_delivered_at", Scalar.TIMESTAMP, "when it was delivered first"),
            Column("done_at", Scalar.TIMESTAMP, "when it was done; null if it is not"),
            Column("done_after_ms", Scalar.DOUBLE, "the time between the two", "ms"),
            required(
                "ends",
                Rows(
                    tuple,
                    (
                        Column("delivery", Scalar.INT32, "the number of the delivery"),
                        Column("member_id", Scalar.TEXT, "the member that had the record"),
                        Column("cause", Scalar.TEXT, _END_OF_DELIVERY),
                    ),
                ),
                "how each delivery has ended, in order",
            ),
        ),
    ),
    ColumnTable(
        "lock_expiries",
        "a member in an hour in which records were taken from it because their locks had expired",
        (
            KEY_COLUMNS[0],
            _MEMBER,
            Column("hour", Scalar.TIMESTAMP, "the hour of UTC; null if no times are known"),
            required("share_partitions", Scalar.INT64, "the number of share partitions concerned", "share partitions"),
            required(
                "records", Scalar.INT64, "how many there were; those archived at the limit are not counted", "records"
            ),
        ),
    ),
    ColumnTable(
        "completion_times",
        "the times from the first delivery of a record until it was done, for a share partition",
        (
            *KEY_COLUMNS,
            required("records", Scalar.INT64, "the number of records that were done", "records"),
            Column("p50_ms", Scalar.DOUBLE, "the median; between two values, interpolated", "ms"),
            Column("p90_ms", Scalar.DOUBLE, "the 90th percentile", "ms"),
            Column("p99_ms", Scalar.DOUBLE, "the 99th percentile", "ms"),
            Column("max_ms", Scalar.DOUBLE, "the longest time", "ms"),
        ),
    ),
    ColumnTable(
        "redelivery_rates",
        "how often records were delivered more than once, for a share partition",
        (
            *KEY_COLUMNS,
            required("records", Scalar.INT64, "the number of records that were delivered", "records"),
            required("deliveries", Scalar.INT64, "the number of their deliveries", "deliveries"),
            required("redelivered_records", Scalar.INT64, "the number of records delivered more than once", "records"),
            required(
                "redelivery_rate", Scalar.DOUBLE, "the part of deliveries that were not the first of their record"
            ),
        ),
    ),
    ColumnTable(
        "archived_records",
        "a record that was archived, and neither delivered again nor got back by a write that failed",
        (
            *_RECORD,
            required("delivery_count", Scalar.INT16, "Kafka's count of its deliveries", "deliveries"),
            Column("archived_at", Scalar.TIMESTAMP, "when it was archived; null if not known"),
            required("cause", Scalar.TEXT, "why, as a cause of a transition"),
        ),
    ),
    ColumnTable(
        "start_offsets",
        "a place where the SPSO has been",
        (
            *KEY_COLUMNS,
            required("start_offset", Scalar.INT64, "the SPSO"),
            Column("reached_at", Scalar.TIMESTAMP, "since when it was there; null if not known"),
            Column("stayed_ms", Scalar.DOUBLE, "how long it stayed, or until the history ends", "ms"),
            required("is_last", Scalar.BOOLEAN, "whether it is still there at the end"),
        ),
    ),
    ColumnTable(
        "in_flight",
        "the number of records in flight after each change of it, or of a leader",
        (
            *KEY_COLUMNS,
            Column("at", Scalar.TIMESTAMP, "when it has changed; null if not known"),
            required("seq", Scalar.INT64, "the event with which it has changed"),
            required("in_flight", Scalar.INT64, "the records in flight: cached between SPSO and SPEO", "records"),
            required("acquired", Scalar.INT64, "those of them that a member holds", "records"),
        ),
    ),
)
"""The tables by the names of the functions that make them."""
