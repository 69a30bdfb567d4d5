"""
When the session of each member ends if nothing is heard of it.

Timers are volatile: no record has them, and a coordinator that has been loaded gives each member a whole timeout again.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from attrs import define, field
from sortedcontainers import SortedKeyList


class SessionTimer(NamedTuple):
    """
    The end of a member's session.

    Attributes:
        deadline_ms: The first instant at which it has ended. [ms]
        number: Which timer it is, counted from the first; of several that end at once the one set first comes first.
        group_id: The group.
        member_id: The member.
    """

    deadline_ms: int
    number: int
    group_id: str
    member_id: str


@define
class SessionTimers:
    """The timers of all members, by deadline."""

    _by_member: dict[tuple[str, str], SessionTimer] = field(factory=dict)
    _in_order: SortedKeyList[SessionTimer, tuple[int, int]] = field(
        factory=lambda: SortedKeyList(key=itemgetter(slice(2)))
    )
    _count: int = 0

    def start(self, group_id: str, member_id: str, deadline_ms: int) -> None:
        """
        Start a member's timer again.

        Complexity:
            O(log n) in the members of all groups.
        """
        self.stop(group_id, member_id)
        timer = SessionTimer(deadline_ms, self._count, group_id, member_id)
        self._count += 1
        self._by_member[group_id, member_id] = timer
        self._in_order.add(timer)

    def stop(self, group_id: str, member_id: str) -> None:
        """Take a member's timer away, if it has one."""
        timer = self._by_member.pop((group_id, member_id), None)
        if timer is not None:
            self._in_order.remove(timer)

    def first(self) -> SessionTimer | None:
        """Return the timer that ends first, or None."""
        return self._in_order[0] if self._by_member else None

    def due_together(self, now_ms: int) -> list[SessionTimer]:
        """Return all timers with the first deadline, if that has come."""
        first = self.first()
        if first is None or first.deadline_ms > now_ms:
            return []
        return list(self._in_order.irange_key((first.deadline_ms, 0), (first.deadline_ms, self._count)))
