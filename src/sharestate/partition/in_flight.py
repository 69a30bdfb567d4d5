"""
The cached batches, in the order of their first offsets.

Source:
    SharePartition.cachedState, a ConcurrentSkipListMap (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.batch import Batch


class InFlight:
    """
    Batches that do not overlap; there may be gaps between them.

    Complexity:
        Adding, removing and finding a batch: O(log n), n the batches.
    """

    __slots__ = ("_batches", "largest")

    def __init__(self) -> None:
        """Begin without batches."""
        self._batches: SortedDict[int, Batch] = SortedDict()
        self.largest = 0
        """How many offsets the largest batch has that was ever taken in. [offsets]"""

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        """Go through the batches in ascending order."""
        return iter(self._batches.values())

    @property
    def first(self) -> Batch:
        """The lowest batch."""
        return self._batches.peekitem(0)[1]

    @property
    def last(self) -> Batch:
        """The highest batch."""
        return self._batches.peekitem(-1)[1]

    def add(self, batch: Batch) -> None:
        """Take in *batch*."""
        self._batches[batch.first_offset] = batch
        self.largest = max(self.largest, batch.size)

    def floor(self, offset: int) -> Batch | None:
        """Return the highest batch that begins at or before *offset*."""
        index = self._batches.bisect_right(offset)
        return self._batches.peekitem(index - 1)[1] if index else None

    def higher(self, offset: int) -> Batch | None:
        """Return the lowest batch that begins after *offset*."""
        index = self._batches.bisect_right(offset)
        return self._batches.peekitem(index)[1] if index < len(self._batches) else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches whose first offset lies in the range, in ascending order."""
        batches = self._batches
        low, high = batches.bisect_left(first_offset), batches.bisect_right(last_offset)
        return [batches.peekitem(index)[1] for index in range(low, high)]

    def from_floor(self, first_offset: int, last_offset: int) -> list[Batch]:
        """Return the batches that begin in the range, and before them the floor of *first_offset* if there is one."""
        batches = self._batches
        low = max(batches.bisect_right(first_offset) - 1, 0)
        found: list[Batch] = []
        for index in range(low, len(batches)):
            batch = batches.peekitem(index)[1]
            if batch.first_offset > last_offset:
                break
            found.append(batch)
            if batch.last_offset >= last_offset:
                break
        return found

    def remove_up_to(self, last_offset: int) -> None:
        """Remove the batches that end at or before *last_offset*."""
        batches = self._batches
        while batches and batches.peekitem(0)[1].last_offset <= last_offset:
            batches.popitem(0)

    def clear(self) -> None:
        """Remove every batch."""
        self._batches.clear()
