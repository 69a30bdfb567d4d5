"""The grammar of requests to share sessions: the fields of each ``op``, their types and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sharestate.broker.sessions import FetchedPartition, TopicIdPartition
from sharestate.conversation.grammar import name
from sharestate.conversation.operations import OperationRequest, request_check
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError
from sharestate.json_checks import (
    Field,
    boolean,
    integer,
    list_of,
    nullable,
    one_of,
    refuse,
    row,
    text,
)
from sharestate.json_lines import Json

DEFAULT_MAX_SESSIONS: Final = 100
"""The limit of sessions of an ``open`` that gives none (SessionDriver). [sessions]"""

RECORDS_SIZE: Final = 69
"""The size of the records that a partition of the protocol has: a batch with one record of one byte. [bytes]"""

_int32: Final = integer(-(2**31), 2**31 - 1)
_count: Final = integer(0, 2**31 - 1)


def _epoch(value: Json, path: str) -> int:
    """Check an epoch, of which the low 32 bits count: a recording of Kafka's driver has 2^31."""
    return (integer()(value, path) + 2**31) % 2**32 - 2**31


def _topic(value: Json, path: str) -> str:
    """Check the id of a topic."""
    topic = text(value, path)
    try:
        topic_id_bytes(topic)
    except MalformedInputError:
        refuse("a UUID in 22 characters of URL-safe base64", value, path)
    return topic


_partition: Final = row(_topic, _int32, nullable(name), make=TopicIdPartition, required=2)


def _records_size(value: Json, path: str) -> int:
    """Check whether a partition has records, and return their size."""
    return RECORDS_SIZE if boolean(value, path) else 0


def _found(
    topic: str, partition: int, name: str | None = None, records_size: int = 0, code: ErrorCode = ErrorCode.NONE
) -> tuple[TopicIdPartition, FetchedPartition]:
    return TopicIdPartition(topic, partition, name), FetchedPartition(records_size, code)


_code: Final = one_of({code.name: code for code in ErrorCode})
_data: Final = list_of(row(_topic, _int32, nullable(name), _records_size, _code, make=_found, required=2))

_PARTITIONS: Final = Field(list_of(_partition), default=())
_MEMBER: Final = MappingProxyType({"group": Field(name, default=""), "member": Field(name, default="")})
_EPOCH: Final = Field(_epoch, default=0)
_CONTEXT: Final = Field(_count, default=0)
_RESPONSE: Final = MappingProxyType({"context": _CONTEXT, **_MEMBER, "data": Field(_data, default=())})

OPERATIONS: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "open": {"max_sessions": Field(integer(1, 2**31 - 1), default=DEFAULT_MAX_SESSIONS)},
        "fetch": {
            **_MEMBER,
            "epoch": _EPOCH,
            "partitions": _PARTITIONS,
            "forget": _PARTITIONS,
            "acks": Field(boolean, default=False),
            "connection": Field(name, default="c"),
        },
        "respond": _RESPONSE,
        "size": _RESPONSE,
        "throttle": {"context": _CONTEXT, **_MEMBER, "ms": Field(_count, default=0)},
        "acknowledge": {**_MEMBER, "epoch": _EPOCH},
        "release": _MEMBER,
        "disconnect": {"connection": Field(name, default="")},
        "jump": {**_MEMBER, "epoch": _EPOCH},
        "disable": {},
        "state": {},
    }
)
"""The fields of each operation, besides those of every request."""

_check_request: Final = request_check(OPERATIONS)


def read_request(value: Json) -> OperationRequest:
    """
    Return the request that *value*, the JSON of a line, stands for.

    Raises:
        MalformedInputError: It is not a valid request; ``field`` is the path of the wrong part.
    """
    return _check_request(value, "")
