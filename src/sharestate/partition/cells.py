"""
The state of a record, with its pending transition.

A cell never changes. Every offset of a batch that has the same state shares one cell, so a change of five hundred
records makes one new cell, and rolling it back puts the old one back.

A transition that a write has to confirm shows at once and is *pending* until that write is answered:

=====================  =============================================================================================
the write succeeds     it is committed: the record has no lock and no owner any more
the write fails        it is rolled back: the owner holds the record again, with the lock it had
the lock expires       ``lock_expired`` is kept, and decides only what a roll-back leads to
the record is          the outcome of the write no longer matters: ``rollback`` is None
archived meanwhile
=====================  =============================================================================================

Source:
    InFlightState (Kafka 4.4.0).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sharestate.partition.locks import Lock
from sharestate.partition.record_machine import TERMINAL, Input, step
from sharestate.values.config import ShareConfig
from sharestate.values.records import RecordState

# naming the class first costs as much as a call
_AVAILABLE, _ACQUIRED, _ACQUIRE = RecordState.AVAILABLE, RecordState.ACQUIRED, Input.ACQUIRE

NO_MEMBER: Final = ""
"""The owner of records that no member holds."""


class Cell:
    """
    The state of a record; it never changes (rule 1).

    This one has no pending transition; ``PendingCell`` has one.
    """

    __slots__ = ("delivery_count", "is_acquirable", "is_durable", "lock", "member_id", "state")

    state: RecordState
    """The record's state; that after the pending transition if there is one."""

    delivery_count: int
    """The number of its deliveries so far. [deliveries]"""

    member_id: str
    """Its owner; empty for none."""

    lock: Lock | None
    """Its acquisition lock; kept while a transition is pending."""

    write: int | None = None
    """The number of the write that carries its pending transition; None if nothing is pending."""

    rollback: Cell | None = None
    """The cell to restore if that write fails; None if nothing is pending, or it was archived meanwhile."""

    lock_expired: bool = False
    """True if the lock has expired while the transition was pending."""

    is_acquirable: bool
    """True if a member may acquire it now."""

    is_durable: bool
    """True if it is terminal and nothing is pending."""

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER, lock: Lock | None = None
    ) -> None:
        """Make a cell with nothing pending."""
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self.is_acquirable = state is _AVAILABLE
        self.is_durable = state in TERMINAL

    def __repr__(self) -> str:
        """Return the cell as the rules write it: ``ACQUIRED/1/m1*``, the star for a pending transition."""
        return f"{self.state.name}/{self.delivery_count}/{self.member_id or '-'}{'*' * (self.write is not None)}"

    @property
    def is_archived_meanwhile(self) -> bool:
        """True if it was archived while a transition was pending, so that the outcome of the write does not matter."""
        return self.write is not None and self.rollback is None

    @property
    def lock_deadline_ms(self) -> int | None:
        """The last instant at which its acquisition lock holds; None without a lock. [ms]"""
        return None if self.lock is None else self.lock.deadline_ms

    def is_held_by(self, member_id: str) -> bool:
        """Return whether *member_id* holds it."""
        return self.state is _ACQUIRED and self.member_id == member_id

    def acquired(self, member_id: str, lock: Lock) -> Cell:
        """Return the cell after *member_id* has acquired it (rule 1.2)."""
        state, count = step(self.state, _ACQUIRE, self.delivery_count)
        return Cell(state, count, member_id, lock)

    def renewed(self, lock: Lock) -> Cell:
        """Return the cell with a new lock of the same owner."""
        state, count = step(self.state, Input.RENEW, self.delivery_count)
        return Cell(state, count, self.member_id, lock)

    def pending(self, input_: Input, write: int, config: ShareConfig) -> Cell:
        """Return the cell after *input_*, pending until *write* is answered; its owner loses it at once (rule 1.3)."""
        limit = config.delivery_count_limit
        state, count = step(self.state, input_, self.delivery_count, limit, config.dead_letter_queue)
        return PendingCell(state, count, self.lock, write, self)

    def immediate(self, input_: Input, delivery_count_limit: int, *, has_queue: bool = False) -> Cell:
        """Return the cell after *input_*, which takes it from its owner whether or not a write succeeds (rule 1.2)."""
        return unowned(*step(self.state, input_, self.delivery_count, delivery_count_limit, has_queue))

    def archived(self, input_: Input) -> Cell:
        """Return the cell after *input_* has archived it; a pending write goes on, and its outcome does not matter."""
        # rule 1.4
        state, count = step(self.state, input_, self.delivery_count)
        return unowned(state, count) if self.write is None else PendingCell(state, count, None, self.write, None)

    def with_lock(self, lock: Lock) -> Cell:
        """Return the cell with another lock, which has not expired; so has the cell that it would roll back to."""
        # rule 1.7
        return Cell(self.state, self.delivery_count, self.member_id, lock)

    def committed(self) -> Cell:
        """Return the cell after its write has succeeded (rule 1.5)."""
        return unowned(self.state, self.delivery_count)


class PendingCell(Cell):
    """The state of a record after a transition that a write has to confirm; nobody holds it (rule 1.3)."""

    # A class of its own: the cells of records that are held are many, and have none of this.
    __slots__ = ("_with_expired_lock", "lock_expired", "rollback", "write")

    # The same for all of them: nobody holds such a record, may acquire it or can rely on it.
    member_id = NO_MEMBER
    is_acquirable = False
    is_durable = False

    def __init__(  # noqa: PLR0913 - a row of fields, made in hot loops: positional on purpose
        self,
        state: RecordState,
        delivery_count: int,
        lock: Lock | None,
        write: int | None,
        rollback: Cell | None,
        lock_expired: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Make a cell that waits for *write*."""
        self.state = state
        self.delivery_count = delivery_count
        self.lock = lock
        self.write = write
        self.rollback = rollback
        self.lock_expired = lock_expired
        self._with_expired_lock: PendingCell | None = None

    def with_lock(self, lock: Lock) -> Cell:
        """Return the cell with another lock, which has not expired; so has the cell that it would roll back to."""
        # rule 1.7
        rollback = None if self.rollback is None else self.rollback.with_lock(lock)
        return PendingCell(self.state, self.delivery_count, lock, self.write, rollback)

    def with_expired_lock(self) -> PendingCell:
        """Return the cell with its lock expired; the same one every time, so that equal records go on sharing it."""
        if self._with_expired_lock is None:
            fields = (self.state, self.delivery_count, self.lock, self.write, self.rollback)
            self._with_expired_lock = PendingCell(*fields, lock_expired=True)
        return self._with_expired_lock


@lru_cache(maxsize=4096)
def unowned(state: RecordState, delivery_count: int) -> Cell:
    """Return the cell of records that no member holds; one for all with the same state and count."""
    return Cell(state, delivery_count)
