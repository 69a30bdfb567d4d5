"""What a persister's answer, or a log's, can mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar

from attrs import frozen

from sharestate.error_codes import ErrorCode
from sharestate.errors import ForeignError
from sharestate.json_lines import Json
from sharestate.values.requests import PersistedState

M = TypeVar("M")


@frozen
class Written:
    """The write succeeded."""


@frozen
class Loaded:
    """The read succeeded."""

    state: PersistedState
    """What was persisted."""


@frozen
class Refused:
    """The persister answered with an error."""

    error: ErrorCode
    """Which error."""

    message: str | None
    """What it says."""


@frozen
class Failed:
    """There is no answer, because this happened instead."""

    cause: ForeignError
    """What happened."""


@frozen
class Senseless:
    """An answer that answers nothing: null, or about something else than the one share partition asked for."""


@frozen
class Held:
    """There is no answer yet; a ``complete`` request brings it."""


@frozen
class Thrown:
    """The persister's method itself threw, instead of returning a future."""

    cause: ForeignError
    """What it threw."""


@frozen
class NoFuture:
    """The persister's method returned null instead of a future."""


Failure: TypeAlias = Refused | Failed | Senseless
"""An answer that is no success."""

Unanswered: TypeAlias = Held | Thrown | NoFuture
"""The call has not brought an answer, or never will."""

WriteMeaning: TypeAlias = Written | Failure | Unanswered
"""What may come of a write."""

ReadMeaning: TypeAlias = Loaded | Failure | Unanswered
"""What may come of a read."""


@frozen
class Answer(Generic[M]):
    """An answer as it was given, and what it means."""

    as_given: Json
    """The JSON; events repeat it."""

    meaning: M
    """What it means."""


_PACKAGE: Final = "org.apache.kafka.common."
"""Where the exceptions behind Kafka's error codes are; a namesake elsewhere has no code of its own."""

_CODES: Final[Mapping[str, ErrorCode]] = MappingProxyType({code.exception: code for code in ErrorCode})


def java_exception(class_name: str, message: str | None) -> ForeignError:
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
    return ForeignError(message, code or ErrorCode.UNKNOWN_SERVER_ERROR, simple_name)
