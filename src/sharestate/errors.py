"""
Every exception of the library, each with Kafka's ``code`` and whether the request is ``retriable``.

Three kinds. *Refusals* are what a broker answers to a client whose request does not fit the state. *Outcomes* are
handed out in ``Effects.error``, because the command that meets them was carried out: a failed initialisation, a failed
write. *Misuse* is a call that no broker could answer; the argument that was wrong is named. None of them leaves a
command half done; refusals say what they leave.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field, fields

from sharestate.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


@define(eq=False, slots=False)
class ShareStateError(Exception):
    """
    Whatever the library raises or hands out; catch this to catch all of it.

    Errors of one class that say the same are equal, so what carries them can be compared.
    """

    message: str | None = None
    """What a broker would say, in Kafka's words where Kafka has some; None if the persister gave no text."""

    transitions: tuple[Any, ...] = field(default=(), init=False, repr=False)
    """What a refused acknowledgement has done all the same, as in ``Effects.transitions``: locks it has renewed."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    """The error code that a broker would put on the wire."""

    kafka_exception: ClassVar[str | None] = None
    """The Java exception behind the code where it is not the usual one."""

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed when it is sent again."""
        return self.code.retriable

    @property
    def exception(self) -> str:
        """The simple name of the exception that Kafka's class would raise."""
        return self.kafka_exception or self.code.exception

    def __eq__(self, other: object) -> bool:
        """Return whether *other* is of the same class and carries the same."""
        return type(self) is type(other) and self._carried() == other._carried()

    def __hash__(self) -> int:
        """Return a hash of what was said; the transitions may come later."""
        return hash((type(self), self.message))

    def _carried(self) -> tuple[object, ...]:
        return tuple(getattr(self, attribute.name) for attribute in fields(type(self)))

    def __str__(self) -> str:
        """Return the message, or the code's name if there is none."""
        return self.code.name if self.message is None else self.message


# ---- refusals: the state does not take the request


@define(eq=False, slots=False)
class InvalidRecordStateError(ShareStateError):
    """
    An acknowledgement of records that its sender does not hold; no state, count or owner has changed.

    Batches that were split before the refusal stay split, locks that were renewed before it stay renewed, and the time
    counts as told.
    """

    first_offset: int | None = None
    """The first offset of what was refused."""

    last_offset: int | None = None
    """The last offset of what was refused."""

    owner: str | None = None
    """The member that holds the records, if it is another one."""

    code = ErrorCode.INVALID_RECORD_STATE


@define(eq=False, slots=False)
class InvalidRequestError(ShareStateError):
    """
    A request with unknown types, a range that makes no sense, or offsets past what was ever acquired.

    A range that makes no sense changes nothing; the others leave what an InvalidRecordStateError leaves.
    """

    first_offset: int | None = None
    """The first offset of the part that was refused."""

    last_offset: int | None = None
    """The last offset of the part that was refused."""

    code = ErrorCode.INVALID_REQUEST


class AlreadyInitializedError(ShareStateError):
    """The share partition is active; there is nothing to initialise."""


class LeaderNotAvailableError(ShareStateError):
    """The share partition is being initialised, or it was fenced."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


@define(eq=False, slots=False)
class SplitLimitError(ShareStateError):
    """A request that would split a batch larger than the limit into single records; only the time counts as told."""

    first_offset: int | None = None
    """First offset of the batch."""

    last_offset: int | None = None
    """Last offset of the batch."""

    limit: int | None = None
    """The largest batch that is split. [records]"""

    code = ErrorCode.INVALID_REQUEST


# ---- outcomes: what an initialisation or a write ended with


@define(eq=False, slots=False)
class InitializationError(ShareStateError):
    """The share partition could not be loaded, or its loading failed before."""

    reason: str | None = None
    """What was wrong with the persisted state."""

    kafka_exception = "IllegalStateException"


class WriteFailedError(ShareStateError):
    """The persister's answer to a write made no sense, or there was none."""

    kafka_exception = "IllegalStateException"


class CoordinatorNotAvailableError(ShareStateError):
    """The share coordinator cannot be reached now."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class GroupIdNotFoundError(ShareStateError):
    """The share coordinator does not know the group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class UnknownTopicOrPartitionError(ShareStateError):
    """The share coordinator does not know the share partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotLeaderOrFollowerError(ShareStateError):
    """A newer leader, or a newer state, has taken over."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class UnknownServerError(ShareStateError):
    """Any other error code of the persister."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetNotAvailableError(ShareStateError):
    """The log does not know the offset at which the share partition was to start."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


@define(eq=False, slots=False)
class ForeignError(ShareStateError):
    """What the persister or the log failed with, handed on as it was."""

    foreign_code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    """The error code it maps to."""

    foreign_exception: str = "UnknownServerException"
    """The simple name of its Java class."""

    @property
    def code(self) -> ErrorCode:  # type: ignore[override]
        """The error code it maps to."""
        return self.foreign_code

    @property
    def exception(self) -> str:
        """The simple name of its Java class."""
        return self.foreign_exception


# ---- misuse: the caller's own mistakes; nothing was changed


@define(eq=False, slots=False)
class MalformedInputError(ShareStateError, ValueError):
    """An argument of the wrong type, or outside what the wire can carry."""

    field: str | None = None
    """The argument, as a path: ``batches[3].first_offset``."""

    code = ErrorCode.INVALID_REQUEST


class TimeReversedError(MalformedInputError):
    """A ``now_ms`` before one that was given already."""


class SnapshotError(MalformedInputError):
    """A snapshot of another version or profile, or one that contradicts itself; ``field`` names the part."""


@define(eq=False, slots=False)
class UnknownWriteError(ShareStateError, LookupError):
    """An outcome for a write that was never issued, or was settled already."""

    number: int | None = None
    """The number that was given."""


class NoReadPendingError(ShareStateError):
    """An outcome for a read of the persisted state that nobody waits for."""


class ResetOffsetRequiredError(ShareStateError):
    """Nothing is persisted yet, so the caller has to say where the share partition starts."""


class InvariantError(ShareStateError, AssertionError):
    """The state contradicts itself: a defect of this library. Please report it with the conversation that led there."""


# ---- the persister's error codes

PERSISTER_ERRORS: Final[Mapping[int, type[ShareStateError]]] = MappingProxyType(
    {
        ErrorCode.NOT_COORDINATOR: CoordinatorNotAvailableError,
        ErrorCode.COORDINATOR_NOT_AVAILABLE: CoordinatorNotAvailableError,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: CoordinatorNotAvailableError,
        ErrorCode.GROUP_ID_NOT_FOUND: GroupIdNotFoundError,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicOrPartitionError,
        ErrorCode.FENCED_LEADER_EPOCH: NotLeaderOrFollowerError,
        ErrorCode.FENCED_STATE_EPOCH: NotLeaderOrFollowerError,
    }
)
"""What a member is told for each error code of the persister; UnknownServerError for any other."""

_UNSAID: Final = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})
"""Codes whose text would tell a member about the brokers' own connections."""


def persister_error(code: int, message: str | None = None) -> ShareStateError:
    """
    Return the error that a member is told when the persister answered *code*.

    >>> persister_error(ErrorCode.FENCED_STATE_EPOCH, "stale")
    NotLeaderOrFollowerError(message='stale')

    Source:
        SharePartition.fetchPersisterError (Kafka 4.3.1).
    """
    if code in _UNSAID:
        return UnknownServerError("Unable to complete operation due to server error.")
    return PERSISTER_ERRORS.get(code, UnknownServerError)(message)
