"""
Acquisition locks, in the order in which they expire.

One lock stands for all records that were locked in one go, however many they are. Locks expire in the order (deadline,
creation), the records of one lock in the order of their offsets, one record of a split batch at a time.

Source:
    AcquisitionLockTimerTask (Kafka 4.3.1), with a timer that is first in, first out among equal deadlines.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sortedcontainers import SortedList

from sharestate.values.checks import MAX_INT64
from sharestate.values.named_tuples import new_tuple


class LockedRecords:
    """The records of a split batch that have one lock."""

    __slots__ = ("cursor", "holders")

    def __init__(self, first_offset: int, holders: int) -> None:
        """Begin with *holders* records from *first_offset* on, which wait for the lock to expire."""
        self.cursor = first_offset
        """No record before this one waits for it."""
        self.holders = holders
        """The number of records that wait for it. [records]"""


class Lock(NamedTuple):
    """
    The acquisition lock of the records that one member acquired of one batch in one go (rule 1.6).

    A tuple, so that locks are compared in C: by deadline, then by creation, which no two of them share.

    Attributes:
        deadline_ms: The last instant at which it holds. [ms]
        creation: Its number: locks with equal deadlines expire in this order.
        member_id: The member that acquired the records; empty for none.
        batch_offset: The first offset of its batch, which names the batch: batches are never cut or renamed.
        records: Which records of a split batch have it; None for a whole batch, whose only cell has it.
    """

    deadline_ms: int
    creation: int
    member_id: str
    batch_offset: int
    records: LockedRecords | None = None


class Locks:
    """
    Every acquisition lock of a share partition that something waits for (rule 24.5).

    The locks of a member are a plain list: members may be many, with one lock each, and a SortedList of one takes
    360 bytes more than a list of one.

    Complexity:
        Creating a lock, releasing its last holder and requeuing it: O(log n), n the locks, and a word is moved for each
        of the member's locks that expire later. The next one: O(1). The batches of a member: O(k log k), k its locks.
    """

    __slots__ = ("_by_expiry", "_by_member", "_deadline_ms", "count", "next_creation")

    def __init__(self) -> None:
        """Begin without locks."""
        self._by_expiry: SortedList[Lock] = SortedList()
        """All locks, in the order in which they expire."""
        self._by_member: dict[str, list[Lock]] = {}
        """The locks of each member that has any, in the same order."""
        self._deadline_ms = 0
        """The last deadline: batches that are locked at the same time have one number in common. [ms]"""
        self.count = 0
        """The number of cells that wait for a lock to expire: 1 for a whole batch, else one for each record."""
        self.next_creation = 0
        """The number of the next lock."""

    def __iter__(self) -> Iterator[Lock]:
        """Go through the locks in the order in which they expire."""
        return iter(self._by_expiry)

    def create(self, deadline_ms: int, member_id: str, batch_offset: int, records: LockedRecords | None = None) -> Lock:
        """Lock a whole batch, or *records* of a split one, up to *deadline_ms*, included."""
        if deadline_ms == self._deadline_ms:
            deadline_ms = self._deadline_ms
        else:
            self._deadline_ms = deadline_ms
        lock = new_tuple(Lock, (deadline_ms, self.next_creation, member_id, batch_offset, records))
        self.add(lock)
        return lock

    def add(self, lock: Lock) -> None:
        """Add *lock*, which was made with the next number."""
        self._queue(lock)
        self.next_creation += 1
        self.count += 1 if lock.records is None else lock.records.holders

    def restore(self, locks: Iterable[Lock], next_creation: int) -> None:
        """Add *locks*, for which cells wait, where there are none yet; *next_creation* is the next number."""
        self._by_expiry.update(locks)
        for lock in self._by_expiry:
            self._by_member.setdefault(lock.member_id, []).append(lock)
            self.count += 1 if lock.records is None else lock.records.holders
        self.next_creation = next_creation

    def release(self, lock: Lock, holders: int) -> None:
        """Take *holders* cells from *lock*: they are acknowledged, archived, split or expired."""
        self.count -= holders
        records = lock.records
        if records is not None:
            records.holders -= holders
            if records.holders:
                return
        locks = self._by_member[lock.member_id]
        if len(locks) == 1:
            del self._by_member[lock.member_id]
        else:
            del locks[bisect_left(locks, lock)]
        if self._by_member:
            self._by_expiry.remove(lock)
        else:  # it was the only one: to look for it takes longer
            self._by_expiry.clear()

    def requeue(self, lock: Lock, holders: int, first_offset: int) -> None:
        """Give *holders* cells from *first_offset* on back to *lock*: the write that took them away has failed."""
        # rule 24.1
        if lock.records is None or not lock.records.holders:
            self._queue(lock)
        if lock.records is not None:
            lock.records.holders += holders
            lock.records.cursor = min(lock.records.cursor, first_offset)
        self.count += holders

    def first_expired(self, now_ms: int) -> Lock | None:
        """Return the lock that has expired first, or None: at its deadline it still holds (rule 24.5)."""
        if not self._by_member or (lock := self._by_expiry[0]).deadline_ms >= now_ms:
            return None
        return lock

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which a lock has expired; None if none ever does (rule 24.5). [ms]"""
        if not self._by_member or (deadline_ms := self._by_expiry[0].deadline_ms) == MAX_INT64:
            return None
        return deadline_ms + 1

    def batches_of(self, *member_ids: str) -> list[int]:
        """Return the first offsets of the batches of which *member_ids* have locks, in ascending order."""
        locks = (lock for member_id in member_ids for lock in self._by_member.get(member_id, ()))
        return sorted({lock.batch_offset for lock in locks})

    def _queue(self, lock: Lock) -> None:
        self._by_expiry.add(lock)
        locks = self._by_member.get(lock.member_id)
        if locks is None:
            self._by_member[lock.member_id] = [lock]
        else:
            insort(locks, lock)
