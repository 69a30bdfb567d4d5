"""What a broker checks of requests about share groups before its group coordinator looks at the group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from attrs import field, frozen

from sharestate.broker.groups.heartbeats import ShareGroupHeartbeat
from sharestate.broker.groups.share_group import JOIN_EPOCH, LEFT_EPOCH
from sharestate.error_codes import ErrorCode
from sharestate.values.checks import instance, set_of


class GroupRequestError(NamedTuple):
    """
    Why a broker refuses a request about a share group.

    Attributes:
        error_code: The error code.
        message: The text for it, in Kafka's words where Kafka has some.
    """

    error_code: ErrorCode
    message: str | None = None


@frozen(kw_only=True)
class GroupCaller:
    """
    What a broker knows of itself, and of who sends a request about a group.

    Attributes:
        is_enabled: Whether share groups are switched on (``share.version``).
        is_authorized: Whether the operation that the request needs is authorized on the group.
        hidden_topics: The names of topics on which DESCRIBE is not authorized.
        is_active: Whether the group coordinator has started, and knows the topics of the cluster.

    Raises:
        MalformedInputError: A field is of another type.
    """

    is_enabled: bool = field(default=True, validator=instance(bool))
    is_authorized: bool = field(default=True, validator=instance(bool))
    hidden_topics: frozenset[str] = field(default=frozenset(), validator=set_of(str))
    is_active: bool = field(default=True, validator=instance(bool))


class _Received(NamedTuple):
    """A heartbeat, and who sends it."""

    request: ShareGroupHeartbeat
    caller: GroupCaller


def _is_blank(text: str | None) -> bool:
    """Return whether nothing is left of a text once Java has trimmed it; None is left alone."""
    return text is not None and all(letter <= " " for letter in text)


# fmt: off
HEARTBEAT_CHECKS: Final[tuple[tuple[GroupRequestError, Callable[[_Received], bool]], ...]] = (  # groups 3
    (GroupRequestError(ErrorCode.UNSUPPORTED_VERSION), lambda received: received.caller.is_enabled),
    (GroupRequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED), lambda received: received.caller.is_authorized),
    (GroupRequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
     lambda received: received.caller.hidden_topics.isdisjoint(received.request.topic_names or ())),
    (GroupRequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE), lambda received: received.caller.is_active),
    (GroupRequestError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
     lambda received: not _is_blank(received.request.member_id)),
    (GroupRequestError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
     lambda received: not _is_blank(received.request.group_id)),
    (GroupRequestError(ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
     lambda received: not _is_blank(received.request.rack_id)),
    (GroupRequestError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."),
     lambda received: received.request.member_epoch != JOIN_EPOCH or bool(received.request.topic_names)),
    (GroupRequestError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
     lambda received: received.request.member_epoch >= LEFT_EPOCH),
)
# fmt: on
"""
What has to be true of a heartbeat, each with the error if it is not, in their order.

Source:
    KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService.shareGroupHeartbeat (Kafka 4.3.1).
"""


def heartbeat_error(request: ShareGroupHeartbeat, caller: GroupCaller | None = None) -> GroupRequestError | None:
    """
    Return the first error of a heartbeat as a whole, or None; the group is not looked at yet (groups 3).

    Args:
        request: The heartbeat.
        caller: Who sends it; None for one who may do everything.

    >>> from sharestate.broker.groups import ShareGroupHeartbeat, heartbeat_error
    >>> heartbeat_error(ShareGroupHeartbeat(group_id=" ", member_id="A", member_epoch=1))
    GroupRequestError(error_code=<ErrorCode.INVALID_REQUEST: 42>, message="GroupId can't be empty.")
    """
    received = _Received(request, caller or GroupCaller())
    return next((error for error, holds in HEARTBEAT_CHECKS if not holds(received)), None)


class GroupOperation(Enum):
    """The requests of administrators, with what has to be authorized on the group."""

    ALTER_OFFSETS = "READ"
    """AlterShareGroupOffsets."""

    DESCRIBE_OFFSETS = "DESCRIBE"
    """DescribeShareGroupOffsets."""

    DELETE_OFFSETS = "DELETE"
    """DeleteShareGroupOffsets."""

    DELETE_GROUP = "DELETE a group"
    """DeleteGroups, for each of its groups."""


class _Asked(NamedTuple):
    """A group that is asked about, and who asks."""

    group_id: str
    caller: GroupCaller


_ENABLED: Final = (ErrorCode.UNSUPPORTED_VERSION, lambda asked: asked.caller.is_enabled)
_AUTHORIZED: Final = (ErrorCode.GROUP_AUTHORIZATION_FAILED, lambda asked: asked.caller.is_authorized)
_ACTIVE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, lambda asked: asked.caller.is_active)
_HAS_ID: Final = (ErrorCode.INVALID_GROUP_ID, lambda asked: bool(asked.group_id))

ADMINISTRATION_CHECKS: Final[Mapping[GroupOperation, tuple[tuple[ErrorCode, Callable[[_Asked], bool]], ...]]] = (
    MappingProxyType(  # offsets 1
        {
            GroupOperation.ALTER_OFFSETS: (_ENABLED, _AUTHORIZED, _ACTIVE, _HAS_ID),
            GroupOperation.DESCRIBE_OFFSETS: (_ENABLED, _AUTHORIZED, _ACTIVE),
            GroupOperation.DELETE_OFFSETS: (_ENABLED, _AUTHORIZED, _ACTIVE, _HAS_ID),
            GroupOperation.DELETE_GROUP: (_AUTHORIZED, _ACTIVE),
        }
    )
)
"""
What has to be true of a request of an administrator, each with the error if it is not, in their order.

Source:
    KafkaApis.handleAlterShareGroupOffsetsRequest and its like, GroupCoordinatorService (Kafka 4.3.1).
"""


def administration_error(operation: GroupOperation, group_id: str, caller: GroupCaller | None = None) -> ErrorCode:
    """
    Return the first error of an administrator's request about a group, or NONE (offsets 1).

    Args:
        operation: What is to be done.
        group_id: The group, which is not looked at yet.
        caller: Who asks; None for one who may do everything.

    >>> from sharestate.broker.groups import GroupOperation, administration_error
    >>> administration_error(GroupOperation.DELETE_OFFSETS, "")
    <ErrorCode.INVALID_GROUP_ID: 24>
    """
    asked = _Asked(group_id, caller or GroupCaller())
    checks = ADMINISTRATION_CHECKS[operation]
    return next((code for code, holds in checks if not holds(asked)), ErrorCode.NONE)
