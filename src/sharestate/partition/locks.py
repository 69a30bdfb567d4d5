"""
Acquisition locks, in the order in which they expire.

One lock stands for all records that were locked in one go, however many they are. Locks expire in the order (deadline,
creation), the records of one lock in the order of their offsets, one record of a split batch at a time.

Source:
    AcquisitionLockTimerTask (Kafka 4.3.1), with a timer that is first in, first out among equal deadlines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sortedcontainers import SortedList


class Lock:
    """The acquisition lock of the records that one member acquired of one batch in one go (rule 1.6)."""

    __slots__ = ("batch_offset", "creation", "cursor", "deadline_ms", "holders", "last_offset", "member_id")

    def __init__(  # noqa: PLR0913 - a row of fields, made in hot loops: positional on purpose
        self,
        deadline_ms: int,
        creation: int,
        member_id: str,
        batch_offset: int,
        first_offset: int,
        last_offset: int,
        holders: int,
    ) -> None:
        """Make a lock on *holders* cells of a batch within first_offset..last_offset."""
        self.deadline_ms: Final = deadline_ms
        """The last instant at which it holds. [ms]"""
        self.creation: Final = creation
        """Its number: locks with equal deadlines expire in this order."""
        self.member_id: Final = member_id
        """The member that acquired the records; empty for none."""
        self.batch_offset: Final = batch_offset
        """The first offset of its batch, which names the batch: batches are never cut or renamed."""
        self.last_offset: Final = last_offset
        """No record after this one has it."""
        self.cursor = first_offset
        """No record before this one waits for it."""
        self.holders = holders
        """The number of cells that wait for it to expire: 1 for a whole batch, else one for each record."""


class Locks:
    """
    Every acquisition lock of a share partition that something waits for (rule 24.5).

    Complexity:
        Creating a lock, releasing its last holder and requeuing it: O(log n), n the locks. The next one: O(1). The
        batches of a member: O(k log k), k its locks.
    """

    __slots__ = ("_by_expiry", "_by_member", "count", "next_creation")

    def __init__(self) -> None:
        """Begin without locks."""
        self._by_expiry: SortedList[tuple[int, int, Lock]] = SortedList()
        """Deadline, creation and lock; no two creations are equal, so locks are never compared."""
        self._by_member: dict[str, dict[int, Lock]] = {}
        """The locks of each member that has any, by creation."""
        self.count = 0
        """The number of cells that wait for a lock to expire."""
        self.next_creation = 0
        """The number of the next lock."""

    def __iter__(self) -> Iterator[Lock]:
        """Go through the locks in the order in which they expire."""
        return (lock for _, _, lock in self._by_expiry)

    def create(  # noqa: PLR0913 - as Lock
        self, deadline_ms: int, member_id: str, batch_offset: int, first_offset: int, last_offset: int, holders: int
    ) -> Lock:
        """Lock *holders* cells of a batch within first_offset..last_offset up to *deadline_ms*, included."""
        lock = Lock(deadline_ms, self.next_creation, member_id, batch_offset, first_offset, last_offset, holders)
        self.add(lock)
        return lock

    def add(self, lock: Lock) -> None:
        """Add *lock*, which was made with the next number."""
        self._queue(lock)
        self.next_creation += 1
        self.count += lock.holders

    def release(self, lock: Lock, holders: int) -> None:
        """Take *holders* cells from *lock*: they are acknowledged, archived, split or expired."""
        lock.holders -= holders
        self.count -= holders
        if not lock.holders:
            self._by_expiry.remove((lock.deadline_ms, lock.creation, lock))
            others = self._by_member[lock.member_id]
            del others[lock.creation]
            if not others:
                del self._by_member[lock.member_id]

    def requeue(self, lock: Lock, holders: int, first_offset: int) -> None:
        """Give *holders* cells from *first_offset* on back to *lock*: the write that took them away has failed."""
        # rule 24.1
        if not lock.holders:
            self._queue(lock)
        lock.holders += holders
        lock.cursor = min(lock.cursor, first_offset)
        self.count += holders

    def first(self) -> Lock | None:
        """Return the lock that expires next, or None."""
        return self._by_expiry[0][2] if self._by_expiry else None

    def batches_of(self, *member_ids: str) -> list[int]:
        """Return the first offsets of the batches of which *member_ids* have locks, in ascending order."""
        locks = (lock for member_id in member_ids for lock in self._by_member.get(member_id, {}).values())
        return sorted({lock.batch_offset for lock in locks})

    def _queue(self, lock: Lock) -> None:
        self._by_expiry.add((lock.deadline_ms, lock.creation, lock))
        locks = self._by_member.get(lock.member_id)
        if locks is None:
            locks = self._by_member[lock.member_id] = {}
        locks[lock.creation] = lock
