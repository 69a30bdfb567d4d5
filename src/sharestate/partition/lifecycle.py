"""
Spec 3 and 16: the life of a share partition at one leader, as a table.

It is loaded once and then serves until it is fenced. Only acquiring asks whether it is active: acknowledgements,
releases and lapsing locks go on after fencing, with the old epochs, and it is the persister that refuses them.

Source:
    SharePartitionState, SharePartition.maybeInitialize and markFenced (Kafka 4.3.1).
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sharestate.errors import AlreadyInitializedError, InitializationError, LeaderNotAvailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sharestate.errors import ShareStateError
    from sharestate.values.keys import SharePartitionKey


class Lifecycle(Enum):
    """How far a share partition has come."""

    EMPTY = "EMPTY"
    """Made, not loaded."""

    INITIALIZING = "INITIALIZING"
    """The persisted state is being read."""

    ACTIVE = "ACTIVE"
    """Loaded: records can be acquired."""

    FAILED = "FAILED"
    """It could not be loaded. It never recovers: make another one."""

    FENCED = "FENCED"
    """Another leader has taken over, or the group no longer wants it."""


# fmt: off
INITIALIZE_REFUSALS: Final[Mapping[Lifecycle, tuple[type[ShareStateError], str]]] = MappingProxyType({
    Lifecycle.INITIALIZING: (LeaderNotAvailableError, "Share partition is already initializing"),
    Lifecycle.ACTIVE:       (AlreadyInitializedError, "Share partition is already active"),
    Lifecycle.FAILED:       (InitializationError,     "Share partition failed to load"),
    Lifecycle.FENCED:       (LeaderNotAvailableError, "Share partition is fenced"),
})
# fmt: on
"""Why ``initialize`` is refused in each state but EMPTY."""


def initialize_refusal(lifecycle: Lifecycle, key: SharePartitionKey) -> ShareStateError:
    """Return the error with which ``initialize`` is refused in *lifecycle*."""
    error, message = INITIALIZE_REFUSALS[lifecycle]
    return error(f"{message} {key}")
