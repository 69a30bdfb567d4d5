"""The exceptions: what a broker would say, and what they carry."""

import copy
import pickle
from collections.abc import Callable

import pytest

from sharestate import (
    AlreadyInitializedError,
    Cause,
    CoordinatorNotAvailableError,
    ErrorCode,
    ExternalError,
    GroupIdNotFoundError,
    InitializationError,
    InvalidRecordStateError,
    InvalidRequestError,
    InvariantError,
    LeaderNotAvailableError,
    LeaderStateError,
    MalformedInputError,
    NoReadPendingError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    RecordState,
    ResetOffsetRequiredError,
    ShareStateError,
    SplitLimitError,
    TakeOverRequiredError,
    TimeReversedError,
    Transition,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnknownWriteError,
    UnsupportedSaslMechanismError,
    WriteFailedError,
    persister_error,
)

WITH_FIELDS = [
    InvalidRecordStateError("not yours", 5, 9, "m2"),
    InvalidRequestError("past the end", 5, 9),
    SplitLimitError("too large", 0, 99, 10),
    InitializationError("failed to load", "state batch 5-9 is reversed"),
    ExternalError("gone", ErrorCode.REQUEST_TIMED_OUT, "TimeoutException"),
    MalformedInputError("no number", "batches[3]"),
    TimeReversedError("backwards", "now_ms"),
    UnknownWriteError("unknown", 7),
    NotLeaderOrFollowerError("moved"),
    NoReadPendingError(),
]

each_error = pytest.mark.parametrize("error", WITH_FIELDS, ids=lambda error: type(error).__name__)


@pytest.mark.parametrize(
    ("error", "code", "exception", "retriable"),
    [
        (InvalidRecordStateError, 121, "InvalidRecordStateException", False),
        (InvalidRequestError, 42, "InvalidRequestException", False),
        (SplitLimitError, 42, "InvalidRequestException", False),
        (MalformedInputError, 42, "InvalidRequestException", False),
        (LeaderNotAvailableError, 5, "LeaderNotAvailableException", True),
        (InitializationError, -1, "IllegalStateException", False),
        (WriteFailedError, -1, "IllegalStateException", False),
        (CoordinatorNotAvailableError, 15, "CoordinatorNotAvailableException", True),
        (GroupIdNotFoundError, 69, "GroupIdNotFoundException", False),
        (UnknownTopicOrPartitionError, 3, "UnknownTopicOrPartitionException", True),
        (NotLeaderOrFollowerError, 6, "NotLeaderOrFollowerException", True),
        (UnknownServerError, -1, "UnknownServerException", False),
        (UnsupportedSaslMechanismError, 33, "UnsupportedSaslMechanismException", False),
        (TakeOverRequiredError, 42, "InvalidRequestException", False),
        (OffsetNotAvailableError, 78, "OffsetNotAvailableException", True),
    ],
)
def test_each_error_has_the_code_that_a_broker_would_send(
    error: type[ShareStateError],
    code: int,
    exception: str,
    retriable: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Code, exception and whether to try again are Kafka's (Errors 4.3.1)."""
    made = error("why")

    assert (made.code, made.exception, made.retriable) == (code, exception, retriable)


@pytest.mark.parametrize(
    "error",
    [
        AlreadyInitializedError,
        NoReadPendingError,
        ResetOffsetRequiredError,
        UnknownWriteError,
        LeaderStateError,
        InvariantError,
    ],
)
def test_misuse_is_no_answer_of_a_broker(error: type[ShareStateError]) -> None:
    """What no broker could answer has the code of an unknown error."""
    assert error().code is ErrorCode.UNKNOWN_SERVER_ERROR


@each_error
def test_one_class_catches_them_all(error: ShareStateError) -> None:
    """Whatever the library raises is a ShareStateError."""
    with pytest.raises(ShareStateError):
        raise error


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (MalformedInputError, ValueError),
        (TimeReversedError, ValueError),
        (UnknownWriteError, LookupError),
        (LeaderStateError, RuntimeError),
        (InvariantError, AssertionError),
    ],
)
def test_misuse_is_what_python_programmers_expect(error: type[ShareStateError], builtin: type[Exception]) -> None:
    """Misuse is what Python raises for it: ValueError, LookupError, RuntimeError, AssertionError."""
    assert issubclass(error, builtin)


def test_an_error_carries_its_fields() -> None:
    """A refusal says which records it is about and who holds them."""
    error = InvalidRecordStateError("not yours", 5, 9, "m2")

    assert (error.message, error.first_offset, error.last_offset, error.owner) == ("not yours", 5, 9, "m2")
    assert repr(error) == "InvalidRecordStateError(message='not yours', first_offset=5, last_offset=9, owner='m2')"


def test_an_error_reads_as_its_message() -> None:
    """The text of an error is what a broker would say, or the name of its code if there is nothing to say."""
    assert str(InvalidRequestError("past the end")) == "past the end"
    assert str(NotLeaderOrFollowerError()) == "NOT_LEADER_OR_FOLLOWER"


@each_error
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling(error: ShareStateError, protocol: int) -> None:
    """An error may cross the border of a process, with all that it carries."""
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - made here

    assert type(again) is type(error)
    assert again == error
    assert (repr(again), str(again), again.code, again.exception) == (
        repr(error),
        str(error),
        error.code,
        error.exception,
    )


@each_error
def test_an_error_can_be_copied(error: ShareStateError) -> None:
    """Shallow or deep, a copy carries the same."""
    assert repr(copy.copy(error)) == repr(copy.deepcopy(error)) == repr(error)


@pytest.mark.parametrize(
    ("error", "others"),
    [
        (
            InvalidRecordStateError("not yours", 5, 9, "m2"),
            [
                InvalidRecordStateError("not yours", 5, 9, "m3"),
                InvalidRecordStateError("not yours", 5, 8, "m2"),
                InvalidRecordStateError("mine", 5, 9, "m2"),
            ],
        ),
        (InvalidRequestError("no", 5, 9), [SplitLimitError("no", 5, 9), InvalidRequestError("no", 5), "no"]),
        (NotLeaderOrFollowerError("no"), [LeaderNotAvailableError("no"), NotLeaderOrFollowerError()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_that_say_the_same_are_equal(error: ShareStateError, others: list[object]) -> None:
    """Of one class and with equal fields, errors are equal and stand once in a set; nothing else equals them."""
    again = copy.copy(error)

    assert again is not error
    assert {error, again} == {again}
    assert all(error != other for other in others)


RENEWED = (Transition(0, 4, Cause.RENEWED, RecordState.ACQUIRED, 1, "m1", 5, False, 0, None),)  # noqa: FBT003 - a row


def test_the_transitions_of_a_refusal_tell_errors_apart() -> None:
    """A refusal after renewals is not equal to one after none."""
    error = InvalidRequestError("no")

    assert error.with_transitions(RENEWED) != error
    assert error.with_transitions(RENEWED) == InvalidRequestError("no", transitions=RENEWED)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301 - made here
def test_a_copy_of_a_refusal_has_its_transitions(copied: Callable[[ShareStateError], ShareStateError]) -> None:
    """Copies and pickles of a refusal carry every field, and the notes that were added."""
    error = SplitLimitError("too large", 0, 99, 10, transitions=RENEWED)
    error.add_note("in the test")

    assert (copied(error), copied(error).__notes__) == (error, ["in the test"])


def test_an_external_error_has_the_code_it_was_given() -> None:
    """What came from elsewhere says what it is."""
    error = ExternalError("gone", external_code=ErrorCode.REQUEST_TIMED_OUT, external_exception="TimeoutException")

    assert (error.code, error.exception, error.retriable) == (ErrorCode.REQUEST_TIMED_OUT, "TimeoutException", True)


def test_an_external_error_is_unknown_unless_it_says_what_it_is() -> None:
    """Without a code it is an unknown error."""
    error = ExternalError("boom")

    assert (error.code, error.exception) == (ErrorCode.UNKNOWN_SERVER_ERROR, "UnknownServerException")


# ---- the persister's error codes (rule 4.1)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (16, CoordinatorNotAvailableError),
        (15, CoordinatorNotAvailableError),
        (14, CoordinatorNotAvailableError),
        (69, GroupIdNotFoundError),
        (3, UnknownTopicOrPartitionError),
        (74, NotLeaderOrFollowerError),
        (124, NotLeaderOrFollowerError),
        (42, UnknownServerError),
        (-1, UnknownServerError),
        (9_999, UnknownServerError),
    ],
)
def test_a_persisters_code_is_told_as_kafka_tells_it(code: int, error: type[ShareStateError]) -> None:
    """Each code of the persister becomes the exception of the table in rule 4.1, with the persister's words."""
    made = persister_error(code, "its words")

    assert (type(made), made.message) == (error, "its words")


@pytest.mark.parametrize("code", [ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION])
def test_texts_between_brokers_are_kept_from_members(code: ErrorCode) -> None:
    """Of two codes the words are replaced (PR #20884)."""
    made = persister_error(code, "secret")

    assert (type(made), made.message) == (UnknownServerError, "Unable to complete operation due to server error.")


# ---- the codes themselves


@pytest.mark.parametrize(
    ("name", "code", "exception", "retriable"),
    [
        ("NONE", 0, "", False),
        ("UNKNOWN_SERVER_ERROR", -1, "UnknownServerException", False),
        ("OFFSET_OUT_OF_RANGE", 1, "OffsetOutOfRangeException", False),
        ("CORRUPT_MESSAGE", 2, "CorruptRecordException", True),
        ("FENCED_LEADER_EPOCH", 74, "FencedLeaderEpochException", True),
        ("INVALID_RECORD_STATE", 121, "InvalidRecordStateException", False),
        ("SHARE_SESSION_NOT_FOUND", 122, "ShareSessionNotFoundException", True),
        ("FENCED_STATE_EPOCH", 124, "FencedStateEpochException", False),
        ("SHARE_SESSION_LIMIT_REACHED", 133, "ShareSessionLimitReachedException", True),
    ],
)
def test_the_codes_are_kafkas(name: str, code: int, exception: str, retriable: bool) -> None:  # noqa: FBT001 - a column
    """Names, numbers and exceptions are those of Errors (Kafka 4.3.1)."""
    known = ErrorCode[name]

    assert (known, known.exception, known.retriable) == (code, exception, retriable)


def test_the_codes_have_no_holes() -> None:
    """Kafka 4.3.1 knows the codes -1 to 133, each with an exception of its own but for NONE."""
    assert sorted(ErrorCode) == list(range(-1, 134))
    assert len({code.exception for code in ErrorCode}) == 135
