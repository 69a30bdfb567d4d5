"""
What a replay may cost, over all of its share partitions: few bytes of a history may stand for a great many records.

A share partition keeps the records of a split batch one by one; each of their locks expires by itself, and what is
acquired and written names each of them. A range of a million records is 20 bytes of a history, so what comes of it is
counted. What brokers do is far below these bounds.
"""

from __future__ import annotations

from typing import Final

from sharestate.errors import MalformedInputError

FREE_RECORDS: Final = 2**14
"""How many records a share partition may have in flight in batches that may be split, without being counted: brokers
take 10,000 for ``group.share.partition.max.record.locks`` at the most, and there may be one record batch more."""

MOST_RECORDS: Final = 2**20
"""How many more all share partitions may have in flight so: one batch of the largest size that is split."""

_RANGE: Final = 32
"""What a range costs that is acquired or written, if a record that is looked at costs 1: 1.4 µs, and 40 ns."""

_EXPIRY: Final = 128
"""What a lock that expires costs when it is due."""

_EVENT: Final = 2**16
"""What each event may cost. That is 2,048 ranges, where 2,000 records are in flight by default and few events concern
all of them; or 512 expired locks, where ``max.poll.records`` is 500."""

_MOST_WORK: Final = 2**25
"""What the events may cost beyond that: 2^20 ranges, or 2^18 expired locks, which takes some seconds."""


class ReplayBudget:
    """
    What is left of what a replay may cost.

    What happens is counted afterwards, and the next event is refused if it was too much: that one has changed nothing.

    Attributes:
        is_spent: Whether nothing was left after the last event.
    """

    __slots__ = ("_records", "_work", "is_spent")

    def __init__(self) -> None:
        """Begin with all of it."""
        self._records = MOST_RECORDS
        self._work = _MOST_WORK
        self.is_spent = False

    def expect_left(self) -> None:
        """
        Check that there is something left.

        Raises:
            MalformedInputError: There is not.
        """
        if self._work < 0:
            message = "it and the events before it concern too many records one by one: more than 2048 for each event"
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
        self._work -= _RANGE * count

    def count_expiry(self) -> None:
        """Count a lock that has expired when it was due."""
        self._work -= _EXPIRY

    def count_event(self, records: int, before: int) -> None:
        """Count an event: how many *records* its share partition has in flight that may be split, and had *before*."""
        self._work += _EVENT - records
        if records > FREE_RECORDS or before > FREE_RECORDS:
            self._records += max(0, before - FREE_RECORDS) - max(0, records - FREE_RECORDS)
        self.is_spent = self._work < 0 or self._records < 0
