"""
The tables of the check of brokers' logs on Spark, and their columns, as data.

Spark's schemas and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.columns import Column, ColumnTable, Rows, Scalar, by_name, required
from sharestate.history.columns import KEY_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOPIC: Final = required("topic", Scalar.TEXT, "the name of the topic; its id if that is not known")
_WORDS: Final = "`explained`, `contradiction`, `search_bound_reached`, `kafka_defect` or `not_checked`"
_FILE: Final = Column("source_file", Scalar.TEXT, "the request log; null if the history does not say")
_LINE: Final = Column("source_line", Scalar.INT64, "the line of it, from 1 on")
_OBSERVED: Final = {
    "fetches_with_records": "fetches",
    "empty_fetches": "fetches",
    "codes": "answers",
    "writes": "writes",
}
_EXPLAINED: Final = {
    "fetches_with_records": ("fetches whose acquired records were computed", "fetches"),
    "empty_fetches": ("fetches without records that were computed", "fetches"),
    "undecided_fetches": ("fetches without records that cannot be decided", "fetches"),
    "codes": ("answers to acknowledgements", "answers"),
    "writes": ("writes of state", "writes"),
    "expiries": ("acquisition locks that expired", "locks"),
    "releases": ("members whose connections were lost, and their records released", "members"),
    "dead_letters": ("answers of the dead-letter queue", "answers"),
    "former_writes": ("writes of a leader that was gone when they arrived, which are not among the writes", "writes"),
    "unlogged": ("acknowledgements in progress when the broker stopped or the log ends", "acknowledgements"),
}

VERIFICATION: Final[Mapping[str, ColumnTable]] = by_name(
    ColumnTable(
        "verdicts",
        "a share partition",
        (
            *KEY_COLUMNS,
            _TOPIC,
            required("verdict", Scalar.TEXT, f"the gravest verdict on any of its places: {_WORDS}"),
            required("events", Scalar.INT64, "the events in order of arrival", "events"),
            required(
                "not_checked", Scalar.INT64, "the events that were not checked, as the state was not known", "events"
            ),
            *(
                required(f"observed_{name}", Scalar.INT64, f"{name.replace('_', ' ')} that there are to check", unit)
                for name, unit in _OBSERVED.items()
            ),
            *(
                required(f"explained_{name}", Scalar.INT64, f"{meaning}, in the order that was found", unit)
                for name, (meaning, unit) in _EXPLAINED.items()
            ),
            required("moves", Scalar.INT64, "the steps that were moved to another place", "steps"),
            *(
                Column(
                    f"expiry_delay_{name}_ms",
                    Scalar.DOUBLE,
                    f"how long after its deadline a lock expired, at the most: {meaning}",
                    "ms",
                )
                for name, meaning in (
                    ("min", "the least"),
                    ("median", "the median"),
                    ("p99", "the 99th percentile"),
                    ("max", "the most"),
                )
            ),
            required("findings", Scalar.INT64, "the places with another verdict than `explained`", "findings"),
        ),
    ),
    ColumnTable(
        "findings",
        "a place of a history with another verdict than `explained`",
        (
            *KEY_COLUMNS,
            _TOPIC,
            required("verdict", Scalar.TEXT, f"the verdict on this place: {_WORDS}"),
            required("seq", Scalar.INT64, "the event, in order of arrival"),
            required("kind", Scalar.TEXT, "its kind"),
            _FILE,
            _LINE,
            Column("connection", Scalar.TEXT, "the connection; null if not known"),
            Column("request_no", Scalar.INT64, "the number of the request in its connection"),
            required("reason", Scalar.TEXT, "the reason, in words"),
            Column("observed", Scalar.TEXT, "what was observed, as JSON; null for nothing"),
            Column("computed", Scalar.TEXT, "what was computed, as JSON; null for nothing"),
            required("other_places", Rows(tuple, (_FILE, _LINE)), "other events that have to do with it"),
        ),
    ),
)
"""The tables by the names of their directories."""
