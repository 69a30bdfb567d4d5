"""
The lifecycle of a share partition at one leader, as two tables.

It is initialized once and serves until it is fenced. Only ``acquire`` requires ACTIVE: acknowledgements, releases and
lock timeouts go on after fencing, with the old epochs, and it is the persister that refuses them.

Source:
    SharePartitionState, SharePartition.maybeInitialize and markFenced (Kafka 4.3.1).
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sharestate.errors import AlreadyInitializedError, ErrorCode, InitializationError, LeaderNotAvailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sharestate.errors import ShareStateError
    from sharestate.values.records import SharePartitionKey


class Lifecycle(Enum):
    """The lifecycle states of a share partition."""

    EMPTY = "EMPTY"
    """Not initialized yet."""

    INITIALIZING = "INITIALIZING"
    """The persisted state is being read."""

    ACTIVE = "ACTIVE"
    """Initialized: records can be acquired."""

    FAILED = "FAILED"
    """Initialization has failed. It never recovers: make another one."""

    FENCED = "FENCED"
    """Another leader has taken over, or the group no longer wants it."""


class Event(Enum):
    """The inputs of the lifecycle."""

    INITIALIZE = "initialize"
    """The persisted state is requested."""

    READ_TAKEN_OVER = "read_succeeded"
    """The persisted state was read and is taken over."""

    READ_REFUSED = "read_succeeded, refused"
    """The persisted state was read, and no coordinator stores such a state."""

    READ_FAILED = "read_failed"
    """The persisted state could not be read."""

    FENCE = "fence"
    """Another leader has taken over, or the group no longer wants it."""


# fmt: off
MOVES: Final[Mapping[tuple[Lifecycle, Event], Lifecycle]] = MappingProxyType({
    (Lifecycle.EMPTY,        Event.INITIALIZE):      Lifecycle.INITIALIZING,
    (Lifecycle.INITIALIZING, Event.READ_TAKEN_OVER): Lifecycle.ACTIVE,
    (Lifecycle.INITIALIZING, Event.READ_REFUSED):    Lifecycle.FAILED,
    (Lifecycle.INITIALIZING, Event.READ_FAILED):     Lifecycle.FAILED,
    (Lifecycle.EMPTY,        Event.FENCE):           Lifecycle.FENCED,
    (Lifecycle.INITIALIZING, Event.FENCE):           Lifecycle.FENCED,
    (Lifecycle.ACTIVE,       Event.FENCE):           Lifecycle.FENCED,
    (Lifecycle.FAILED,       Event.FENCE):           Lifecycle.FENCED,
})
# fmt: on
"""A pair that is not here moves nothing. Nothing leaves FENCED (rule 3)."""

FENCING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The errors of a member's write after which a leader is fenced (rule 16)."""


def after(lifecycle: Lifecycle, event: Event) -> Lifecycle:
    """Return the lifecycle state after *event*."""
    return MOVES.get((lifecycle, event), lifecycle)


# fmt: off
INITIALIZE_REFUSALS: Final[Mapping[Lifecycle, tuple[type[ShareStateError], str]]] = MappingProxyType({
    Lifecycle.INITIALIZING: (LeaderNotAvailableError, "Share partition is already initializing"),
    Lifecycle.ACTIVE:       (AlreadyInitializedError, "Share partition is already active"),
    Lifecycle.FAILED:       (InitializationError,     "Share partition failed to load"),
    Lifecycle.FENCED:       (LeaderNotAvailableError, "Share partition is fenced"),
})
# fmt: on
"""Why ``initialize`` is refused in each state but EMPTY (rule 3)."""


def initialize_refusal(lifecycle: Lifecycle, key: SharePartitionKey) -> ShareStateError:
    """Return the error with which ``initialize`` is refused in *lifecycle*."""
    error, message = INITIALIZE_REFUSALS[lifecycle]
    return error(f"{message} {key}")
