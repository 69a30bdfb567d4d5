"""The tables of the rows of a replay: the columns that all have, and those of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sharestate.columns import Column, ColumnTable, Scalar, by_name, required
from sharestate.history.columns import KEY_COLUMNS, KINDS, STATE_BATCHES

OUTPUT_COLUMNS: Final = (
    *KEY_COLUMNS,
    required("seq", Scalar.INT64, "the event after which it happened"),
    Column("at_us", Scalar.INT64, "when it happened", "µs since 1970"),
    required("kind", Scalar.TEXT, "the kind"),
)
"""The columns that all rows of a replay have."""

_FIRST, _LAST, _, _COUNT = STATE_BATCHES.columns
_LEADER_EPOCH: Final = KINDS["initialize"].request[0]
_MEMBER: Final = Column("member_id", Scalar.TEXT, "the member; empty for none")
_RANGE: Final = (_FIRST, _LAST)

OUTPUTS: Final[Mapping[str, ColumnTable]] = by_name(
    ColumnTable(
        "initialization",
        "a new share partition, with which everything that was not persisted is gone",
        (
            _LEADER_EPOCH,
            Column("state_epoch", Scalar.INT32, "the epoch of the state; null if it was not read"),
            Column("start_offset", Scalar.INT64, "the SPSO; null if the state was not read"),
        ),
    ),
    ColumnTable(
        "start_offset",
        "a move of the SPSO, also to where a new share partition begins",
        (required("start_offset", Scalar.INT64, "the SPSO"),),
    ),
    ColumnTable(
        "write",
        "a write that the share partition has issued",
        (
            required("number", Scalar.INT64, "its number at the share partition"),
            *(each for each in KINDS["write"].request if each.is_required),
        ),
    ),
    ColumnTable(
        "transition",
        "a change of a range of records",
        (
            *_RANGE,
            _MEMBER,
            _COUNT,
            required("cause", Scalar.TEXT, "the cause"),
            Column("from_state", Scalar.INT8, "the number of the state before; null if not in flight"),
            Column("to_state", Scalar.INT8, "the number of the state after; null if no longer in flight"),
            Column("number", Scalar.INT64, "the write that carries it, or whose outcome has caused it"),
        ),
    ),
    ColumnTable("acquisition", "a range that a member has acquired", (*_RANGE, _MEMBER, _COUNT)),
    ColumnTable(
        "dead_letter",
        "a range that was handed to the dead-letter queue",
        (*_RANGE, _COUNT, required("cause", Scalar.TEXT, "the cause")),
    ),
    ColumnTable(
        "difference",
        "something that was observed and computed otherwise",
        (
            required("name", Scalar.TEXT, "what differs"),
            required("observed", Scalar.TEXT, "what was observed, as JSON"),
            required("computed", Scalar.TEXT, "what was computed, as JSON"),
        ),
    ),
    ColumnTable("verdict", "what the check of a broker's log found", KINDS["verdict"].request),
    ColumnTable(
        "metric",
        "a count over the whole history",
        (
            required("name", Scalar.TEXT, "what is counted"),
            required("value", Scalar.INT64, "how often it was"),
        ),
    ),
    ColumnTable(
        "snapshot",
        "the share partition at the end; none if its state was never read",
        (required("state", Scalar.TEXT, "the snapshot, as JSON"),),
    ),
    ColumnTable(
        "state",
        "where a replay of later events goes on",
        (required("state", Scalar.TEXT, "the state of the replay, as JSON"),),
    ),
)
"""The kinds of rows of a replay by their names."""
