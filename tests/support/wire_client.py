"""A client that sends what it is told: requests of any API in any version, and bytes that are none."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import timedelta
from types import NoneType, TracebackType, UnionType
from typing import Any, Final, Self, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader

from sharestate.coordinator.wire import topic_id_bytes, topic_id_text
from sharestate.persister.kafka.frames import FrameBuffer, request_frame

PATIENCE_S: Final = 10
"""How long an answer may take on a machine that has much else to do. [s]"""

CLIENT_ID: Final = "wire"


class WireClient:
    """A connection to a broker on loopback."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        """Connect."""
        self._socket = socket.create_connection(("127.0.0.1", port), patience_s)
        self._buffer = FrameBuffer()
        self._correlation_id = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.close()

    def ask(self, key: int, version: int, /, **values: Any) -> Any:  # noqa: ANN401 - whatever the schema has
        """Send a request and return its response, an instance of kio's class."""
        self.request(key, version, **values)
        return self.response(key, version)

    def request(self, key: int, version: int, /, **values: Any) -> None:  # noqa: ANN401 - as above
        """Send a request."""
        self._correlation_id += 1
        request = entity(load_request_schema(key, version), values)
        self.send(request_frame(request, self._correlation_id, CLIENT_ID))

    def response(self, key: int, version: int) -> Any:  # noqa: ANN401 - as above
        """Return the next response, of an API and a version, by kio's own reader."""
        schema = load_response_schema(key, version)
        frame = self.frame()
        header, at = entity_reader(schema.__header_schema__)(frame, 0)
        assert header.correlation_id == self._correlation_id
        response, size = entity_reader(schema)(frame, at)
        assert at + size == len(frame)
        return response

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def frame(self) -> bytes:
        """
        Return the next frame.

        Raises:
            ConnectionError: The broker has hung up.
        """
        while (frame := self._buffer.next_frame()) is None:
            data = self._socket.recv(2**16)
            if not data:
                message = "the broker has closed the connection"
                raise ConnectionError(message)
            self._buffer.append(data)
        return frame

    def is_closed(self) -> bool:
        """Return whether the broker hangs up, within the patience of a test."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def entity(schema: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a class of kio
    """Return an instance of kio's *schema*; what *values* have not has kio's default, or is nothing: 0, empty, null."""
    unknown = values.keys() - {field.name for field in fields(schema)}
    assert not unknown, f"{schema.__name__} has no {unknown}"
    return schema(**{field.name: _value(field, values) for field in fields(schema)})


def uuid_of(topic_id: str) -> UUID:
    """Return the UUID that Kafka prints as *topic_id*."""
    return UUID(bytes=topic_id_bytes(topic_id))


def id_of(uuid: UUID) -> str:
    """Return a UUID as Kafka prints it."""
    return topic_id_text(uuid.bytes)


_NOTHING: Final[Mapping[str | None, Any]] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "uuid": None,
    "timedelta_i32": timedelta(),
}


def _value(field: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of dataclasses
    kind = field.type
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    is_array = get_origin(kind) is tuple
    item = get_args(kind)[0] if is_array else kind
    is_entity = "kafka_type" not in field.metadata
    if field.name not in values:
        if field.default is not MISSING:
            return field.default
        return () if is_array else entity(item, {}) if is_entity else _NOTHING.get(field.metadata["kafka_type"], 0)
    value = values[field.name]
    if value is None or not (is_array or is_entity):
        return value
    if not is_entity:
        return tuple(value)
    return tuple(entity(item, each) for each in value) if is_array else entity(item, value)
