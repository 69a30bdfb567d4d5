"""
What the epoch of a request makes of it: what is checked, with which errors, and what is changed.

By its epoch a request opens a session (0), closes it (-1) or goes on with it; the table ``REQUESTS`` decides the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.broker.sessions.contexts import ContextKind
from sharestate.broker.sessions.share_session import MAX_EPOCH, ShareSession
from sharestate.errors import (
    InvalidSessionRequestError,
    InvalidShareSessionEpochError,
    ShareSessionNotFoundError,
    ShareStateError,
)
from sharestate.values.checks import integer


class Rpc(IntEnum):
    """The requests that belong to a share session."""

    SHARE_FETCH = 78
    """ShareFetch, with its number on the wire."""

    SHARE_ACKNOWLEDGE = 79
    """ShareAcknowledge."""


class Check(IntEnum):
    """What is checked before a request changes anything; the first check that fails is the answer."""

    NOT_OPENING = auto()
    """Only a fetch opens a session: INVALID_SHARE_SESSION_EPOCH."""

    NO_ACKNOWLEDGEMENTS = auto()
    """A session that is being opened has acquired nothing: INVALID_REQUEST."""

    EXISTS = auto()
    """The member has a session: SHARE_SESSION_NOT_FOUND."""

    EPOCH = auto()
    """The epoch is the one that the session expects: INVALID_SHARE_SESSION_EPOCH."""


class Change(Enum):
    """What a request changes about the sessions, once all checks have passed."""

    NOTHING = auto()
    """The session stays; it is closed when the response is built."""

    OPEN = auto()
    """A session is opened in the place of the member's last one."""

    UPDATE = auto()
    """Partitions join and leave, and the next epoch is expected."""

    ADVANCE = auto()
    """The next epoch is expected."""


class RequestRow(NamedTuple):
    """What becomes of a request with a kind of epoch."""

    checks: tuple[Check, ...]
    """The checks, in their order."""

    change: Change
    """The change."""


# fmt: off
REQUESTS: Final[Mapping[tuple[Rpc, ContextKind], RequestRow]] = MappingProxyType({  # sessions 3
    (Rpc.SHARE_FETCH, ContextKind.INITIAL):          RequestRow((Check.NO_ACKNOWLEDGEMENTS,), Change.OPEN),
    (Rpc.SHARE_FETCH, ContextKind.SUBSEQUENT):       RequestRow((Check.EXISTS, Check.EPOCH), Change.UPDATE),
    (Rpc.SHARE_FETCH, ContextKind.FINAL):            RequestRow((Check.EXISTS,), Change.NOTHING),
    (Rpc.SHARE_ACKNOWLEDGE, ContextKind.INITIAL):    RequestRow((Check.NOT_OPENING,), Change.NOTHING),
    (Rpc.SHARE_ACKNOWLEDGE, ContextKind.SUBSEQUENT): RequestRow((Check.EXISTS, Check.EPOCH), Change.ADVANCE),
    (Rpc.SHARE_ACKNOWLEDGE, ContextKind.FINAL):      RequestRow((Check.EXISTS,), Change.NOTHING),
})
# fmt: on
"""
What becomes of a request, by its kind of epoch.

Source:
    SharePartitionManager.newContext, acknowledgeSessionUpdate (Kafka 4.3.1).
"""


class _Asked(NamedTuple):
    """What checks look at."""

    session: ShareSession | None
    epoch: int
    has_acknowledgements: bool


_HOLDS: Final[Mapping[Check, Callable[[_Asked], bool]]] = MappingProxyType(
    {
        Check.NOT_OPENING: lambda _: False,  # it is in the row of requests that open one
        Check.NO_ACKNOWLEDGEMENTS: lambda asked: not asked.has_acknowledgements,
        Check.EXISTS: lambda asked: asked.session is not None,
        Check.EPOCH: lambda asked: asked.session is not None and asked.session.epoch == asked.epoch,
    }
)

_NOT_FOUND: Final = "The share session was not found."
_WRONG_EPOCH: Final = "The share session epoch is invalid."
"""The texts of the errors (Errors, Kafka 4.3.1)."""

REFUSALS: Final[Mapping[Check, tuple[type[ShareStateError], str]]] = MappingProxyType(
    {
        Check.NOT_OPENING: (InvalidShareSessionEpochError, _WRONG_EPOCH),
        Check.NO_ACKNOWLEDGEMENTS: (InvalidSessionRequestError, "acknowledgements in the request that opens a session"),
        Check.EXISTS: (ShareSessionNotFoundError, _NOT_FOUND),
        Check.EPOCH: (InvalidShareSessionEpochError, _WRONG_EPOCH),
    }
)
"""The error of a check that fails, with its text."""


def refusal(check: Check) -> ShareStateError:
    """Return the error of a *check* that has failed."""
    error, message = REFUSALS[check]
    return error(message)


def checked(
    rpc: Rpc, epoch: int, session: ShareSession | None, *, has_acknowledgements: bool = False
) -> tuple[ContextKind, Change]:
    """
    Return what the epoch makes of a request, and what it changes; or raise the first refusal.

    Args:
        rpc: Which request it is.
        epoch: Its epoch.
        session: The member's session; None if it has none.
        has_acknowledgements: Whether it acknowledges anything.

    Raises:
        MalformedInputError: The epoch is no number of 32 bits.
        ShareStateError: The first check that has failed: see ``REFUSALS``.
    """
    kind = ContextKind.of(integer(epoch, "epoch", -(2**31), MAX_EPOCH))
    row = REQUESTS[rpc, kind]
    asked = _Asked(session, epoch, has_acknowledgements)
    for check in row.checks:
        if not _HOLDS[check](asked):
            raise refusal(check)
    return kind, row.change
