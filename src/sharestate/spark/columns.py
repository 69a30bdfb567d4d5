"""
The tables of the state topic and of dead-letter topics that go into Spark or come out of it, as data.

Spark's schemas, Arrow's and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from typing import Final

from sharestate.columns import Column, Scalar, required
from sharestate.dead_letter_topic.letters import LETTER_COLUMNS
from sharestate.history.columns import KEY_COLUMNS, STATE_BATCHES

_TOPIC: Final = required("topic", Scalar.TEXT, "the topic that the records were read from")
_STATE_PARTITION: Final = required("state_partition", Scalar.INT32, "the partition of the state topic")
STATE_RECORDS: Final = (
    Column("key", Scalar.BINARY, "the bytes of the record's key"),
    Column("value", Scalar.BINARY, "the bytes of the record's value; null for a tombstone"),
    Column("topic", Scalar.TEXT, "the topic"),
    Column("partition", Scalar.INT32, "the partition of the topic"),
    Column("offset", Scalar.INT64, "where the record is in its partition"),
    Column("timestamp", Scalar.TIMESTAMP, "when the record was written; null if it does not say"),
    Column("timestampType", Scalar.INT32, "who has set the timestamp: 0 the producer, 1 the broker"),
)
"""
Records of the state topic: the columns of Spark's own Kafka source.

All are nullable, because those of other sources may be: what must not be null is judged when rows are read.
"""

STATES: Final = (
    _TOPIC,
    _STATE_PARTITION,
    *KEY_COLUMNS,
    required("state_epoch", Scalar.INT32, "the epoch with which the state was initialized last"),
    required("leader_epoch", Scalar.INT32, "the epoch of the leader that has read the state"),
    required("snapshot_epoch", Scalar.INT32, "the number of snapshots before the last one"),
    required("start_offset", Scalar.INT64, "the SPSO; -1 if there is none yet"),
    required(
        "delivery_complete_count",
        Scalar.INT32,
        "the number of terminal records at or above the SPSO; -1 if none was written",
        "records",
    ),
    required("state_batches", STATE_BATCHES, "the ranges in flight: ascending, without overlap"),
    required(
        "create_timestamp_ms",
        Scalar.INT64,
        "the time of the last snapshot that was due to a change; 0 if no snapshot is left",
        "ms since 1970",
    ),
    required("write_timestamp_ms", Scalar.INT64, "the time of the last snapshot; 0 if none is left", "ms since 1970"),
    Column("snapshot_offset", Scalar.INT64, "where the last snapshot is; null if none is left"),
    required("last_offset", Scalar.INT64, "where the last record of the share partition is"),
)
"""The final state of every share partition."""

RECORD_COUNTS: Final = (
    _TOPIC,
    _STATE_PARTITION,
    required("first_offset", Scalar.INT64, "the offset of the first record"),
    required("last_offset", Scalar.INT64, "the offset of the last record"),
    required("snapshots", Scalar.INT64, "the number of snapshots", "records"),
    required("updates", Scalar.INT64, "the number of updates", "records"),
    required("tombstones", Scalar.INT64, "the number of tombstones", "records"),
    required("unknown", Scalar.INT64, "the number of records of unknown types, which are skipped", "records"),
    required("size", Scalar.INT64, "the size of all keys and values", "bytes"),
)
"""What is in each partition of the state topic."""

LOG_ENDS: Final = (
    *KEY_COLUMNS[1:],
    required("log_end_offset", Scalar.INT64, "the offset that the next record of this partition will have"),
)
"""Where the logs of the consumed partitions end, to compute lags from."""

HEALTH: Final = (
    _TOPIC,
    _STATE_PARTITION,
    *KEY_COLUMNS,
    required("start_offset", Scalar.INT64, "the SPSO; -1 if there is none yet"),
    Column("start_timestamp", Scalar.TIMESTAMP, "when the SPSO got where it is; null if unknown"),
    required("changes_since", Scalar.INT64, "the number of changes since then", "records"),
    required(
        "terminal_records",
        Scalar.INT64,
        "the number of terminal records that wait for the SPSO to pass them",
        "records",
    ),
    required("is_stuck", Scalar.BOOLEAN, "whether many changes have left the SPSO before terminal records"),
    required(
        "records_near_limit", Scalar.INT64, "the number of other records with one delivery left, or none", "records"
    ),
    required("blocks_pruning", Scalar.BOOLEAN, "whether its last snapshot keeps later records from being deleted"),
    required(
        "blocked_offsets", Scalar.INT64, "how many more offsets could be deleted if it had a new snapshot", "offsets"
    ),
    Column("log_end_offset", Scalar.INT64, "where the consumed partition ends; null if unknown"),
    Column("lag", Scalar.INT64, "the number of records still to be delivered or finished; null if unknown", "records"),
)
"""What an operator asks of every share partition."""

LETTERS: Final = LETTER_COLUMNS
"""What the records of a dead-letter topic say."""

TABLES: Final = {
    "STATE_RECORDS": STATE_RECORDS,
    "STATES": STATES,
    "RECORD_COUNTS": RECORD_COUNTS,
    "LOG_ENDS": LOG_ENDS,
    "HEALTH": HEALTH,
    "LETTERS": LETTERS,
}
"""Every table by the name of its schema in ``sharestate.spark``."""
