"""Requests of clients: each API that the test broker announces, in every version, with something in each field."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema

from sharestate.broker.server.api_versions import is_served, served_versions
from sharestate.broker.server.apis import HANDLERS
from sharestate.errors import RequestFormatError
from sharestate.persister.kafka.frames import (
    Fields,
    FrameBuffer,
    RequestHeader,
    read_request,
    read_request_header,
    request_frame,
)

SERVED: Final = served_versions("4.4", HANDLERS)

NAME: Final = "ab"
"""Of topics, groups, members, and whatever else has one."""

TOPIC_ID: Final = UUID(int=2**70 + 5)

_VALUES: Final = {
    "string": NAME,
    "bytes": b"abc",
    "records": b"abcd",
    "bool": True,
    "uuid": TOPIC_ID,
    "timedelta_i32": timedelta(milliseconds=300),
    "timedelta_i64": timedelta(milliseconds=300),
    "datetime_i64": datetime(2026, 11, 24, tzinfo=UTC),
}


def samples(number: int = 1, others: Mapping[str, Any] = MappingProxyType({})) -> list[bytes]:
    """
    Return a frame without its size for each version of each API.

    Args:
        number: What fields have that are numbers.
        others: What fields of other types have, by the names of Kafka's types.
    """
    values = {**_VALUES, **others}
    return [
        request_frame(_filled(load_request_schema(key, version), number, values), 7, "me")[4:]
        for key, (lowest, highest) in SERVED.items()
        for version in range(lowest, highest + 1)
        if is_served(SERVED[key], key, version)
    ]


def read(data: bytes) -> None:
    """
    Read a request of a version that is announced, and bytes of which some frame may be made.

    Raises:
        RequestFormatError: It is none.
    """
    with suppress(RequestFormatError):
        list(FrameBuffer(2**20, RequestFormatError, "request").frames(data))
    read_served(data)


def read_served(data: bytes) -> tuple[RequestHeader, Fields]:
    """
    Return a request of a version that is announced, with its header.

    Raises:
        RequestFormatError: It is none.
    """
    header = read_request_header(data)
    key, version, _ = header
    if key not in SERVED or not is_served(SERVED[key], key, version):
        message = "a version that is not announced"
        raise RequestFormatError(message, "request", 0)
    return header, read_request(load_request_schema(key, version), data)[1]


def _filled(schema: Any, number: int, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a class of kio
    named = {field.name: _value(field, number, values) for field in fields(schema) if "tag" not in field.metadata}
    return schema(**named)


def _value(field: Any, number: int, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of dataclasses
    kind = field.type
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    is_array = get_origin(kind) is tuple
    item = get_args(kind)[0] if is_array else kind
    kafka_type = field.metadata.get("kafka_type")
    value = _filled(item, number, values) if kafka_type is None else values.get(kafka_type, number)
    return (value, value) if is_array else value
