"""
The share partition with the most events, which one task has to check however many there are.

Spark is imported when it is looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOT_SHARE: Final = 1 / 4
"""The part of all events from which on a share partition is hot: no more than four tasks help then."""


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

    @property
    def is_hot(self) -> bool:
        """Whether it has so large a part of all events that it is to be named."""
        return self.events > HOT_SHARE * self.all_events


def largest_partition(verdicts: DataFrame) -> Size | None:
    """Return the share partition with the most events, of the table of verdicts; None without any."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everybody knows; needs an extra

    sums = verdicts.agg(
        F.max_by(F.struct("group_id", "topic", "partition", "events"), "events").alias("largest"),
        F.sum("events").alias("all_events"),
    ).first()
    return None if sums is None or sums.largest is None else Size(**sums.largest.asDict(), all_events=sums.all_events)
