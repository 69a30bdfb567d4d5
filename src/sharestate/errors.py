"""
Every exception of the library, with its ``code`` and whether the request is ``retriable``.

Three kinds. *Refusals* are a broker's answers to a client whose request does not fit the state. *Outcomes* are returned
in ``Effects.error``, because the command itself has succeeded: a failed initialization, a failed write. *Misuse* is a
call that no broker could answer; the error names the wrong argument. None of them leaves a command half done; refusals
document what they leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from attrs import define, evolve, field

# All of these are imported from here, with the errors.
from sharestate.error_codes import ErrorCode as ErrorCode  # noqa: PLC0414 - as above
from sharestate.input_errors import InvalidConfigurationError as InvalidConfigurationError  # noqa: PLC0414 - as above
from sharestate.input_errors import MalformedInputError as MalformedInputError  # noqa: PLC0414 - as above
from sharestate.input_errors import ShareStateError as ShareStateError  # noqa: PLC0414 - as above
from sharestate.input_errors import SnapshotError as SnapshotError  # noqa: PLC0414 - as above

if TYPE_CHECKING:
    from sharestate.values.dead_letters import DeadLetterRequest
    from sharestate.values.effects import Transition
    from sharestate.values.records import SharePartitionKey


# ---- refusals: the state does not take the request


@define(eq=False, slots=False)
class RequestRefusedError(ShareStateError):
    """
    A member's request that does not fit the state of the records; base class of the three that say why.

    Attributes:
        first_offset: First offset of the refused range.
        last_offset: Last offset of the refused range, included.
        transitions: The transitions before the refusal, as in ``Effects.transitions``: locks that were renewed.
    """

    first_offset: int | None = None
    last_offset: int | None = None
    transitions: tuple[Transition, ...] = field(default=(), kw_only=True, repr=False)

    def with_transitions(self, transitions: tuple[Transition, ...]) -> Self:
        """Return the same refusal with *transitions*, raised where this one was."""
        return evolve(self, transitions=transitions).with_traceback(self.__traceback__)


@define(eq=False, slots=False)
class InvalidRecordStateError(RequestRefusedError):
    """
    An acknowledgement of records that its sender does not hold; no state, count or owner has changed.

    Batches that were split before the refusal stay split, locks that were renewed before it stay renewed, and
    ``now_ms`` is remembered.

    Attributes:
        owner: The member that holds the records, if it is another one.
    """

    owner: str | None = None

    code = ErrorCode.INVALID_RECORD_STATE


class InvalidRequestError(RequestRefusedError):
    """
    A request with unknown types, a malformed range, or offsets past what was ever acquired.

    A malformed range changes nothing; the others leave what an InvalidRecordStateError leaves.
    """

    code = ErrorCode.INVALID_REQUEST


@define(eq=False, slots=False)
class SplitLimitError(RequestRefusedError):
    """
    A request that would split a batch larger than the limit into single records; only ``now_ms`` is remembered.

    Attributes:
        limit: The largest batch that is split. [records]
    """

    limit: int | None = None

    code = ErrorCode.INVALID_REQUEST


class AlreadyInitializedError(ShareStateError):
    """The share partition is active; there is nothing to initialize."""


class LeaderNotAvailableError(ShareStateError):
    """The share partition is being initialized, or it was fenced."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


# ---- share sessions: a request does not fit those of the broker


class ShareSessionNotFoundError(ShareStateError):
    """A request for a share session that there is not; nothing was changed."""

    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpochError(ShareStateError):
    """A request with another epoch than its share session expects; nothing was changed."""

    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class InvalidSessionRequestError(ShareStateError):
    """A request that no share session takes, whatever its state; nothing was changed."""

    code = ErrorCode.INVALID_REQUEST


class DuplicatePartitionError(ShareStateError):
    """A request that opens a share session and lists a partition twice; the member has no session now, as in Kafka."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


@define(eq=False, slots=False)
class ShareSessionLimitReachedError(ShareStateError):
    """
    A request that would open one share session too many; nothing was changed.

    Attributes:
        due_ms: When a broker answers it: after the time that the request may wait. [ms]
    """

    due_ms: int | None = None

    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


# ---- outcomes: failures of an initialization or a write


@define(eq=False, slots=False)
class InitializationError(ShareStateError):
    """
    The share partition could not be loaded, or its loading failed before.

    Attributes:
        reason: The contradiction in the persisted state, or the text of the exception that ended the loading.
    """

    reason: str | None = None

    kafka_exception = "IllegalStateException"


class WriteFailedError(ShareStateError):
    """The persister gave no answer to a write, or one that cannot be understood."""

    kafka_exception = "IllegalStateException"


class CoordinatorNotAvailableError(ShareStateError):
    """The share coordinator cannot be reached now."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class GroupIdNotFoundError(ShareStateError):
    """The coordinator does not know the share group; nothing was changed."""

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
class ExternalError(ShareStateError):
    """
    A failure of the persister or of the log, passed on as it is.

    Attributes:
        external_code: The error code it maps to.
        external_exception: The simple name of its Java class.
    """

    external_code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    external_exception: str = "UnknownServerException"

    @property
    def code(self) -> ErrorCode:  # type: ignore[override]
        """The error code it maps to."""
        return self.external_code

    @property
    def exception(self) -> str:
        """The simple name of its Java class."""
        return self.external_exception


@define(eq=False, slots=False)
class DeadLetterFailedError(ShareStateError):
    """
    The dead-letter queue did not take records, which are archived all the same; ``__cause__`` says why.

    Attributes:
        request: The request that has failed. Some of its dead letters may have been written.
    """

    request: DeadLetterRequest | None = None


# ---- share groups: a request does not fit the group


class UnknownMemberIdError(ShareStateError):
    """A heartbeat of somebody who is no member of the share group; nothing was changed."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedMemberEpochError(ShareStateError):
    """A heartbeat with another epoch than the member has, or had before; nothing was changed."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class GroupMaxSizeReachedError(ShareStateError):
    """A heartbeat that would add one member too many; nothing was changed."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class GroupNotEmptyError(ShareStateError):
    """A request that only a share group without members takes; nothing was changed."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupRecordOrderError(ShareStateError):
    """A record takes away what others still need, which no broker writes; nothing was changed."""

    kafka_exception = "IllegalStateException"


# ---- assignments that fail


class AssignmentError(ShareStateError):
    """The assignor fails, as Kafka's does: the group keeps the target assignment that it had."""


class UnknownSubscribedTopicError(AssignmentError):
    """Members subscribe to a topic that the metadata does not have."""

    kafka_exception = "PartitionAssignorException"


class NoUnfilledMemberError(AssignmentError):
    """A partition wants more members, and each one has as many partitions as it should."""

    kafka_exception = "NoSuchElementException"


# ---- nodes: a request that Kafka refuses


@define(eq=False, slots=False)
class NodeError(ShareStateError):
    """
    A request that a node of Kafka refuses; nothing was changed.

    Attributes:
        error_code: The error code that it answers.
        record_errors: Which records of a batch are to blame: their places in it, and what is wrong with each.
    """

    error_code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    record_errors: tuple[tuple[int, str], ...] = ()

    @property
    def code(self) -> ErrorCode:  # type: ignore[override]
        """The error code that it answers."""
        return self.error_code

    @property
    def exception(self) -> str:
        """The simple name of the exception that Kafka's client raises for it."""
        return self.error_code.exception


# ---- settings that Kafka does not take


class DeadLetterQueueConfigError(InvalidConfigurationError):
    """The settings of a dead-letter queue do not go together, so that nothing is written to it."""

    kafka_exception = "ConfigException"


# ---- files that cannot be read


@define(eq=False, slots=False)
class UnreadableFileError(ShareStateError):
    """
    A file that cannot be read, or that is not what it should be.

    Attributes:
        file: The file, as it was given.
        line: The line's number, the first one being 1; None if the file has no lines, or cannot be read as a whole.
        field: The path of the wrong part of the line; empty for the line as a whole.
    """

    file: str = ""
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        """Return the place and the message in one line: ``a.jsonl:1: trace: ...``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.message) if part)


@define(eq=False, slots=False)
class SegmentError(UnreadableFileError):
    """
    A log segment with bytes that no broker has written there; what comes before them has been read.

    Attributes:
        byte_offset: The offset in the file of the record batch with which reading stopped. [bytes]
    """

    byte_offset: int | None = None

    code = ErrorCode.CORRUPT_MESSAGE

    def __str__(self) -> str:
        """Return the place and the message in one line: ``a.log, byte 61: ...``."""
        place = self.file if self.byte_offset is None else f"{self.file}, byte {self.byte_offset}"
        return f"{place}: {self.message}"


class SegmentTailError(SegmentError):
    """A log segment that ends in the middle of a record batch, or in zeros, and should not."""


class UnknownMagicError(SegmentError):
    """A record batch of another format than 2, which brokers have written since 0.11."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class UnknownCompressionError(SegmentError):
    """A record batch that is compressed in a way that no broker knows."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


# ---- bytes that cannot be read


class HistoryError(UnreadableFileError):
    """A file that is no history, or an event in it that is malformed; ``line`` is the row in Parquet, from 1 on."""


class RequestLogError(UnreadableFileError):
    """A broker's request log, or its properties, that cannot be read, or a line of it that is broken."""


@define(eq=False, slots=False)
class FormatError(ShareStateError, ValueError):
    """
    Bytes that are not what they should be.

    Attributes:
        part: What was being read: the "key" or "value" of a record, or a response.
        byte_offset: The offset in it of the byte with which reading stopped. [bytes]
    """

    part: str | None = None
    byte_offset: int | None = None

    def __str__(self) -> str:
        """Return the message, after the place that it is about."""
        return f"{self.part}, byte {self.byte_offset}: {super().__str__()}" if self.part else super().__str__()


class ResponseFormatError(FormatError):
    """Bytes that are no response of a broker; the connection that they came over is closed."""


class RequestFormatError(FormatError):
    """Bytes that are no request of a client; the connection that they came over is closed."""

    kafka_exception = "InvalidRequestException"


# ---- stored state: bytes that are no record, logs that fail


class RecordFormatError(FormatError):
    """
    Bytes that are no record of a coordinator; one that reads them fails to load.

    Those of the share coordinator are in ``__share_group_state``, those of share groups in ``__consumer_offsets``.
    """

    kafka_exception = "RuntimeException"


class UnknownRecordTypeError(RecordFormatError):
    """A record of a type that this release does not know; a coordinator that loads skips it."""

    kafka_exception = "UnknownRecordTypeException"


class UnknownRecordVersionError(RecordFormatError):
    """A value of a version that this release does not know; unlike an unknown type it is not skipped."""

    kafka_exception = "UnknownRecordVersionException"


class StateLogError(ShareStateError, OSError):
    """A state log that cannot be opened, read or written, or that is something else; nothing was changed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


# ---- misuse: the caller's own mistakes; nothing was changed


@define(eq=False, slots=False)
class HistoryOrderError(MalformedInputError):
    """
    An event of a share partition that is not the next one: one is missing, comes again, or comes to another replay.

    Attributes:
        key: The share partition: group id, topic id and partition.
        seq: The event's number.
        expected: The number that has to come.
    """

    key: tuple[str, str, int] = ("", "", 0)
    seq: int = 0
    expected: int = 0


class UnsupportedSaslMechanismError(MalformedInputError):
    """A SASL mechanism that the library does not speak; it speaks PLAIN and SCRAM."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class TakeOverRequiredError(ShareStateError):
    """A read by which the leader of a live group would be fenced, without leave to take over; nothing was sent."""

    code = ErrorCode.INVALID_REQUEST


class TimeReversedError(MalformedInputError):
    """A ``now_ms`` before that of an earlier command."""


@define(eq=False, slots=False)
class UnknownWriteError(ShareStateError, LookupError):
    """
    An outcome for a write that was never issued, or was answered already.

    Attributes:
        number: The number that was given.
    """

    number: int | None = None


@define(eq=False, slots=False)
class UnknownDeadLetterError(ShareStateError, LookupError):
    """
    An answer for records that were never handed to the dead-letter queue, or were answered already.

    Attributes:
        number: The number that was given.
    """

    number: int | None = None


class NoReadPendingError(ShareStateError):
    """An outcome for a read of the persisted state that nobody waits for."""


class ResetOffsetRequiredError(ShareStateError):
    """Nothing is persisted yet, and the caller has passed no offset to start at."""


class LeaderStateError(ShareStateError, RuntimeError):
    """A leader used out of order: not entered or started, or bound to a share partition with requests pending."""


class NoAnswerError(ShareStateError, LookupError):
    """A request to a node that is not answered at once; what it does has happened."""

    code = ErrorCode.REQUEST_TIMED_OUT


class WrongThreadError(ShareStateError, RuntimeError):
    """A persister that belongs to one thread was used in another one."""


class InvariantError(ShareStateError, AssertionError):
    """The state contradicts itself: a defect of this library. Please report it with the conversation that led there."""


# ---- failures in Kafka's words


def initialization_failed(key: SharePartitionKey, reason: str | None = None) -> InitializationError:
    """
    Return the error of a share partition that could not be loaded, because of *reason* (rule 4.1).

    Source:
        SharePartition.maybeInitialize (Kafka 4.3.1).
    """
    return InitializationError(f"Failed to initialize the share partition {key}", reason)


def write_failed(key: SharePartitionKey) -> WriteFailedError:
    """
    Return the error of a write to which there was no answer, or none about *key* (rule 11).

    Source:
        SharePartition.writeShareGroupState (Kafka 4.3.1).
    """
    return WriteFailedError(f"Failed to write the share group state for share partition {key}")


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
"""The error for a member by the error code of the persister; UnknownServerError for any other (rule 4.1)."""

_UNSAID: Final = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})
"""Codes whose text would show a member the brokers' own connections."""


def persister_error(code: int, message: str | None = None) -> ShareStateError:
    """
    Return the error for a member when the persister has answered *code* (rule 4.1).

    >>> persister_error(ErrorCode.FENCED_STATE_EPOCH, "stale")
    NotLeaderOrFollowerError(message='stale')

    Source:
        SharePartition.fetchPersisterError (Kafka 4.3.1).
    """
    if code in _UNSAID:
        return UnknownServerError("Unable to complete operation due to server error.")
    return PERSISTER_ERRORS.get(code, UnknownServerError)(message)
