"""
How records come again from Kafka, which no guarantee says: in ever smaller pieces, and the last time each one alone.

An answer is judged by itself: it is not as Kafka's if it has more records of a share partition than Kafka would send
together with the first of them.

Source:
    KAFKA-17541, in Kafka 4.2.1 and later; rule 20.3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from sharestate.audit.circumstances import Circumstances
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_log import NEVER_US, OperationRowKind, SharePartitionName

_LEAST_THRESHOLD: Final = 2
"""What was delivered less often is never held apart. [deliveries]"""

_LEAST_LIMIT: Final = 3
"""With a smaller limit, no delivery is set apart. [deliveries]"""


class Together(NamedTuple):
    """
    An answer that is not as Kafka's.

    Attributes:
        guarantee: What it differs in.
        row: Its first row of the share partition.
        last_offset: The last offset of that row.
        what: What is different, in words.
    """

    guarantee: Guarantee
    row: int
    last_offset: int
    what: str


class RedeliveryCheck:
    """
    Judges the answers of one share partition.

    Args:
        circumstances: What lies around them.
        key: The share partition.

    Complexity:
        Its rows, and those of first deliveries sorted.
    """

    def __init__(self, circumstances: Circumstances, key: SharePartitionName) -> None:
        """Look at how many records came together at first."""
        self._around, self._key = circumstances, key
        log = self._log = circumstances.log
        self.limit = circumstances.in_force(key.group, "delivery_count_limit")
        self._rows = [row for row in log.shared.get(key, ()) if log.kind[row] == OperationRowKind.DELIVERED]
        # A new leader may put batches together that were apart, and what came before the log is not known.
        self._knows_sizes = not circumstances.may_have_failed(key) and not log.alterations.get(key)
        self._first = list(self._at_first())
        if any(high >= low for (_, high), (low, _) in pairwise(self._first)):
            self._knows_sizes = False  # what has come twice for the first time has no batch that is known

    def _at_first(self) -> Iterator[tuple[int, int]]:
        """
        Yield the ranges of what came for the first time, in order: a batch is in one of them.

        It may have come in several answers, with acquire mode record_limit, or to an application by several polls.
        """
        log, low, high = self._log, 0, -1
        for first, last in sorted((log.first[row], log.last[row]) for row in self._rows if log.what[row] == 1):
            if first == high + 1 and high >= low:
                high = last
                continue
            if high >= low:
                yield low, high
            low, high = first, last
        if high >= low:
            yield low, high

    def checked(self) -> dict[Guarantee, int]:
        """Return how many answers are judged of each kind."""
        limit = self.limit
        if limit is None or limit[0] != limit[1]:
            return {}
        again = sum(1 for _ in self._answers(_threshold(limit[0])))
        last = sum(1 for _ in self._answers(limit[0] - 1)) if limit[0] >= _LEAST_LIMIT else 0
        return {
            Guarantee.LAST_DELIVERY_ALONE: last,
            Guarantee.THROTTLED_REDELIVERY: again if self._knows_sizes else 0,
        }

    def _answers(self, more_than: int) -> Iterator[list[int]]:
        """Yield the rows of answers with a record that has come more often than that, in their order."""
        log = self._log
        for _, rows in groupby(self._rows, key=log.operation.__getitem__):
            own = list(rows)
            if any(log.what[row] > more_than for row in own):
                yield own

    def different(self) -> Iterator[Together]:
        """Yield the answers that are not as Kafka's."""
        if self.limit is None or self.limit[0] != self.limit[1]:
            return
        limit, log = self.limit[0], self._log
        for rows in self._answers(_threshold(limit)):
            records = sum(log.last[row] - log.first[row] + 1 for row in rows)
            counts = [log.what[row] for row in rows]
            if limit >= _LEAST_LIMIT and limit in counts and records > 1:
                row = rows[counts.index(limit)]
                what = f"{records} records come in one answer, and one of them for the last time"
                yield Together(Guarantee.LAST_DELIVERY_ALONE, row, log.last[row], what)
            row = min(rows, key=log.first.__getitem__)
            count = log.what[row]
            most = self._most_together(row, count - 1, limit) if count > _threshold(limit) else None
            if most is not None and records > most:
                what = f"{records} records come in one answer at delivery {count}, where Kafka sends {most} at the most"
                yield Together(Guarantee.THROTTLED_REDELIVERY, row, log.last[row], what)

    def _most_together(self, row: int, count: int, limit: int) -> int | None:
        """Return how many records may come with the first of a batch that has come *count* times; None if unknown."""
        offset = self._log.first[row]
        if not self._knows_sizes:
            return None
        position = bisect_right(self._first, (offset, NEVER_US))
        low, high = self._first[position - 1] if position else (0, -1)
        return max(1, (high - low + 1) >> (count - _threshold(limit) + 1)) if high >= offset else None


def _threshold(limit: int) -> int:
    """Return how often records have come that are held apart."""
    return max(_LEAST_THRESHOLD, (limit + 1) // 2)
