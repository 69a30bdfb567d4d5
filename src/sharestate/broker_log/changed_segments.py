"""
What shows that segments are not any more what they were while the request log was written.

Retention and DeleteRecords delete segments from the beginning, compaction deletes batches in between and records of
them. None of that is in a request log, and what was in there cannot be known.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

_MOST_STARTS: Final = 1000
"""
How many batches of a partition are remembered by their first offsets, the last ones: brokers answer producers out of
order by what is in flight, which are five requests for each producer. [batches]
"""

_MOST_HOLES: Final = 10_000
"""How many holes of a partition's log are remembered, the first ones: about a megabyte. [holes]"""

_MOST_AHEAD: Final = 1000
"""How many acquired ranges are remembered that the log was not yet known to have, the first ones; all are looked
through whenever something was appended. [ranges]"""


class Lost(NamedTuple):
    """
    A part of the log that is not known any more.

    Attributes:
        last_offset: Its last offset; what lies after it is known.
        reason: What shows it, in words.
    """

    last_offset: int
    reason: str


class ChangedSegments:
    """
    A comparison of what segments have with what was produced and acquired.

    Args:
        begin: The first offset that the segments can have.
    """

    def __init__(self, begin: int) -> None:
        """Start before the first batch."""
        self._begin = self._end = begin
        self._starts: dict[int, tuple[int, int]] = {}
        self._has_forgotten = False
        self._holes: list[tuple[int, int]] = []
        self._ahead: list[tuple[int, int]] = []
        self._lost: Lost | None = None
        self._is_whole = False

    def has_batch(self, first_offset: int, last_offset: int, records: int) -> None:
        """Note the next batch of the segments, and how many records it has."""
        if first_offset > self._end and len(self._holes) < _MOST_HOLES:
            self._holes.append((self._end, first_offset - 1))
        self._end = last_offset + 1
        self._starts[first_offset] = last_offset, records
        if len(self._starts) > _MOST_STARTS:
            del self._starts[next(iter(self._starts))]
            self._has_forgotten = True

    def is_over(self) -> None:
        """Note that the segments have no more batches."""
        self._is_whole = True

    def produced(self, offset: int) -> None:
        """Note that a batch was produced while the request log was written, and got this base offset."""
        if offset in self._starts:
            last_offset, records = self._starts[offset]
            if records < last_offset + 1 - offset:
                what = f"the batch {offset}-{last_offset} has {records} records left: compaction"
                self._lose(last_offset, f"{what}; it was produced while the log ran")
        elif offset >= 0 and not (self._has_forgotten and self._begin <= offset < next(iter(self._starts))):
            self._find(offset, offset, "produced")

    def acquired(self, first_offset: int, last_offset: int) -> None:
        """Note that a member has acquired a range."""
        if last_offset >= self._end and not self._is_whole:
            if len(self._ahead) < _MOST_AHEAD:
                self._ahead.append((first_offset, last_offset))
        else:
            self._find(first_offset, last_offset, "acquired")

    @property
    def lost(self) -> Lost | None:
        """The part of the log that is not known any more; None if nothing shows that there is one."""
        ahead, self._ahead = self._ahead, []
        for first_offset, last_offset in ahead:
            self.acquired(first_offset, last_offset)
        return self._lost

    def _find(self, first_offset: int, last_offset: int, what: str) -> None:
        """Look for a range among the batches."""
        ran = f"{first_offset} was {what} while the log ran"
        if last_offset < self._begin:
            self._lose(self._begin - 1, f"the segments begin at {self._begin}, and {ran}: retention or DeleteRecords")
        elif first_offset >= self._end:
            self._lose(last_offset, f"the segments end at {self._end}, and {ran}: they were copied before that")
        elif hole := self._hole_with(first_offset, last_offset):
            first, last = hole
            self._lose(last, f"the segments have no batch {first}-{last} any more, and {ran}: compaction")
        elif what == "produced":
            self._lose(last_offset, f"the segments have no batch that begins at {first_offset}, and {ran}")

    def _hole_with(self, first_offset: int, last_offset: int) -> tuple[int, int] | None:
        place = bisect_right(self._holes, (first_offset, self._end)) - 1
        if place >= 0 and self._holes[place][0] <= first_offset and last_offset <= self._holes[place][1]:
            return self._holes[place]
        return None

    def _lose(self, last_offset: int, reason: str) -> None:
        """Note what is lost: the first reason, and as far as any of them."""
        self._lost = (
            Lost(last_offset, reason)
            if self._lost is None
            else self._lost._replace(last_offset=max(self._lost.last_offset, last_offset))
        )
