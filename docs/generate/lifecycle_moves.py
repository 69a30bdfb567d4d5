"""What moves a share partition from one state of its life to another."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from sharestate import Lifecycle


class Event(Enum):
    """What can happen to the life of a share partition."""

    INITIALIZE = "initialize"
    """The persisted state is asked for."""

    READ_TAKEN_OVER = "read_succeeded"
    """The persisted state has come and is taken over."""

    READ_REFUSED = "read_succeeded, refused"
    """The persisted state has come, and it is none that a coordinator stores."""

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
"""A pair that is not here moves nothing. Nothing leaves FENCED."""
