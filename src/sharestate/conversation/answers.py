"""
The answers of a scripted persister, dead-letter queue and log: their JSON, and their meaning.

A persister answers reads and writes; a dead-letter queue answers what it was handed; a log answers which offset a share
partition starts at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

from attrs import frozen

from sharestate.errors import ErrorCode, ExternalError
from sharestate.json_checks import (
    MAX_INT64,
    Check,
    Field,
    boolean,
    integer,
    list_of,
    nullable,
    one_of,
    record,
    refuse,
    row,
    text,
)
from sharestate.json_lines import Json
from sharestate.leader.answers import Failed, Loaded, ReadAnswer, Refused, WriteAnswer, Written
from sharestate.values.offset_reset import OffsetReset
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState, StateBatch

M = TypeVar("M")

# ---- meanings


@frozen
class Held:
    """No answer yet; a ``complete`` request brings it."""


@frozen
class Thrown:
    """The persister's method threw an exception instead of returning a future."""

    cause: ExternalError
    """The exception."""


@frozen
class NoFuture:
    """The persister's method returned null instead of a future."""


Failure: TypeAlias = Refused | Failed
"""An answer that is no success."""

Unanswered: TypeAlias = Held | Thrown | NoFuture
"""No answer: it comes later, or never."""

WriteMeaning: TypeAlias = WriteAnswer | Unanswered
"""The meaning of an answer to a write."""

ReadMeaning: TypeAlias = ReadAnswer | Unanswered
"""The meaning of an answer to a read."""


@frozen
class QueueAnswered:
    """The dead-letter queue has taken the records or has failed to: a share partition goes on the same way."""


DeadLetterMeaning: TypeAlias = QueueAnswered | Unanswered
"""The meaning of an answer of the dead-letter queue."""


@frozen
class GivenAnswer(Generic[M]):
    """An answer: its JSON and its meaning."""

    as_given: Json
    """Its JSON, which events repeat."""

    meaning: M
    """Its meaning."""


_PACKAGE: Final = "org.apache.kafka.common."
"""The package of the exceptions that have error codes; a class of the same name elsewhere has none."""

_CODES: Final[Mapping[str, ErrorCode]] = MappingProxyType({code.exception: code for code in ErrorCode})


def java_exception(class_name: str, message: str | None) -> ExternalError:
    """
    Return the error for a Java exception, given the class's full name.

    >>> java_exception("org.apache.kafka.common.errors.TimeoutException", None).code.name
    'REQUEST_TIMED_OUT'
    >>> java_exception("java.lang.RuntimeException", "late").code.name
    'UNKNOWN_SERVER_ERROR'

    Source:
        Errors.forException (Kafka 4.3.1).
    """
    simple_name = re.split(r"[.$]", class_name)[-1]
    code = _CODES.get(simple_name) if class_name.startswith(_PACKAGE) else None
    return ExternalError(message, code or ErrorCode.UNKNOWN_SERVER_ERROR, simple_name)


# ---- answers of the persister

S = TypeVar("S", Written, Loaded)

_Topic: TypeAlias = tuple[bool, tuple[tuple[int, S | Failure | Unanswered], ...]]

_OFFSET: Final = integer(0, MAX_INT64)
_INT32: Final = integer(-(2**31), 2**31 - 1)
_MESSAGE: Final = Field(nullable(text), default=None)
_ERROR: Final = one_of({code.name: code for code in ErrorCode})


def exception_in(name: str) -> Check[ExternalError]:
    """Return the check for an object whose member *name* is a Java class, with the ``message`` of the exception."""

    def make(message: str | None, **class_name: str) -> ExternalError:
        return java_exception(class_name[name], message)

    return record({name: Field(text), "message": _MESSAGE}, make)


def _answer(succeed: Callable[..., S], fields: Mapping[str, Field]) -> Check[S | Failure | Unanswered]:
    """Return the check for an answer; one without an error has *fields*, which *succeed* takes."""

    def spelled_out(error: ErrorCode, message: str | None, **state: Any) -> S | Refused:  # noqa: ANN401 - passed on
        return succeed(**state) if error is ErrorCode.NONE else Refused(error, message)

    words: Mapping[str, Callable[[], S | Failure | Unanswered]] = {
        "ok": succeed,
        "hold": Held,
        "null": Failed,
        "null_future": NoFuture,
    }
    error = {"error": Field(_ERROR, default=ErrorCode.NONE), "message": _MESSAGE}
    state = record({**error, **fields}, spelled_out)
    forms: dict[str, Check[S | Failure | Unanswered]] = {"error": state, **dict.fromkeys(fields, state)}

    def check(value: Json, path: str) -> S | Failure | Unanswered:
        if isinstance(value, str) and value in words:
            return words[value]()
        if isinstance(value, dict):
            for name, form in forms.items():
                if name in value:
                    return form(value, path)
        return refuse(f"one of {', '.join(words)}, or an object with one of {', '.join(forms)}", value, path)

    exception, throws = exception_in("exception"), exception_in("throws")
    forms["exception"] = lambda value, path: Failed(exception(value, path))
    forms["throws"] = lambda value, path: Thrown(throws(value, path))
    forms["topics"] = _topics(check)
    return check


def _topics(inner: Check[S | Failure | Unanswered]) -> Check[S | Failure | Unanswered]:
    """Return the check for an answer given by topics; it has a meaning for a single share partition only."""
    partition = record(
        {"partition": Field(_INT32), "answer": Field(inner)}, lambda partition, answer: (partition, answer)
    )
    topic = record(
        {"same_topic_id": Field(_same_topic_id), "partitions": Field(list_of(partition))},
        lambda same_topic_id, partitions: (same_topic_id, partitions),
    )

    def meaning(topics: tuple[_Topic[S], ...] | None) -> S | Failure | Unanswered:
        match topics:
            case ((True, ((0, answer),)),):
                return answer
            case _:
                return Failed()

    return record({"topics": Field(nullable(list_of(topic)))}, meaning)


def _same_topic_id(value: Json, path: str) -> bool:
    """Check whether a topic is the right one; ``"equal"`` stands for an id that is equal but another object (B12)."""
    return True if value == "equal" else boolean(value, path)


_STATE: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "state_epoch": Field(_INT32, default=0),
        "start_offset": Field(integer(UNINITIALIZED_START_OFFSET, MAX_INT64), default=0),
        "state_batches": Field(
            list_of(row(_OFFSET, _OFFSET, integer(-128, 127), integer(-(2**15), 2**15 - 1), make=StateBatch)),
            default=(),
        ),
    }
)

_WRITE: Final = _answer(Written, {})
_READ: Final = _answer(lambda **state: Loaded(PersistedState(**state)), _STATE)


def write_answer(value: Json, path: str) -> GivenAnswer[WriteMeaning]:
    """Check an answer to a write."""
    return GivenAnswer(value, _WRITE(value, path))


def read_answer(value: Json, path: str) -> GivenAnswer[ReadMeaning]:
    """Check an answer to the read of the persisted state."""
    return GivenAnswer(value, _READ(value, path))


OK: Final = write_answer("ok", "")
"""The write succeeded."""

NOTHING_PERSISTED: Final = read_answer("ok", "")
"""The read succeeded, and found offset 0 and no records in flight."""


# ---- answers of the dead-letter queue

_queue_throws: Final = exception_in("throws")

_DEAD_LETTER_WORDS: Final[Mapping[str, DeadLetterMeaning]] = MappingProxyType(
    {"ok": QueueAnswered(), "hold": Held(), "null_future": NoFuture()}
)
_DEAD_LETTER_FORMS: Final[Mapping[str, Check[DeadLetterMeaning]]] = MappingProxyType(
    {
        "error": record({"error": Field(_ERROR), "message": _MESSAGE}, lambda **_: QueueAnswered()),
        "exception": record({"exception": Field(text), "message": _MESSAGE}, lambda **_: QueueAnswered()),
        "throws": lambda value, path: Thrown(_queue_throws(value, path)),
    }
)


def dead_letter_answer(value: Json, path: str) -> GivenAnswer[DeadLetterMeaning]:
    """Check an answer of the dead-letter queue."""
    if isinstance(value, str) and value in _DEAD_LETTER_WORDS:
        return GivenAnswer(value, _DEAD_LETTER_WORDS[value])
    for name, form in _DEAD_LETTER_FORMS.items():
        if isinstance(value, dict) and name in value:
            return GivenAnswer(value, form(value, path))
    expected = f"one of {', '.join(_DEAD_LETTER_WORDS)}, or an object with one of {', '.join(_DEAD_LETTER_FORMS)}"
    return refuse(expected, value, path)


TAKEN: Final = dead_letter_answer("ok", "")
"""The dead-letter queue has taken the records."""


# ---- answers of the log

Found: TypeAlias = int | ExternalError | None
"""An offset, or the error of the look-up; None if the log has no such offset."""

LOOKUP_KINDS: Final[Mapping[OffsetReset, str]] = {
    OffsetReset.EARLIEST: "earliest",
    OffsetReset.LATEST: "latest",
    OffsetReset.BY_DURATION: "timestamp",
}
"""The name of each look-up in events and tables."""

_EXCEPTION: Final = exception_in("exception")


def _found(value: Json, path: str) -> GivenAnswer[Found]:
    if isinstance(value, dict):
        return GivenAnswer(value, _EXCEPTION(value, path))
    return GivenAnswer(value, None if value is None else _OFFSET(value, path))


_FIRST: Final[GivenAnswer[Found]] = GivenAnswer(0, 0)


@frozen(kw_only=True)
class LookupTable:
    """The log's answer to each kind of look-up."""

    earliest: GivenAnswer[Found] = _FIRST
    """The first offset of the log."""

    latest: GivenAnswer[Found] = _FIRST
    """The offset after the last record."""

    timestamp: GivenAnswer[Found] = _FIRST
    """The first offset at or after a time."""

    def of(self, strategy: OffsetReset) -> GivenAnswer[Found]:
        """Return the answer for *strategy*."""
        answer: GivenAnswer[Found] = getattr(self, LOOKUP_KINDS[strategy])
        return answer


NO_TABLE: Final = LookupTable()
"""Every look-up finds offset 0."""

lookup_table: Final = record({kind: Field(_found, default=_FIRST) for kind in LOOKUP_KINDS.values()}, LookupTable)
"""The check for a table; a look-up that it does not name finds offset 0."""
