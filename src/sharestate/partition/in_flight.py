"""
The cached batches, in the order of their first offsets.

Source:
    SharePartition.cachedState, a ConcurrentSkipListMap (Kafka 4.3.1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.batch import Batch


class InFlight:
    """
    Batches that do not overlap; there may be gaps between them.

    Two lists side by side, because bisection is quickest in a list of plain numbers.

    Complexity:
        Finding a batch: O(log n), n the batches. Adding one at the end: O(1). Adding one elsewhere, and removing some
        at the front, moves what lies behind, a word for each batch.
    """

    __slots__ = ("_batches", "_firsts", "largest")

    def __init__(self) -> None:
        """Begin without batches."""
        self._firsts: list[int] = []
        self._batches: list[Batch] = []
        self.largest = 0
        """How many offsets the largest batch has that was ever taken in. [offsets]"""

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        """Go through the batches in ascending order."""
        return iter(self._batches)

    @property
    def first(self) -> Batch:
        """The lowest batch."""
        return self._batches[0]

    @property
    def last(self) -> Batch:
        """The highest batch."""
        return self._batches[-1]

    def add(self, batch: Batch) -> None:
        """Take in *batch*."""
        first = batch.first_offset
        index = bisect_left(self._firsts, first)
        self._firsts.insert(index, first)
        self._batches.insert(index, batch)
        size = batch.last_offset - first + 1
        self.largest = max(self.largest, size)

    def floor(self, offset: int) -> Batch | None:
        """Return the highest batch that begins at or before *offset*."""
        index = bisect_right(self._firsts, offset)
        return self._batches[index - 1] if index else None

    def higher(self, offset: int) -> Batch | None:
        """Return the lowest batch that begins after *offset*."""
        index = bisect_right(self._firsts, offset)
        return self._batches[index] if index < len(self._batches) else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches whose first offset lies in the range, in ascending order."""
        firsts = self._firsts
        return self._batches[bisect_left(firsts, first_offset) : bisect_right(firsts, last_offset)]

    def from_floor(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches that begin in the range, and before them the floor of *first_offset* if there is one."""
        firsts = self._firsts
        low = bisect_right(firsts, first_offset) - 1
        return self._batches[max(low, 0) : bisect_right(firsts, last_offset)]

    def remove_up_to(self, last_offset: int) -> None:
        """Remove the batches that end at or before *last_offset*."""
        count = bisect_right(self._firsts, last_offset)
        if count and self._batches[count - 1].last_offset > last_offset:
            count -= 1
        del self._firsts[:count], self._batches[:count]

    def clear(self) -> None:
        """Remove every batch."""
        self._firsts.clear()
        self._batches.clear()
