"""The grammar of requests: the fields of each ``op``, their types and their defaults."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from attrs import frozen

from sharestate.conversation import requests
from sharestate.conversation.answers import (
    NO_TABLE,
    NOTHING_PERSISTED,
    GivenAnswer,
    Held,
    LookupTable,
    dead_letter_answer,
    lookup_table,
    read_answer,
    write_answer,
)
from sharestate.errors import MalformedInputError
from sharestate.json_checks import (
    MAX_INT64,
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    member,
    nullable,
    one_of,
    record,
    refuse,
    row,
    text,
)
from sharestate.json_lines import Json, brief
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.offset_reset import read_auto_offset_reset
from sharestate.values.records import NO_PRODUCER_ID, AbortedTransaction, AcquireMode, ControlType, RecordBatch

E = TypeVar("E", bound=Enum)
M = TypeVar("M")

MAX_NAME: Final = 256
"""The largest length of a member, a key or another name. [characters]"""

MAX_DEFAULT_ANSWER: Final = 1024
"""The largest length of a default answer, as JSON. [characters]"""

_int32: Final = integer(-(2**31), 2**31 - 1)
_int64: Final = integer()
_offset: Final = integer(0, MAX_INT64)


def word(*words: str) -> Check[str]:
    """Return the check for one of *words*."""
    return one_of({word: word for word in words})


def _value_of(enumeration: type[E]) -> Check[E]:
    """Return the check for the JSON value of a member of *enumeration*."""
    return one_of({each.value: each for each in enumeration})


def name(value: Json, path: str) -> str:
    """Check a member, a key or another name, which states and events may repeat for every record."""
    name = text(value, path)
    return name if len(name) <= MAX_NAME else refuse(f"at most {MAX_NAME} characters", value, path)


# ---- config

DEFAULT_CONFIG: Final = ShareConfig(max_record_locks=200, delivery_count_limit=5, record_lock_duration_ms=30_000)
"""The config of a new share partition; it is that of Kafka's tests, not a broker's defaults."""


def _topic(value: Json, path: str) -> str:
    """Check the name of a topic; null is no topic, which an empty name stands for."""
    return "" if value is None else name(value, path)


_number: Final = Field(integer(0, 2**31 - 1), default=None)

_OPENED: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "max_record_locks": _number,
        "delivery_count_limit": _number,
        "record_lock_duration_ms": _number,
        "dlq_topic": Field(_topic, default=None),
        "dlq_supported": Field(boolean, default=None),
    }
)


def _given(**settings: Any) -> Mapping[str, Any]:  # noqa: ANN401 - settings of different types
    return MappingProxyType({name: value for name, value in settings.items() if value is not None})


opened_config: Final[Check[Mapping[str, Any]]] = record(_OPENED, _given)
"""The check for the config of ``open``; it returns the settings that are named."""

group_config: Final[Check[Mapping[str, Any]]] = record(
    {
        **_OPENED,
        "renew_acknowledge_enable": Field(boolean, default=None),
        "auto_offset_reset": Field(read_auto_offset_reset, default=None),
    },
    _given,
)
"""The check for the config of ``configure``; it returns the settings that are named."""


# ---- acquire


def _log_batch(
    first_offset: int, last_offset: int, attributes: tuple[int, bool, ControlType | None] | None = None
) -> RecordBatch:
    producer_id, is_transactional, control = attributes or (NO_PRODUCER_ID, False, None)
    return RecordBatch(first_offset, last_offset, producer_id, is_transactional or control is not None, control)


_attributes: Final = record(
    {
        "producer_id": Field(_int64, default=NO_PRODUCER_ID),
        "transactional": Field(boolean, default=False),
        "control": Field(nullable(_value_of(ControlType)), default=None),
    },
    lambda producer_id, transactional, control: (producer_id, transactional, control),
)

_any_log_batch: Final = row(_offset, _offset, _attributes, make=_log_batch, required=2)


def _checked_log_batch(value: Json, path: str) -> RecordBatch:
    batch = _any_log_batch(value, path)
    if batch.control is not None and batch.first_offset != batch.last_offset:
        refuse("one offset for a control batch", value, path)
    return batch


_ISOLATIONS: Final = MappingProxyType({**{level.value: level for level in IsolationLevel}, "log_end": None})


def _acquire(
    fetch_offset: int,
    batches: tuple[RecordBatch, ...],
    aborted: tuple[AbortedTransaction, ...] | None,
    isolation: IsolationLevel | None,
    **members: Any,  # noqa: ANN401 - passed on
) -> requests.Acquire:
    fetched = FetchedRecords(
        fetch_offset=fetch_offset,
        batches=batches,
        aborted_transactions=aborted or (),
        isolation=isolation or IsolationLevel.READ_UNCOMMITTED,
    )
    return requests.Acquire(fetched=fetched, is_isolation_supported=isolation is not None, **members)


# ---- the others


def _uuid(value: Json, path: str) -> str:
    """Check a UUID in base64, with or without padding, and return it as Kafka prints it."""
    given = text(value, path).rstrip("=")
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16:  # noqa: PLR2004 - a UUID has 16 bytes
        refuse("a UUID in base64", value, path)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _brief(check: Check[GivenAnswer[M]]) -> Check[GivenAnswer[M]]:
    """Return *check* for an answer that is not long, because events may repeat it for every record."""

    def checked(value: Json, path: str) -> GivenAnswer[M]:
        if len(brief(value, MAX_DEFAULT_ANSWER)) > MAX_DEFAULT_ANSWER:
            refuse(f"at most {MAX_DEFAULT_ANSWER} characters", value, path)
        return check(value, path)

    return checked


def _held(value: Json, path: str) -> int | str:
    """Check the number of a write; ``"read"`` stands for the read."""
    return "read" if value == "read" else _offset(value, path)


def _complete(answer: tuple[Json, str], lookup: LookupTable | None, **numbers: int | str | None) -> requests.Command:
    """Return the command for ``complete``; what its *answer* means depends on which of the *numbers* is given."""
    given = {name: number for name, number in numbers.items() if number is not None}
    if len(given) != 1:
        message = "either write or dlq" if given else "missing"
        raise MalformedInputError(message, "dlq" if given else "write")
    ((name, number),) = given.items()
    if number == "read":
        return requests.CompleteRead(answer=_final(read_answer, *answer), lookup=lookup)
    if lookup is not None:
        message = "only a read is followed by a look-up"
        raise MalformedInputError(message, "lookup")
    if name == "dlq":
        return requests.CompleteDeadLetter(number=int(number), answer=_final(dead_letter_answer, *answer))
    return requests.CompleteWrite(write=int(number), answer=_final(write_answer, *answer))


def _final(check: Check[GivenAnswer[M]], value: Json, path: str) -> GivenAnswer[M]:
    answer = check(value, path)
    return refuse("an answer other than hold", value, path) if isinstance(answer.meaning, Held) else answer


# ---- requests


@frozen
class Operation:
    """An operation: the fields of its request, besides those of every request."""

    make: Callable[..., requests.Command]
    """The class of its command, or a function that returns one."""

    fields: Mapping[str, Field]
    """The fields, by name."""


def _operation(make: Callable[..., requests.Command], **fields: Field) -> Operation:
    return Operation(make, MappingProxyType(fields))


_member: Final = Field(name)

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        "open": _operation(
            requests.Open,
            leader_epoch=Field(_int32, default=0),
            config=Field(opened_config, default=MappingProxyType({})),
            lifecycle=Field(_value_of(Lifecycle), default=Lifecycle.EMPTY),
            timer=Field(word("fifo", "mock"), default="fifo"),
        ),
        "initialize": _operation(
            requests.Initialize,
            answer=Field(read_answer, default=NOTHING_PERSISTED),
            lookup=Field(lookup_table, default=NO_TABLE),
        ),
        "acquire": _operation(
            _acquire,
            member=_member,
            mode=Field(_value_of(AcquireMode), default=AcquireMode.BATCH_OPTIMIZED),
            batch_size=Field(_int32),
            max_records=Field(_int32),
            fetch_offset=Field(_offset),
            batches=Field(list_of(_checked_log_batch)),
            aborted=Field(nullable(list_of(row(_int64, _offset, make=AbortedTransaction))), default=None),
            isolation=Field(one_of(_ISOLATIONS), default=IsolationLevel.READ_UNCOMMITTED),
        ),
        "acknowledge": _operation(
            requests.Acknowledge,
            member=_member,
            batches=Field(list_of(row(_int64, _int64, list_of(_int64), make=AcknowledgementBatch))),
        ),
        "release": _operation(requests.Release, member=_member),
        "next_fetch_offset": _operation(requests.NextFetchOffset),
        "can_acquire": _operation(requests.CanAcquire),
        "log_start": _operation(requests.LogStart, offset=Field(_offset)),
        "lock_fetch": _operation(requests.LockFetch, id=Field(_uuid)),
        "unlock_fetch": _operation(requests.UnlockFetch, id=Field(_uuid)),
        "fence": _operation(requests.Fence),
        "configure": _operation(requests.Configure, config=Field(nullable(group_config))),
        "advance": _operation(
            requests.Advance,
            ms=Field(_offset),
            clock=Field(word("both", "timer", "time"), default="both"),
        ),
        "fire_lock": _operation(requests.ExpireLock, first=Field(_offset), last=Field(_offset)),
        "complete": _operation(
            _complete,
            write=Field(_held, default=None),
            dlq=Field(_offset, default=None),
            answer=Field(lambda value, path: (value, path)),
            lookup=Field(lookup_table, default=None),
        ),
        "default_answer": _operation(requests.DefaultAnswer, answer=Field(_brief(write_answer))),
        "default_dlq_answer": _operation(requests.DefaultDeadLetterAnswer, answer=Field(_brief(dead_letter_answer))),
        "lookup": _operation(requests.Lookup, lookup=Field(lookup_table)),
        "timers": _operation(requests.Timers),
        "state": _operation(requests.State),
    }
)

"""The operations of the protocol."""

ENVELOPE: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "op": Field(one_of({op: op for op in OPERATIONS})),
        "key": Field(name, default=""),
        "answers": Field(list_of(write_answer), default=()),
        "dlq_answers": Field(list_of(dead_letter_answer), default=()),
        "quiet": Field(boolean, default=False),
    }
)
"""The fields of every request."""


def _request_of(operation: Operation) -> Check[requests.RequestLine]:
    """Return the check for a whole request of *operation*."""

    def make(*, op: str, key: str, answers: Any, quiet: bool, **fields: Any) -> requests.RequestLine:  # noqa: ANN401 - of different types
        letters = fields.pop("dlq_answers")
        return requests.RequestLine(
            command=operation.make(**fields),
            op=op,
            key=key,
            answers=answers,
            dead_letter_answers=letters,
            quiet=quiet,
        )

    return record({**ENVELOPE, **operation.fields}, make)


_REQUESTS: Final = MappingProxyType({op: _request_of(operation) for op, operation in OPERATIONS.items()})


def read_request(value: Json) -> requests.RequestLine:
    """
    Return the request of *value*, the JSON of one line.

    Raises:
        MalformedInputError: It is not a request; ``field`` is the path of the wrong part.
    """
    return _REQUESTS[member(an_object(value, ""), "op", ENVELOPE["op"], "")](value, "")
