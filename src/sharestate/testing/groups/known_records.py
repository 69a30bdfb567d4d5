"""
What a share group's clients know of one offset: what is there, what became of it, and what may happen to it next.

Where Kafka leaves something open, an entry knows a range in place of a value: within the tolerance of the clock a lock
may have expired or not, and a new leader may count the last delivery or not.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter
from typing import Final, NamedTuple

from attrs import define, field, fields

from sharestate.audit.guarantees import Guarantee


class Content(Enum):
    """What the log has at an offset."""

    RECORD = "record"
    CONTROL = "control record"
    HOLE = "offset that the log does not have"


class Knowledge(Enum):
    """What a client knows of the state of a record."""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    TERMINAL = "terminal"


RECORD: Final = Content.RECORD
AVAILABLE, ACQUIRED, TERMINAL = Knowledge
"""Short names, as naming the class first costs as much as a call, and searches look at each record again and again."""


@define
class KnownRecord:
    """
    What clients know of one offset.

    Attributes:
        offset: The offset.
        content: What the log has there.
        batch: The first and the last offset of its log batch.
        producer: Its producer if it is part of a transaction that is not committed, else "".
        is_aborted: Whether that transaction was aborted.
        state: AVAILABLE also before it was ever delivered.
        owner: The member that has acquired it, or "".
        earliest_ms: The time from which on its lock may have expired. [ms]
        latest_ms: The time after which its lock has expired. [ms]
        renewed_ms: The time after which it would have expired, had it not been renewed; 0 if it was not. [ms]
        locks: How often it was locked, renewals included.
        least: The lowest delivery count that it may have. [deliveries]
        most: The highest delivery count that it may have. [deliveries]
        persisted: The lowest delivery count that a new leader may read. [deliveries]
        leader: Counts the leaders; the last one that has delivered it, -1 for none.
        is_stored: Whether its TERMINAL state was persisted for certain.
        may_be_stored: Whether a change was perhaps persisted although the answer was an error.
        may_be_terminal: Whether a new leader may have read that it is TERMINAL.
        may_be_unwritten: Whether its lock has perhaps expired while writes failed.
        why: The guarantee that forbids to deliver it again, if it is TERMINAL.
        life: What has happened to it, one line for each event.
    """

    offset: int
    content: Content
    batch: tuple[int, int]
    producer: str = ""
    is_aborted: bool = False
    state: Knowledge = Knowledge.AVAILABLE
    owner: str = ""
    earliest_ms: int = 0
    latest_ms: int = 0
    renewed_ms: int = 0
    locks: int = 0
    least: int = 0
    most: int = 0
    persisted: int = 0
    leader: int = -1
    is_stored: bool = True
    may_be_stored: bool = False
    may_be_terminal: bool = False
    may_be_unwritten: bool = False
    why: Guarantee | None = None
    life: list[str] = field(factory=list)

    def copy(self) -> KnownRecord:
        """Return another one, which changes by itself; fields are taken over by position, as searches make many."""
        copied = KnownRecord(*_VALUES(self))
        copied.life = [*self.life]
        return copied


_VALUES: Final = attrgetter(*(each.name for each in fields(KnownRecord)))


class GroupHappening(NamedTuple):
    """
    Something that has happened to a share group.

    Attributes:
        what: What it is in words, with the time.
        offsets: The offsets whose life mentions it.
    """

    what: str
    offsets: set[int]
