"""
Spec 1.3 and 1.5: what is true of a record, while a write is in flight too.

A cell never changes. Every offset of a batch of which the same is true shares one cell, so a change of five hundred
records makes one new cell, and undoing it puts the old one back.

Source:
    InFlightState (Kafka 4.3.1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sharestate.partition.transitions import TERMINAL, Input, step
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.partition.locks import Lock
    from sharestate.partition.pending import PendingWrite

NOBODY: Final = ""
"""The owner of records that no member holds."""


class Cell:
    """What is true of a record; immutable."""

    __slots__ = (
        "before",
        "delivery_count",
        "has_fired",
        "is_acquirable",
        "is_settled",
        "lock",
        "member_id",
        "state",
        "write",
    )

    state: Final[RecordState]
    """The record's state; that of after the change while a write is in flight."""

    delivery_count: Final[int]
    """How often it has been delivered. [deliveries]"""

    member_id: Final[str]
    """Who holds it; empty for nobody."""

    lock: Final[Lock | None]
    """Its acquisition lock; kept while a write is in flight."""

    write: Final[PendingWrite | None]
    """The write in flight that carries its last change."""

    before: Final[Cell | None]
    """What it goes back to if that write fails; None if it was archived meanwhile."""

    has_fired: Final[bool]
    """Whether the lock ran out during the write in flight."""

    is_acquirable: Final[bool]
    """Whether a member may acquire it now."""

    is_settled: Final[bool]
    """Whether nothing can happen to it any more."""

    def __init__(  # noqa: PLR0913 - a row of fields, made in hot loops: positional on purpose
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str = NOBODY,
        lock: Lock | None = None,
        write: PendingWrite | None = None,
        before: Cell | None = None,
        has_fired: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Make a cell."""
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self.write = write
        self.before = before
        self.has_fired = has_fired
        self.is_acquirable = write is None and state is RecordState.AVAILABLE
        self.is_settled = write is None and state in TERMINAL

    def __repr__(self) -> str:
        """Return the cell as the spec writes it: ``ACQUIRED/1/m1*``."""
        return f"{self.state.name}/{self.delivery_count}/{self.member_id or '-'}{'*' * self.is_ongoing}"

    @property
    def is_ongoing(self) -> bool:
        """Whether a write is in flight that carries its last change."""
        return self.write is not None

    @property
    def is_terminal(self) -> bool:
        """Whether it was archived while a write is in flight, so that the outcome does not matter."""
        return self.write is not None and self.before is None

    @property
    def looks(self) -> tuple[RecordState, int, str, int | None, bool, bool, bool]:
        """All that can be seen of it; cells that differ may look alike, such as those that were renewed together."""
        return (
            self.state,
            self.delivery_count,
            self.member_id,
            self.lock_deadline_ms,
            self.is_ongoing,
            self.is_terminal,
            self.has_fired,
        )

    @property
    def lock_deadline_ms(self) -> int | None:
        """The last instant at which its member still holds it; None without a lock. [ms]"""
        return None if self.lock is None else self.lock.deadline_ms

    def is_held_by(self, member_id: str) -> bool:
        """Return whether *member_id* holds it."""
        return self.state is RecordState.ACQUIRED and self.member_id == member_id

    def acquired(self, member_id: str, lock: Lock) -> Cell:
        """Return the cell in the hands of *member_id*."""
        state, count = step(self.state, Input.ACQUIRE, delivery_count=self.delivery_count, delivery_count_limit=0)
        return Cell(state, count, member_id, lock)

    def renewed(self, lock: Lock) -> Cell:
        """Return the cell with a fresh lock of the same member."""
        state, count = step(self.state, Input.RENEW, delivery_count=self.delivery_count, delivery_count_limit=0)
        return Cell(state, count, self.member_id, lock)

    def begun(self, input_: Input, write: PendingWrite) -> Cell:
        """Return the cell after *input_*, until the outcome of *write* is known; its owner loses it at once."""
        state, count = step(
            self.state,
            input_,
            delivery_count=self.delivery_count,
            delivery_count_limit=write.delivery_count_limit,
        )
        return Cell(state, count, NOBODY, self.lock, write, self)

    def ended(self, input_: Input, delivery_count_limit: int) -> Cell:
        """Return the cell after *input_* took it from its owner, whatever becomes of a write."""
        state, count = step(
            self.state, input_, delivery_count=self.delivery_count, delivery_count_limit=delivery_count_limit
        )
        return unowned(state, count)

    def archived(self, input_: Input) -> Cell:
        """Return the cell after *input_* took it out of the queue; a write in flight goes on, and decides nothing."""
        state, count = step(self.state, input_, delivery_count=self.delivery_count, delivery_count_limit=0)
        return unowned(state, count) if self.write is None else Cell(state, count, write=self.write)

    def with_lock(self, lock: Lock) -> Cell:
        """Return the cell with another lock, which has not fired; what it goes back to has that lock too."""
        before = None if self.before is None else self.before.with_lock(lock)
        return Cell(self.state, self.delivery_count, self.member_id, lock, self.write, before)

    def fired(self) -> Cell:
        """Return the cell with its lock run out while its write is in flight."""
        return Cell(self.state, self.delivery_count, self.member_id, self.lock, self.write, self.before, has_fired=True)

    def committed(self) -> Cell:
        """Return the cell after its write succeeded."""
        return unowned(self.state, self.delivery_count)


@lru_cache(maxsize=4096)
def unowned(state: RecordState, delivery_count: int) -> Cell:
    """Return the cell of a record that nobody holds; one for all that look alike."""
    return Cell(state, delivery_count)
