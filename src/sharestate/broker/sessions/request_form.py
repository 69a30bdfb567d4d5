"""What a broker checks of a ShareFetch or a ShareAcknowledge as a whole, before it looks at sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from attrs import field, frozen, validators

from sharestate.broker.sessions.epoch_checks import Rpc
from sharestate.error_codes import ErrorCode
from sharestate.values.checks import instance, number

MAX_MEMBER_ID: Final = 36
"""The longest member id, a UUID as text (KafkaApis.isMemberIdValid, Kafka 4.3.1). [characters]"""

RENEW_VERSION: Final = 2
"""The version of both requests from which on locks may be renewed (KIP-1222)."""

_limit: Final = number(-(2**31), 2**31 - 1)


class RequestError(NamedTuple):
    """
    Why a broker refuses a request as a whole.

    Attributes:
        error_code: The error code.
        message: The text for it, in Kafka's words where Kafka has some.
    """

    error_code: ErrorCode
    message: str | None = None


@frozen(kw_only=True)
class ShareRequest:
    """
    What is checked of a ShareFetch or a ShareAcknowledge as a whole.

    Attributes:
        rpc: Which of the two it is.
        version: Its version.
        group_id: The share group; None for a request without one.
        member_id: The member; None for a request without one.
        is_renew: Whether it renews locks (KIP-1222).
        max_bytes: The most that a fetch may return; one that renews locks fetches nothing. [bytes]
        min_bytes: The least that a fetch may return. [bytes]
        max_records: The most records that a fetch may acquire. [records]
        max_wait_ms: How long a fetch may wait. [ms]

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.
    """

    rpc: Rpc = field(validator=instance(Rpc))
    version: int = field(default=RENEW_VERSION, validator=number(0, 2**15 - 1))
    group_id: str | None = field(validator=validators.optional(instance(str)))
    member_id: str | None = field(validator=validators.optional(instance(str)))
    is_renew: bool = field(default=False, validator=instance(bool))
    max_bytes: int = field(default=0, validator=_limit)
    min_bytes: int = field(default=0, validator=_limit)
    max_records: int = field(default=0, validator=_limit)
    max_wait_ms: int = field(default=0, validator=_limit)

    @property
    def renews_in_fetch(self) -> bool:
        """True if it is a fetch that only renews locks."""
        return self.rpc is Rpc.SHARE_FETCH and self.version >= RENEW_VERSION and self.is_renew

    @property
    def asks_for_records(self) -> bool:
        """True if a field says how much to fetch, or how long to wait."""
        return any((self.max_bytes, self.min_bytes, self.max_records, self.max_wait_ms))


class WholeRequest(Protocol):
    """What is looked at of a request as a whole; a ``ShareRequest`` has it, and so have the requests of a node."""

    @property
    def group_id(self) -> str | None:
        """The share group; None for a request without one."""

    @property
    def member_id(self) -> str | None:
        """The member; None for a request without one."""

    @property
    def renews_in_fetch(self) -> bool:
        """True if it is a fetch that only renews locks."""

    @property
    def asks_for_records(self) -> bool:
        """True if a field says how much to fetch, or how long to wait."""


class _Received(NamedTuple):
    """A request, and what the broker knows of it."""

    request: WholeRequest
    is_enabled: bool
    may_read_group: bool


# fmt: off
REQUEST_CHECKS: Final[tuple[tuple[RequestError, Callable[[_Received], bool]], ...]] = (  # sessions 2
    (RequestError(ErrorCode.UNSUPPORTED_VERSION), lambda received: received.is_enabled),
    (RequestError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request."),
     lambda received: received.request.group_id is not None),
    (RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED), lambda received: received.may_read_group),
    (RequestError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request."),
     lambda received: 0 < len(received.request.member_id or "") <= MAX_MEMBER_ID),
    (RequestError(ErrorCode.INVALID_REQUEST, "a fetch that renews locks must ask for no records"),
     lambda received: not (received.request.renews_in_fetch and received.request.asks_for_records)),
)
# fmt: on
"""
What has to be true of a request, each with the error if it is not, in their order.

Source:
    KafkaApis.handleShareFetchRequest, handleShareAcknowledgeRequest (Kafka 4.3.1).
"""


def request_error(
    request: WholeRequest, *, is_enabled: bool = True, may_read_group: bool = True
) -> RequestError | None:
    """
    Return the first error of *request* as a whole, or None; sessions are not looked at yet (sessions 2).

    Args:
        request: The request.
        is_enabled: Whether the broker's share groups are switched on.
        may_read_group: Whether READ on the group is authorized.

    >>> from sharestate.broker.sessions import Rpc, ShareRequest, request_error
    >>> request_error(ShareRequest(rpc=Rpc.SHARE_FETCH, group_id="g", member_id=""))
    RequestError(error_code=<ErrorCode.INVALID_REQUEST: 42>, message='Invalid member id in the request.')
    """
    received = _Received(request, is_enabled, may_read_group)
    for error, holds in REQUEST_CHECKS:
        if not holds(received):
            return error
    return None
