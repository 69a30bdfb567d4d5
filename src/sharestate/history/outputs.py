"""The tables of the rows of a replay: the columns that all have, and those of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from sharestate.history.columns import KEY_COLUMNS, KINDS, STATE_BATCHES, Column, Need, Scalar


@frozen
class Output:
    """A kind of rows of a replay."""

    name: str
    """Its name, as it stands in the column ``kind``."""

    meaning: str
    """Its meaning, in a few words."""

    columns: tuple[Column, ...]
    """The columns that it has besides those that all have."""


OUTPUT_COLUMNS: Final = (
    *KEY_COLUMNS,
    Column("seq", Scalar.INT64, "the event after which it happened", need=Need.REQUIRED),
    Column("at_us", Scalar.INT64, "when it happened", "µs since 1970"),
    Column("kind", Scalar.TEXT, "the kind", need=Need.REQUIRED),
)
"""The columns that all rows of a replay have."""

_FIRST, _LAST, _, _COUNT = STATE_BATCHES.columns
_LEADER_EPOCH: Final = KINDS["initialize"].request[0]
_MEMBER: Final = Column("member_id", Scalar.TEXT, "the member; empty for none")
_RANGE: Final = (_FIRST, _LAST)

OUTPUTS: Final[Mapping[str, Output]] = MappingProxyType(
    {
        output.name: output
        for output in (
            Output(
                "initialization",
                "a new share partition, with which everything that was not persisted is gone",
                (
                    _LEADER_EPOCH,
                    Column("state_epoch", Scalar.INT32, "the epoch of the state; null if it was not read"),
                    Column("start_offset", Scalar.INT64, "the SPSO; null if the state was not read"),
                ),
            ),
            Output(
                "start_offset",
                "a move of the SPSO, also to where a new share partition begins",
                (Column("start_offset", Scalar.INT64, "the SPSO", need=Need.REQUIRED),),
            ),
            Output(
                "write",
                "a write that the share partition has issued",
                (
                    Column("number", Scalar.INT64, "its number at the share partition", need=Need.REQUIRED),
                    *(each for each in KINDS["write"].request if each.need is Need.REQUIRED),
                ),
            ),
            Output(
                "transition",
                "a change of a range of records",
                (
                    *_RANGE,
                    _MEMBER,
                    _COUNT,
                    Column("cause", Scalar.TEXT, "the cause", need=Need.REQUIRED),
                    Column("from_state", Scalar.INT8, "the number of the state before; null if not in flight"),
                    Column("to_state", Scalar.INT8, "the number of the state after; null if no longer in flight"),
                    Column("number", Scalar.INT64, "the write that carries it, or whose outcome has caused it"),
                ),
            ),
            Output("acquisition", "a range that a member has acquired", (*_RANGE, _MEMBER, _COUNT)),
            Output(
                "dead_letter",
                "a range that was handed to the dead-letter queue",
                (*_RANGE, _COUNT, Column("cause", Scalar.TEXT, "the cause", need=Need.REQUIRED)),
            ),
            Output(
                "difference",
                "something that was observed and computed otherwise",
                (
                    Column("name", Scalar.TEXT, "what differs", need=Need.REQUIRED),
                    Column("observed", Scalar.TEXT, "what was observed, as JSON", need=Need.REQUIRED),
                    Column("computed", Scalar.TEXT, "what was computed, as JSON", need=Need.REQUIRED),
                ),
            ),
            Output("verdict", "what the check of a broker's log found", KINDS["verdict"].request),
            Output(
                "metric",
                "a count over the whole history",
                (
                    Column("name", Scalar.TEXT, "what is counted", need=Need.REQUIRED),
                    Column("value", Scalar.INT64, "how often it was", need=Need.REQUIRED),
                ),
            ),
            Output(
                "snapshot",
                "the share partition at the end; none if its state was never read",
                (Column("state", Scalar.TEXT, "the snapshot, as JSON", need=Need.REQUIRED),),
            ),
            Output(
                "state",
                "where a replay of later events goes on",
                (Column("state", Scalar.TEXT, "the state of the replay, as JSON", need=Need.REQUIRED),),
            ),
        )
    }
)
"""The kinds of rows of a replay by their names."""
