"""What happened to which records, and why."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sharestate.values.records import RecordState


class Cause(StrEnum):
    """Why the records of a range are what they are now."""

    READ = "read"
    """The persisted state has them so."""

    CACHED = "cached"
    """They were fetched with more records than the member wanted; never delivered."""

    ACQUIRED = "acquired"
    """A member has acquired them."""

    ACCEPTED = "accepted"
    """Their member has processed them."""

    RELEASED = "released"
    """Their member has given them back."""

    REJECTED = "rejected"
    """Their member cannot process them."""

    GAP = "gap"
    """Their member says that there are no such records."""

    RENEWED = "renewed"
    """Their member has asked for more time."""

    LAPSED = "lapsed"
    """Their acquisition lock ran out; while a write is in flight that decides only what becomes of them if it fails."""

    SESSION_CLOSED = "session closed"
    """Their member has left."""

    ARCHIVED_AT_LIMIT = "archived at the limit"
    """They would have been offered again, and had been delivered as often as the group allows."""

    ABORTED = "aborted"
    """Their transaction was aborted."""

    COMPACTED_AWAY = "compacted away"
    """The log no longer has them."""

    BELOW_LOG_START = "below the log start"
    """The log starts after them now."""

    CONFIRMED = "confirmed"
    """The write that carries their last change has succeeded."""

    ROLLED_BACK = "rolled back"
    """The write that carried their last change has failed."""

    THROTTLED = "throttled"
    """They were available and held back, because records that keep failing are delivered in smaller pieces."""

    PASSED = "passed"
    """They are done and leave the cache: the SPSO has passed them."""


class Transition(NamedTuple):
    """What happened to a range of records of one batch."""

    first_offset: int
    """The first offset of the range."""

    last_offset: int
    """The last offset of the range, included."""

    cause: Cause
    """Why."""

    state: RecordState
    """The records' state after it."""

    delivery_count: int
    """How often they have been delivered. [deliveries]"""

    member_id: str
    """Who holds them after it; empty for nobody."""

    lock_deadline_ms: int | None
    """The last instant at which their lock holds after it; None without a lock. [ms]"""

    is_ongoing: bool
    """Whether a write is in flight that carries it."""

    at_ms: int
    """The last instant that the share partition was told of. [ms]"""

    write: int | None
    """The number of the write that carries it, or whose outcome caused it."""
