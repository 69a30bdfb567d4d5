"""
The columns of every table that goes into Spark or comes out of it: name, type, unit and meaning, as data.

Spark's schemas, Arrow's and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Scalar: TypeAlias = Literal["binary", "boolean", "byte", "short", "integer", "long", "double", "string", "timestamp"]
"""A type of Spark, by the name that it has there."""


class Column(NamedTuple):
    """
    A column of a table, or a field of a struct.

    >>> OFFSET = Column("offset", "long", "where the record is in its partition of the state topic")
    >>> OFFSET.unit, OFFSET.is_nullable
    (None, False)

    Attributes:
        name: Its name.
        type: Its type; several columns for an array of structs with them as fields.
        meaning: What a value of it says, in a few words.
        unit: The unit of a value; None for a number without a unit, and for whatever is no number.
        is_nullable: Whether a value may be null.
    """

    name: str
    type: Scalar | tuple[Column, ...]
    meaning: str
    unit: str | None = None
    is_nullable: bool = False

    @property
    def comment(self) -> str:
        """The meaning with the unit, as Spark's ``DESCRIBE TABLE`` shows it."""
        return self.meaning if self.unit is None else f"{self.meaning} [{self.unit}]"


Columns: TypeAlias = tuple[Column, ...]

_TOPIC: Final = Column("topic", "string", "the topic that the records were read from")
_STATE_PARTITION: Final = Column("state_partition", "integer", "the partition of the state topic")
SHARE_PARTITION: Final = (
    Column("group_id", "string", "the share group"),
    Column("topic_id", "string", "the topic that the group consumes, its id in base64 as Kafka prints it"),
    Column("partition", "integer", "the partition that the group consumes"),
)
"""What names a share partition."""

STATE_RECORDS: Final[Columns] = (
    Column("key", "binary", "the bytes of the record's key", is_nullable=True),
    Column("value", "binary", "the bytes of the record's value; null for a tombstone", is_nullable=True),
    Column("topic", "string", "the topic", is_nullable=True),
    Column("partition", "integer", "the partition of the topic", is_nullable=True),
    Column("offset", "long", "where the record is in its partition", is_nullable=True),
    Column("timestamp", "timestamp", "when the record was written; null if it does not say", is_nullable=True),
    Column("timestampType", "integer", "who has set the timestamp: 0 the producer, 1 the broker", is_nullable=True),
)
"""
Records of the state topic: the columns of Spark's own Kafka source.

All are nullable, because those of other sources may be: what must not be null is judged when rows are read.
"""

STATE_BATCH: Final[Columns] = (
    Column("first_offset", "long", "the first offset of the range"),
    Column("last_offset", "long", "the last offset of the range, included"),
    Column("delivery_state", "byte", "the state of its records, by Kafka's number"),
    Column("delivery_count", "short", "how often they were delivered", "deliveries"),
)

STATES: Final[Columns] = (
    _TOPIC,
    _STATE_PARTITION,
    *SHARE_PARTITION,
    Column("state_epoch", "integer", "the epoch with which the state was initialized last"),
    Column("leader_epoch", "integer", "the epoch of the leader that has read the state"),
    Column("snapshot_epoch", "integer", "the number of snapshots before the last one"),
    Column("start_offset", "long", "the SPSO; -1 if there is none yet"),
    Column(
        "delivery_complete_count",
        "integer",
        "the number of terminal records at or above the SPSO; -1 if none was written",
        "records",
    ),
    Column("state_batches", STATE_BATCH, "the ranges in flight: ascending, without overlap"),
    Column(
        "create_timestamp_ms",
        "long",
        "the time of the last snapshot that was due to a change; 0 if no snapshot is left",
        "ms since 1970",
    ),
    Column("write_timestamp_ms", "long", "the time of the last snapshot; 0 if none is left", "ms since 1970"),
    Column("snapshot_offset", "long", "where the last snapshot is; null if none is left", is_nullable=True),
    Column("last_offset", "long", "where the last record of the share partition is"),
)
"""The final state of every share partition."""

RECORD_COUNTS: Final[Columns] = (
    _TOPIC,
    _STATE_PARTITION,
    Column("first_offset", "long", "the offset of the first record"),
    Column("last_offset", "long", "the offset of the last record"),
    Column("snapshots", "long", "the number of snapshots", "records"),
    Column("updates", "long", "the number of updates", "records"),
    Column("tombstones", "long", "the number of tombstones", "records"),
    Column("unknown", "long", "the number of records of unknown types, which are skipped", "records"),
    Column("size", "long", "the size of all keys and values", "bytes"),
)
"""What is in each partition of the state topic."""

LOG_ENDS: Final[Columns] = (
    *SHARE_PARTITION[1:],
    Column("log_end_offset", "long", "the offset that the next record of this partition will have"),
)
"""Where the logs of the consumed partitions end, to compute lags from."""

HEALTH: Final[Columns] = (
    _TOPIC,
    _STATE_PARTITION,
    *SHARE_PARTITION,
    Column("start_offset", "long", "the SPSO; -1 if there is none yet"),
    Column("start_timestamp", "timestamp", "when the SPSO got where it is; null if unknown", is_nullable=True),
    Column("changes_since", "long", "the number of changes since then", "records"),
    Column("terminal_records", "long", "the number of terminal records that wait for the SPSO to pass them", "records"),
    Column("is_stuck", "boolean", "whether many changes have left the SPSO before terminal records"),
    Column(
        "records_near_limit",
        "long",
        "the number of other records with one delivery left, or none",
        "records",
    ),
    Column("blocks_pruning", "boolean", "whether its last snapshot keeps later records from being deleted"),
    Column("blocked_offsets", "long", "how many more offsets could be deleted if it had a new snapshot", "offsets"),
    Column("log_end_offset", "long", "where the consumed partition ends; null if unknown", is_nullable=True),
    Column(
        "lag",
        "long",
        "the number of records still to be delivered or finished; null if unknown",
        "records",
        is_nullable=True,
    ),
)
"""What an operator asks of every share partition."""

TABLES: Final[dict[str, Columns]] = {
    "STATE_RECORDS": STATE_RECORDS,
    "STATES": STATES,
    "RECORD_COUNTS": RECORD_COUNTS,
    "LOG_ENDS": LOG_ENDS,
    "HEALTH": HEALTH,
}
"""Every table by the name of its schema in ``sharestate.spark``."""
