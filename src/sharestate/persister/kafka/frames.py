"""
Frames of Kafka's protocol: four bytes with the size, a header, a request or a response.

The schemas and the writer are kio's. The reader is our own and goes by the same schemas: kio 0.6.5 reserves memory for
whatever number of items an array says it has, and ends the process if there is not enough.

Source:
    https://kafka.apache.org/protocol (Kafka 4.4.0); the types of fields are those of kio's schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from io import BytesIO
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception under its builtin's kind of name
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias, get_args, get_origin

from kio.serial import entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from sharestate.coordinator.wire import INT16, INT32, Reader
from sharestate.errors import FormatError, ResponseFormatError
from sharestate.values.checks import refuse

Fields: TypeAlias = dict[str, Any]
"""A response, or a part of one: numbers, texts, bytes and lists of parts, by the names of kio's schemas."""

MAX_FRAME_BYTES: Final = 104_857_600
"""The size of the largest response that is read: what brokers read (``socket.request.max.bytes``). [bytes]"""


# ---- requests


def request_frame(request: RequestPayload, correlation_id: int, client_id: str) -> bytes:
    """
    Return *request* as a frame.

    Raises:
        MalformedInputError: A field does not fit its place on the wire.
    """
    schema = type(request)
    header = schema.__header_schema__(
        request_api_key=schema.__api_key__,
        request_api_version=i16(schema.__version__),
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    buffer = BytesIO()
    try:
        entity_writer(type(header))(buffer, header)
        entity_writer(schema)(buffer, request)
    except (StructError, UnicodeEncodeError) as error:
        refuse(f"expected what fits into a {schema.__name__}: {error}", "request")
    return INT32.pack(buffer.tell()) + buffer.getvalue()


# ---- responses


class FrameBuffer:
    """The bytes of a connection that are no whole frame yet."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        """Make an empty one for frames of at most *max_bytes*."""
        self._data = bytearray()
        self._max_bytes = max_bytes

    def frames(self, data: bytes) -> Iterator[bytes]:
        """
        Yield the frames that *data* completes, without their sizes.

        Raises:
            ResponseFormatError: A frame is too large, or of a negative size.
        """
        self._data += data
        while len(self._data) >= INT32.size:
            (size,) = INT32.unpack_from(self._data)
            if not 0 <= size <= self._max_bytes:
                message = f"a frame of {size} bytes; at most {self._max_bytes} are read"
                raise ResponseFormatError(message, "response", 0)
            end = INT32.size + size
            if len(self._data) < end:
                return
            frame = bytes(self._data[INT32.size : end])
            del self._data[:end]
            yield frame


def read_response(schema: type[ResponsePayload], frame: bytes, correlation_id: int) -> Fields:
    """
    Return the response in *frame*, the answer to the request *correlation_id*.

    Fields with a tag are skipped: none that we need has one.

    Raises:
        ResponseFormatError: It is no such response.
    """
    reader = _FrameReader(frame, schema.__name__)
    header = _read(schema.__header_schema__, reader)
    if header["correlation_id"] != correlation_id:
        reader.refuse(f"the answer to request {header['correlation_id']}, not to {correlation_id}", at=0)
    response = _read(schema, reader)
    reader.end()
    return response


class _FrameReader(Reader):
    """Reads a response: the reader of records, with the types that records lack."""

    def refuse(self, message: str, _kind: type[FormatError] = ResponseFormatError, *, at: int) -> NoReturn:
        raise ResponseFormatError(message, self._part, at)

    def compact_size(self, what: str) -> int | None:
        size = self.varint(f"the length of {what}")
        return size - 1 if size else None

    def legacy_size(self, what: str) -> int | None:
        (size,) = self.numbers(INT16, f"the length of {what}")
        return None if size < 0 else size

    def legacy_size_of_array(self, what: str) -> int:
        at = self.offset
        (size,) = self.numbers(INT32, f"the length of {what}")
        if not 0 <= size <= self.left:
            self.refuse(f"{size} {what} take {size} bytes or more, but {self.left} are left", at=at)
        return size

    def decoded(self, size: int | None, what: str) -> str | None:
        if size is None:
            return None
        at = self.offset
        try:
            return self.take(size, what).decode()
        except UnicodeDecodeError as error:
            self.refuse(f"{what} is not UTF-8", at=at + error.start)


_Read: TypeAlias = Callable[[_FrameReader, str], Any]

_NUMBERS: Final[Mapping[str, Struct]] = MappingProxyType(
    {
        "int8": Struct(">b"),
        "int16": INT16,
        "int32": INT32,
        "int64": Struct(">q"),
        "error_code": INT16,  # a number: kio's enumeration lacks the codes of later releases
        "timedelta_i32": INT32,
        "timedelta_i64": Struct(">q"),
    }
)
"""The fields of fixed size; durations are numbers of milliseconds."""


def _read(schema: Any, reader: _FrameReader) -> Fields:  # noqa: ANN401 - a class of kio
    entity = {name: read(reader, name) for name, read in _readers(schema)}
    if schema.__flexible__:
        reader.tagged_fields(schema.__name__)
    return entity


@cache
def _readers(schema: Any) -> tuple[tuple[str, _Read], ...]:  # noqa: ANN401 - a class of kio
    """Return the name of each field of *schema*, and what reads it."""
    return tuple(
        (field.name, _reader(field.type, field.metadata.get("kafka_type"), is_flexible=schema.__flexible__))
        for field in fields(schema)
        if "tag" not in field.metadata
    )


def _reader(annotation: Any, kafka_type: str | None, *, is_flexible: bool) -> _Read:  # noqa: ANN401 - of any type
    if get_origin(annotation) is tuple:
        item = get_args(annotation)[0]
        return _array(_reader(item, kafka_type, is_flexible=is_flexible), is_flexible=is_flexible)
    if kafka_type is None:
        return lambda reader, _: _read(annotation, reader)
    if kafka_type in _NUMBERS:
        struct = _NUMBERS[kafka_type]
        return lambda reader, name: reader.numbers(struct, name)[0]
    return (_FLEXIBLE if is_flexible else _LEGACY)[kafka_type]


def _array(item: _Read, *, is_flexible: bool) -> _Read:
    def read(reader: _FrameReader, name: str) -> list[Any]:
        size = reader.size_of_array(1, name) if is_flexible else reader.legacy_size_of_array(name)
        return [item(reader, name) for _ in range(size)]

    return read


def _bytes(reader: _FrameReader, name: str) -> bytes:
    return reader.take(reader.compact_size(name) or 0, name)


_FLEXIBLE: Final[Mapping[str, _Read]] = MappingProxyType(
    {
        "string": lambda reader, name: reader.decoded(reader.compact_size(name), name),
        "bytes": _bytes,
        "uuid": lambda reader, name: reader.take(16, name),
    }
)
_LEGACY: Final[Mapping[str, _Read]] = MappingProxyType(
    {"string": lambda reader, name: reader.decoded(reader.legacy_size(name), name)}
)
