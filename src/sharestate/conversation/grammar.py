"""The grammar of requests: for each ``op``, which members it has and what they have to be."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from sharestate.conversation import requests
from sharestate.conversation.answers import NOTHING_PERSISTED, read_answer, write_answer
from sharestate.conversation.configs import group_config, opened_config
from sharestate.conversation.lookups import NO_TABLE, lookup_table
from sharestate.conversation.meanings import Answer, Held
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
from sharestate.json_lines import Json
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import (
    NO_PRODUCER_ID,
    AbortedTransaction,
    AcquireMode,
    ControlType,
    FetchedRecords,
    IsolationLevel,
    RecordBatch,
)

E = TypeVar("E", bound=Enum)
M = TypeVar("M")

_int32: Final = integer(-(2**31), 2**31 - 1)
_int64: Final = integer()
_offset: Final = integer(0, MAX_INT64)


def _word(*words: str) -> Check[str]:
    """Return the check for one of *words*."""
    return one_of({word: word for word in words})


def _value_of(enumeration: type[E]) -> Check[E]:
    """Return the check for a member of *enumeration*, which stands in JSON with its value."""
    return one_of({each.value: each for each in enumeration})


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
    """Take a UUID in base64, with or without padding, and return it as Kafka prints it."""
    given = text(value, path).rstrip("=")
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16:  # noqa: PLR2004 - a UUID has 16 bytes
        refuse("a UUID in base64", value, path)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _settled(check: Check[Answer[M]]) -> Check[Answer[M]]:
    """Return *check* for an answer that may not be held back any longer."""

    def check_settled(value: Json, path: str) -> Answer[M]:
        answer = check(value, path)
        return refuse("an answer that settles it", value, path) if isinstance(answer.meaning, Held) else answer

    return check_settled


_complete_read: Final = record(
    {"answer": Field(_settled(read_answer)), "lookup": Field(lookup_table, default=None)}, requests.CompleteRead
)
_complete_write: Final = record(
    {"write": Field(_offset), "answer": Field(_settled(write_answer))}, requests.CompleteWrite
)


def _complete(value: Json, path: str) -> requests.Command:
    return (_complete_read if value.get("write") == "read" else _complete_write)(value, path)


def _command(make: Callable[..., requests.Command], **fields: Field) -> Check[requests.Command]:
    return record(fields, make)


_member: Final = Field(text)

_COMMANDS: Final[Mapping[str, Check[requests.Command]]] = MappingProxyType(
    {
        "open": _command(
            requests.Open,
            leader_epoch=Field(_int32, default=0),
            config=Field(opened_config, default=MappingProxyType({})),
            lifecycle=Field(_value_of(Lifecycle), default=Lifecycle.EMPTY),
            timer=Field(_word("fifo", "mock"), default="fifo"),
        ),
        "initialize": _command(
            requests.Initialize,
            answer=Field(read_answer, default=NOTHING_PERSISTED),
            lookup=Field(lookup_table, default=NO_TABLE),
        ),
        "acquire": _command(
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
        "acknowledge": _command(
            requests.Acknowledge,
            member=_member,
            batches=Field(list_of(row(_int64, _int64, list_of(_int64), make=AcknowledgementBatch))),
        ),
        "release": _command(requests.Release, member=_member),
        "next_fetch_offset": _command(requests.NextFetchOffset),
        "can_acquire": _command(requests.CanAcquire),
        "log_start": _command(requests.LogStart, offset=Field(_offset)),
        "lock_fetch": _command(requests.LockFetch, id=Field(_uuid)),
        "unlock_fetch": _command(requests.UnlockFetch, id=Field(_uuid)),
        "fence": _command(requests.Fence),
        "configure": _command(requests.Configure, config=Field(nullable(group_config))),
        "advance": _command(
            requests.Advance,
            ms=Field(_offset),
            clock=Field(_word("both", "timer", "time"), default="both"),
        ),
        "fire_lock": _command(requests.FireLock, first=Field(_offset), last=Field(_offset)),
        "complete": _complete,
        "default_answer": _command(requests.DefaultAnswer, answer=Field(write_answer)),
        "lookup": _command(requests.Lookup, lookup=Field(lookup_table)),
        "timers": _command(requests.Timers),
        "state": _command(requests.State),
    }
)

_OP: Final = Field(one_of({op: op for op in _COMMANDS}))
_KEY: Final = Field(text, default="")
_ANSWERS: Final = Field(list_of(write_answer), default=())
_QUIET: Final = Field(boolean, default=False)


def read_request(value: Json) -> requests.Request:
    """
    Return the request that *value*, one line's JSON, stands for.

    Raises:
        MalformedInputError: It is none; ``field`` is the path of the part that is wrong.
    """
    members = an_object(value, "")
    op = member(members, "op", _OP, "")
    return requests.Request(
        op=op,
        key=member(members, "key", _KEY, ""),
        answers=member(members, "answers", _ANSWERS, ""),
        quiet=member(members, "quiet", _QUIET, ""),
        command=_COMMANDS[op](members, ""),
    )
