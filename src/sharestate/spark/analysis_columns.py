"""
The tables of what has become of records in a replay, and their columns, as data.

Spark's schemas and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.spark.columns import SHARE_PARTITION, Column, Columns

if TYPE_CHECKING:
    from collections.abc import Mapping


class AnalysisTable(NamedTuple):
    """
    A table of the analysis.

    Attributes:
        meaning: What a row of it is.
        columns: Its columns.
    """

    meaning: str
    columns: Columns


_RECORD: Final = (*SHARE_PARTITION, Column("offset", "long", "the record"))
_END_OF_DELIVERY: Final = "why the delivery has ended; null if it has not: a cause of a transition, or `new leader`"
_MEMBER: Final = Column("member_id", "string", "the member that had the record")

ANALYSIS: Final[Mapping[str, AnalysisTable]] = MappingProxyType(
    {
        "deliveries": AnalysisTable(
            "a delivery of a record to a member",
            (
                *_RECORD,
                Column("topic", "string", "the name of the topic; its id if that is not known"),
                Column("delivery", "integer", "the number of the delivery, from 1 on, all leaders together"),
                Column("delivery_count", "short", "Kafka's own count, which a new leader may not know", "deliveries"),
                _MEMBER,
                Column("delivered_at", "timestamp", "when it was acquired; null if not known", is_nullable=True),
                Column(
                    "waited_ms", "double", "the time since the delivery before it has ended", "ms", is_nullable=True
                ),
                Column("ended_at", "timestamp", "when the delivery has ended; null if not known", is_nullable=True),
                Column("held_ms", "double", "the time between the two", "ms", is_nullable=True),
                Column("cause", "string", _END_OF_DELIVERY, is_nullable=True),
                Column(
                    "is_done", "boolean", "whether the record was done with this delivery: acknowledged or archived"
                ),
            ),
        ),
        "records": AnalysisTable(
            "a record that was delivered",
            (
                *_RECORD,
                Column("deliveries", "integer", "how often it was delivered", "deliveries"),
                Column("first_delivered_at", "timestamp", "when it was delivered first", is_nullable=True),
                Column("done_at", "timestamp", "when it was done; null if it is not", is_nullable=True),
                Column("done_after_ms", "double", "the time between the two", "ms", is_nullable=True),
                Column(
                    "ends",
                    (
                        Column("delivery", "integer", "the number of the delivery", is_nullable=True),
                        Column("member_id", "string", "the member that had the record", is_nullable=True),
                        Column("cause", "string", _END_OF_DELIVERY, is_nullable=True),
                    ),
                    "how each delivery has ended, in order",
                ),
            ),
        ),
        "lock_expiries": AnalysisTable(
            "a member in an hour in which records were taken from it because their locks had expired",
            (
                SHARE_PARTITION[0],
                _MEMBER,
                Column("hour", "timestamp", "the hour of UTC; null if no times are known", is_nullable=True),
                Column("share_partitions", "long", "the number of share partitions concerned", "share partitions"),
                Column(
                    "records", "long", "how many there were; those archived at the limit are not counted", "records"
                ),
            ),
        ),
        "completion_times": AnalysisTable(
            "the times from the first delivery of a record until it was done, for a share partition",
            (
                *SHARE_PARTITION,
                Column("records", "long", "the number of records that were done", "records"),
                Column("p50_ms", "double", "the median; between two values, interpolated", "ms", is_nullable=True),
                Column("p90_ms", "double", "the 90th percentile", "ms", is_nullable=True),
                Column("p99_ms", "double", "the 99th percentile", "ms", is_nullable=True),
                Column("max_ms", "double", "the longest time", "ms", is_nullable=True),
            ),
        ),
        "redelivery_rates": AnalysisTable(
            "how often records were delivered more than once, for a share partition",
            (
                *SHARE_PARTITION,
                Column("records", "long", "the number of records that were delivered", "records"),
                Column("deliveries", "long", "the number of their deliveries", "deliveries"),
                Column("redelivered_records", "long", "the number of records delivered more than once", "records"),
                Column("redelivery_rate", "double", "the part of deliveries that were not the first of their record"),
            ),
        ),
        "archived_records": AnalysisTable(
            "a record that was archived, and neither delivered again nor got back by a write that failed",
            (
                *_RECORD,
                Column("delivery_count", "short", "Kafka's count of its deliveries", "deliveries"),
                Column("archived_at", "timestamp", "when it was archived; null if not known", is_nullable=True),
                Column("cause", "string", "why, as a cause of a transition"),
            ),
        ),
        "start_offsets": AnalysisTable(
            "a place where the SPSO has been",
            (
                *SHARE_PARTITION,
                Column("start_offset", "long", "the SPSO"),
                Column("reached_at", "timestamp", "since when it was there; null if not known", is_nullable=True),
                Column("stayed_ms", "double", "how long it stayed, or until the history ends", "ms", is_nullable=True),
                Column("is_last", "boolean", "whether it is still there at the end"),
            ),
        ),
        "in_flight": AnalysisTable(
            "the number of records in flight after each change of it, or of a leader",
            (
                *SHARE_PARTITION,
                Column("at", "timestamp", "when it has changed; null if not known", is_nullable=True),
                Column("seq", "long", "the event with which it has changed"),
                Column("in_flight", "long", "the records in flight: cached between SPSO and SPEO", "records"),
                Column("acquired", "long", "those of them that a member holds", "records"),
            ),
        ),
    }
)
"""The tables by the names of the functions that make them."""
