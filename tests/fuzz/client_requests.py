"""Requests of clients: each API that the test broker announces, in every version, with something in each field."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema

from sharestate.broker.server.api_versions import is_served, served_versions
from sharestate.broker.server.apis import HANDLERS
from sharestate.errors import RequestFormatError
from sharestate.persister.kafka.frames import FrameBuffer, read_request, read_request_header, request_frame

SERVED: Final = served_versions("4.4", HANDLERS)

_VALUES: Final = {
    "string": "ab",
    "bytes": b"abc",
    "records": b"abcd",
    "bool": True,
    "uuid": UUID(int=2**70 + 5),
    "timedelta_i32": timedelta(milliseconds=300),
    "timedelta_i64": timedelta(milliseconds=300),
    "datetime_i64": datetime(2026, 11, 24, tzinfo=UTC),
}


def samples() -> list[bytes]:
    """Return a frame without its size for each version of each API."""
    return [
        request_frame(_filled(load_request_schema(key, version)), 7, "me")[4:]
        for key, (lowest, highest) in SERVED.items()
        for version in range(lowest, highest + 1)
        if is_served(SERVED[key], key, version)
    ]


def read(data: bytes) -> None:
    """
    Read a request of a version that is announced.

    Raises:
        RequestFormatError: It is none.
    """
    with suppress(RequestFormatError):
        list(FrameBuffer(2**20, RequestFormatError, "request").frames(data))
    key, version, _ = read_request_header(data)
    if key not in SERVED or not is_served(SERVED[key], key, version):
        message = "a version that is not announced"
        raise RequestFormatError(message, "request", 0)
    read_request(load_request_schema(key, version), data)


def _filled(schema: Any) -> Any:  # noqa: ANN401 - a class of kio
    return schema(**{field.name: _value(field) for field in fields(schema) if "tag" not in field.metadata})


def _value(field: Any) -> Any:  # noqa: ANN401 - of dataclasses
    kind = field.type
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    is_array = get_origin(kind) is tuple
    item = get_args(kind)[0] if is_array else kind
    kafka_type = field.metadata.get("kafka_type")
    value = _filled(item) if kafka_type is None else _VALUES.get(kafka_type, 1)
    return (value, value) if is_array else value
