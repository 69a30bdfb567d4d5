"""
What a replay may cost, over all of its share partitions: few bytes of a history may stand for a great many records.

A share partition keeps the records of a split batch one by one; each of their locks expires by itself, and what is
acquired and written names each of them. A range of a million records is 20 bytes of a history, so what comes of it is
counted. What brokers do is far below these bounds. The unit of work is 10 ns, where it was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.errors import MalformedInputError

if TYPE_CHECKING:
    from sharestate.history.events import Event

FREE_RECORDS: Final = 2**14
"""How many records a share partition may have in flight in batches that may be split, without being counted: brokers
take 10,000 for ``group.share.partition.max.record.locks`` at the most, and there may be one record batch more."""

MOST_RECORDS: Final = 2**20
"""How many more all share partitions may have in flight so: one batch of the largest size that is split."""

_RANGE: Final = 2**10
"""What a range costs that is acquired or written, with its row in a file, if a record in flight costs 1. [work]"""

_EXPIRY: Final = 2**12
"""What a lock that expires costs when it is due. [work]"""

_EVENT: Final = 2**14
"""What each event may cost: 16 ranges, or 4 expired locks, or as many records in flight as need not be counted. In runs
of brokers it is 200 to 2,500, in synthetic histories 3,500. [work]"""

_NAMED: Final = 2
"""How many ranges each range that an event names may come to if it comes to one in that event: it is acquired, and
written when its session ends. So may a record that has a type of acknowledgement, in that event."""

_RANGES: Final = ("batches", "acquired", "state_batches")
"""The fields of requests and responses that are ranges of records."""

_MOST_WORK: Final = 2**27
"""What the events may cost beyond that: 2^17 ranges, or 2^15 expired locks, which takes more than a second. [work]"""


class ReplayBudget:
    """
    What is left of what a replay may cost.

    What happens is counted afterwards, and the next event is refused if it was too much: that one has changed nothing.

    Attributes:
        is_spent: Whether nothing was left after the last event.
    """

    __slots__ = ("_of_event", "_records", "_work", "is_spent")

    def __init__(self) -> None:
        """Begin with all of it."""
        self._records = MOST_RECORDS
        self._work = _MOST_WORK
        self._of_event = 0
        self.is_spent = False

    def expect_left(self) -> None:
        """
        Check that there is something left.

        Raises:
            MalformedInputError: There is not.
        """
        if self._work < self._of_event:
            message = "it and the events before it concern too many ranges of records that no event names"
            raise MalformedInputError(message)
        if self._records < 0:
            message = f"more than {MOST_RECORDS} records in flight that may be split, beside {FREE_RECORDS} of each"
            raise MalformedInputError(message)

    def forget_records(self) -> None:
        """Count no records in flight any more: those who replay share partitions one by one keep none."""
        self._records = MOST_RECORDS
        self.is_spent = self._work < 0

    def count_ranges(self, count: int) -> None:
        """Count ranges of records that were acquired or written, or handed to the dead-letter queue."""
        self._of_event += _RANGE * count

    def count_transitions(self, count: int) -> None:
        """Count changes of ranges of records, for those who record them: half a range each."""
        self._of_event += _RANGE * count // 2

    def count_expiry(self) -> None:
        """Count a lock that has expired when it was due."""
        self._of_event += _EXPIRY

    def count_event(self, event: Event, records: int, before: int) -> None:
        """Count an event: how many *records* its share partition has in flight that may be split, and had *before*."""
        self._work += _EVENT - records
        made = self._of_event
        if made:  # most events cost nothing but that
            ranges, types = _named(event)
            self._work += _NAMED * (_RANGE * ranges if _RANGE * ranges < made else made)  # noqa: FURB136 - quicker
            if made > _RANGE * _NAMED * types:
                self._work -= made - _RANGE * _NAMED * types
            self._of_event = 0
        self.count_records(records, before)

    def count_records(self, records: int, before: int) -> None:
        """Count the records that a share partition has in flight that may be split, and those that it had *before*."""
        if records > FREE_RECORDS or before > FREE_RECORDS:
            self._records += max(0, before - FREE_RECORDS) - max(0, records - FREE_RECORDS)
        self.is_spent = self._work < 0 or self._records < 0


def _named(event: Event) -> tuple[int, int]:
    """Return how many ranges of records an event names, and how many types of acknowledgements it has for them."""
    ranges = 0
    for fields in (event.request, event.response):
        if fields:
            for name in _RANGES:
                if name in fields:
                    ranges += len(fields[name])
    if event.kind != "acknowledge" or event.request is None:
        return ranges, 0
    return ranges, sum([len(types) for _, _, types in event.request.get("batches", ())])
