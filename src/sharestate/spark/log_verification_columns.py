"""
The tables of the check of brokers' logs on Spark, and their columns, as data.

Spark's schemas and the page of documentation are made from them. Nothing here imports Spark.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.spark.analysis_columns import AnalysisTable
from sharestate.spark.columns import SHARE_PARTITION, Column

if TYPE_CHECKING:
    from collections.abc import Mapping


class Size(NamedTuple):
    """
    How many events a share partition has.

    Attributes:
        group_id: The share group.
        topic: The name of its topic; the id if that is not known.
        partition: The partition.
        events: Its events.
        all_events: Those of all share partitions.
    """

    group_id: str
    topic: str
    partition: int
    events: int
    all_events: int


_TOPIC: Final = Column("topic", "string", "the name of the topic; its id if that is not known")
_WORDS: Final = "`explained`, `contradiction`, `search_bound_reached`, `kafka_defect` or `not_checked`"
_FILE: Final = Column("source_file", "string", "the request log; null if the history does not say", is_nullable=True)
_LINE: Final = Column("source_line", "long", "the line of it, from 1 on", is_nullable=True)
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

VERIFICATION: Final[Mapping[str, AnalysisTable]] = MappingProxyType(
    {
        "verdicts": AnalysisTable(
            "a share partition",
            (
                *SHARE_PARTITION,
                _TOPIC,
                Column("verdict", "string", f"the gravest verdict on any of its places: {_WORDS}"),
                Column("events", "long", "the events in order of arrival", "events"),
                Column("not_checked", "long", "the events that were not checked, as the state was not known", "events"),
                *(
                    Column(f"observed_{name}", "long", f"{name.replace('_', ' ')} that there are to check", unit)
                    for name, unit in _OBSERVED.items()
                ),
                *(
                    Column(f"explained_{name}", "long", f"{meaning}, in the order that was found", unit)
                    for name, (meaning, unit) in _EXPLAINED.items()
                ),
                Column("moves", "long", "the steps that were moved to another place", "steps"),
                *(
                    Column(
                        f"expiry_delay_{name}_ms",
                        "double",
                        f"how long after its deadline a lock expired, at the most: {meaning}",
                        "ms",
                        is_nullable=True,
                    )
                    for name, meaning in (
                        ("min", "the least"),
                        ("median", "the median"),
                        ("p99", "the 99th percentile"),
                        ("max", "the most"),
                    )
                ),
                Column("findings", "long", "the places with another verdict than `explained`", "findings"),
            ),
        ),
        "findings": AnalysisTable(
            "a place of a history with another verdict than `explained`",
            (
                *SHARE_PARTITION,
                _TOPIC,
                Column("verdict", "string", f"the verdict on this place: {_WORDS}"),
                Column("seq", "long", "the event, in order of arrival"),
                Column("kind", "string", "its kind"),
                _FILE,
                _LINE,
                Column("connection", "string", "the connection; null if not known", is_nullable=True),
                Column("request_no", "long", "the number of the request in its connection", is_nullable=True),
                Column("reason", "string", "the reason, in words"),
                Column("observed", "string", "what was observed, as JSON; null for nothing", is_nullable=True),
                Column("computed", "string", "what was computed, as JSON; null for nothing", is_nullable=True),
                Column("other_places", (_FILE, _LINE), "other events that have to do with it"),
            ),
        ),
    }
)
"""The tables by the names of their directories."""
