"""
Schemas of histories and of what a replay makes of them, made from the tables of the history format.

Each column carries its meaning as ``comment`` and its unit as ``unit`` in its metadata.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StructField, StructType

from sharestate.columns import Column
from sharestate.history import EVENT_COLUMNS, KINDS, OUTPUT_COLUMNS, OUTPUTS, Order
from sharestate.history.columns import INFERRED, MAY_LACK
from sharestate.spark.schemas import arrow_schema, struct, struct_of_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame


def _side(name: str, tables: Iterable[Iterable[Column]]) -> StructField:
    comment = f"the {name}, with the fields of the event's kind; the others are null"
    return StructField(name, struct_of_any(tables), nullable=True, metadata={"comment": comment})


SHARE_PARTITION: Final = tuple(column.name for column in EVENT_COLUMNS[:3])
"""The columns that name a share partition."""

LACKS: Final = "sharestate_history_lacks"
"""What the metadata of the column ``kind`` of events calls the kinds that their history lacks."""

ORDER: Final = "sharestate_history_order"
"""What it calls the order of the history."""

TOPICS: Final = "sharestate_history_topics"
"""What it calls the names of topics by their ids."""

EVENTS: Final = StructType(
    [
        *struct(EVENT_COLUMNS),
        _side("request", (kind.request for kind in KINDS.values())),
        _side("response", (kind.response for kind in KINDS.values())),
        *struct([INFERRED]),
    ]
)
REPLAY_ROWS: Final = StructType(
    [*struct(OUTPUT_COLUMNS), *struct_of_any(output.columns for output in OUTPUTS.values())]
)
REPLAY_TABLES: Final[Mapping[str, StructType]] = MappingProxyType(
    {
        kind: struct(
            [*(column for column in OUTPUT_COLUMNS if column.name != "kind"), *output.columns], has_open_rows=True
        )
        for kind, output in OUTPUTS.items()
    }
)


def order_of(events: DataFrame) -> Order | None:
    """Return the order of *events*; None if nothing says it."""
    order = _said(events).get(ORDER)
    return None if order is None else Order(order)


def lacks_of(events: DataFrame) -> frozenset[str]:
    """Return the kinds that the history of *events* lacks."""
    return frozenset(_said(events).get(LACKS, ()))


def topics_of(events: DataFrame) -> dict[str, str]:
    """Return the names of the topics of *events* by their ids, as far as the history has them."""
    return dict(_said(events).get(TOPICS, {}))


def _said(events: DataFrame) -> dict[str, Any]:
    """Return what ``read_history`` has noted of the headers."""
    return next((field.metadata for field in events.schema if field.name == "kind"), {})


def checked_events(events: DataFrame) -> DataFrame:
    """
    Return the columns of *events* that histories have, in their order; whether a value may be null is not judged.

    What a table of events may lack is null then.

    Raises:
        HistoryError: A column is missing or of another type; ``field`` says which.
    """
    from sharestate.history.arrow import expect_columns  # noqa: PLC0415 - imports pyarrow

    present = StructType([field for field in events.schema if field.name in EVENTS.names])
    expect_columns(arrow_schema(present))
    lacking = {column.name for column in MAY_LACK}.difference(present.names)
    columns = (
        F.lit(None).cast(each.dataType).alias(each.name) if each.name in lacking else each.name for each in EVENTS
    )
    return events.select(*columns)
