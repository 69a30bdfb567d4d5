"""Reading a persister's answers: those to writes, and those to the read of an initialisation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from sharestate.conversation.meanings import (
    Answer,
    Failed,
    Failure,
    Held,
    Loaded,
    NoFuture,
    ReadMeaning,
    Refused,
    Senseless,
    Thrown,
    Unanswered,
    WriteMeaning,
    Written,
    java_exception,
)
from sharestate.error_codes import ErrorCode
from sharestate.errors import ForeignError
from sharestate.json_checks import (
    MAX_INT64,
    Check,
    Field,
    an_object,
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
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState, StateBatch

S = TypeVar("S", Written, Loaded)

_Topic: TypeAlias = tuple[bool, tuple[tuple[int, S | Failure | Unanswered], ...]]

_OFFSET: Final = integer(0, MAX_INT64)
_INT32: Final = integer(-(2**31), 2**31 - 1)
_MESSAGE: Final = Field(nullable(text), default=None)
_ERROR: Final = one_of({code.name: code for code in ErrorCode})


def exception_in(name: str) -> Check[ForeignError]:
    """Return the check for an object whose member *name* is a Java class, with the ``message`` of the exception."""

    def make(message: str | None, **class_name: str) -> ForeignError:
        return java_exception(class_name[name], message)

    return record({name: Field(text), "message": _MESSAGE}, make)


def _answer(success: Check[S]) -> Check[S | Failure | Unanswered]:
    """Return the check for an answer, which *success* takes if it is neither a failure nor one still to come."""
    refusal = record({"error": Field(_ERROR), "message": _MESSAGE}, Refused)
    words: Mapping[str, Failure | Unanswered] = {"hold": Held(), "null": Senseless(), "null_future": NoFuture()}

    def check(value: Json, path: str) -> S | Failure | Unanswered:
        if isinstance(value, str):
            return words[value] if value in words else success(value, path)
        given = an_object(value, path)
        return next((form for name, form in forms.items() if name in given), success)(value, path)

    def error(value: Json, path: str) -> S | Failure | Unanswered:
        refused = refusal(value, path)
        return success(value, path) if refused.error is ErrorCode.NONE else refused

    exception, throws, topics = exception_in("exception"), exception_in("throws"), _topics(check)
    forms: Mapping[str, Check[S | Failure | Unanswered]] = {
        "throws": lambda value, path: Thrown(throws(value, path)),
        "exception": lambda value, path: Failed(exception(value, path)),
        "topics": topics,
        "error": error,
    }
    return check


def _topics(inner: Check[S | Failure | Unanswered]) -> Check[S | Failure | Unanswered]:
    """Return the check for an answer spelled out by topics; it has a sense for one share partition only."""
    partition = record(
        {"partition": Field(_INT32), "answer": Field(inner)}, lambda partition, answer: (partition, answer)
    )
    topic = record(
        {"same_topic_id": Field(boolean), "partitions": Field(list_of(partition))},
        lambda same_topic_id, partitions: (same_topic_id, partitions),
    )

    def meaning(topics: tuple[_Topic[S], ...] | None) -> S | Failure | Unanswered:
        match topics:
            case ((True, ((0, answer),)),):
                return answer
            case _:
                return Senseless()

    return record({"topics": Field(nullable(list_of(topic)))}, meaning)


def _written(value: Json, path: str) -> Written:
    return Written() if value == "ok" or "error" in value else refuse("an answer to a write", value, path)


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

_PERSISTED: Final = record(_STATE, PersistedState)


def _loaded(value: Json, path: str) -> Loaded:
    if value == "ok":
        return Loaded(PersistedState())
    if isinstance(value, dict) and value.keys() & {"error", *_STATE}:
        return Loaded(_PERSISTED(value, path))
    return refuse("an answer to a read", value, path)


_WRITE: Final = _answer(_written)
_READ: Final = _answer(_loaded)


def write_answer(value: Json, path: str) -> Answer[WriteMeaning]:
    """Take an answer to a write."""
    return Answer(value, _WRITE(value, path))


def read_answer(value: Json, path: str) -> Answer[ReadMeaning]:
    """Take an answer to the read of the persisted state."""
    return Answer(value, _READ(value, path))


OK: Final = write_answer("ok", "")
"""The write succeeded."""

NOTHING_PERSISTED: Final = read_answer("ok", "")
"""The read succeeded; it found no records in flight."""
