"""
Spec 1.6 and 24.5: acquisition locks, in the order in which they lapse.

One lock stands for all records that were locked in one go, so it is found by bisection however many records it holds.
Locks lapse in the order (deadline, creation), the records of one lock in the order of their offsets, one record of a
split batch at a time.

Source:
    AcquisitionLockTimerTask (Kafka 4.3.1), with a timer that is first in, first out among equal deadlines.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell

_WORTH_SWEEPING: Final = 64
"""Fewer dead locks than this are not worth a sweep. [locks]"""


class Lock:
    """The acquisition lock of what one member acquired of one batch in one go."""

    __slots__ = ("batch", "creation", "cursor", "deadline_ms", "held", "is_queued", "last_offset")

    def __init__(  # noqa: PLR0913 - a row of fields, made in hot loops: positional on purpose
        self, deadline_ms: int, creation: int, batch: Batch, first_offset: int, last_offset: int, held: int
    ) -> None:
        """Make a lock on *held* cells of *batch* within first_offset..last_offset."""
        self.deadline_ms: Final = deadline_ms
        self.creation: Final = creation
        self.batch: Final = batch
        self.last_offset: Final = last_offset
        self.held = held
        """How many cells wait for it to lapse: 1 for a whole batch, else one for each record."""
        self.cursor = first_offset
        """No record before this one waits for it."""
        self.is_queued = held > 0
        """Whether it is in the heap."""

    @classmethod
    def idle(cls, deadline_ms: int, creation: int, batch: Batch) -> Lock:
        """Return a lock of *batch* for which nothing waits yet."""
        return cls(deadline_ms, creation, batch, batch.last_offset, batch.last_offset, 0)


class Locks:
    """
    Every acquisition lock of a share partition.

    Complexity:
        Creating, letting go and finding the next: O(log n) amortised, n the locks that hold something.
    """

    __slots__ = ("_dead", "_heap", "count", "next_creation")

    def __init__(self) -> None:
        """Begin without locks."""
        self._heap: list[tuple[int, int, Lock]] = []
        self._dead = 0
        self.count = 0
        """How many cells wait for a lock to lapse."""
        self.next_creation = 0
        """The number of the next lock."""

    def __iter__(self) -> Iterator[Lock]:
        """Go through the locks in no particular order; some may hold nothing any more."""
        return (lock for _, _, lock in self._heap)

    def create(self, deadline_ms: int, batch: Batch, first_offset: int, last_offset: int, held: int) -> Lock:
        """Lock *held* cells of *batch* within first_offset..last_offset until *deadline_ms*, that instant included."""
        lock = Lock(deadline_ms, self.next_creation, batch, first_offset, last_offset, held)
        heappush(self._heap, (deadline_ms, self.next_creation, lock))
        self.next_creation += 1
        self.count += held
        return lock

    def let_go(self, lock: Lock, held: int) -> None:
        """Take *held* cells from *lock*: they are acknowledged, archived, split or lapsed."""
        lock.held -= held
        self.count -= held
        if not lock.held:
            self._dead += 1
            if self._dead > _WORTH_SWEEPING and self._dead * 2 > len(self._heap):
                self._sweep()

    def let_go_of(self, cell: Cell, references: int) -> None:
        """Take *references* to *cell* from its lock, if it has one that has not fired."""
        if cell.lock is not None and not cell.has_fired:
            self.let_go(cell.lock, references)

    def hold_again(self, lock: Lock, held: int, first_offset: int) -> None:
        """Give *held* cells from *first_offset* on back to *lock*: the write that was to take them away has failed."""
        if not lock.is_queued:
            lock.is_queued = True
            heappush(self._heap, (lock.deadline_ms, lock.creation, lock))
        elif not lock.held:
            self._dead -= 1
        lock.held += held
        lock.cursor = min(lock.cursor, first_offset)
        self.count += held

    def first(self) -> Lock | None:
        """Return the lock that lapses next, or None."""
        heap = self._heap
        while heap and not heap[0][2].held:
            heappop(heap)[2].is_queued = False
            self._dead -= 1
        return heap[0][2] if heap else None

    def _sweep(self) -> None:
        for lock in self:
            lock.is_queued = lock.held > 0
        self._heap = [entry for entry in self._heap if entry[2].held]
        heapify(self._heap)
        self._dead = 0
