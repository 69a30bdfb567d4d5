"""
Frames of Kafka's protocol: four bytes with the size, a header, a request or a response; of clients and of brokers.

The schemas and the writer are kio's. The reader is our own and goes by the same schemas: kio 0.6.5 reserves memory for
whatever number of items an array says it has, and ends the process if there is not enough.

Source:
    https://kafka.apache.org/protocol (Kafka 4.4.0); the types of fields are those of kio's schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from io import BytesIO
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception under its builtin's kind of name
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, TypeVar, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer
from kio.serial.errors import OutOfBoundValue
from kio.static.primitive import i16, i32
from kio.static.protocol import Header, Payload, RequestPayload, ResponsePayload

from sharestate.coordinator.wire import INT16, INT32, Reader, topic_id_bytes, topic_id_text
from sharestate.errors import FormatError, RequestFormatError, ResponseFormatError
from sharestate.values.checks import refuse

T = TypeVar("T")

Fields: TypeAlias = dict[str, Any]
"""
What was read of a request or a response, or of a part of one, by the names of kio's schemas: numbers, texts, bytes,
lists and parts. Ids are texts as Kafka prints them, durations and times are numbers of milliseconds.
"""

MAX_FRAME_BYTES: Final = 104_857_600
"""The size of the largest response that is read: what brokers read (``socket.request.max.bytes``). [bytes]"""

MAX_ITEMS: Final = 1_000_000
"""
The most items that the arrays of a request or a response may have in all. An item of one byte may take some hundred
here, so this is what keeps a frame of a hundred megabytes from taking gigabytes.
"""

MAX_TEXT_BYTES: Final = 2**15 - 1
"""
The longest text that Kafka reads, whatever its length takes on the wire: "string field name had invalid length"
(MessageDataGenerator, Kafka 4.4.0). [bytes]
"""

UUID_BYTES: Final = 16
"""The size of a UUID. [bytes]"""


# ---- frames


class FrameBuffer:
    """
    The bytes of a connection that are no whole frame yet.

    Args:
        max_bytes: The size of the largest frame. [bytes]
        kind: The error for a frame of another size.
        part: What frames are, for that error.
    """

    def __init__(
        self,
        max_bytes: int = MAX_FRAME_BYTES,
        kind: type[FormatError] = ResponseFormatError,
        part: str = "response",
    ) -> None:
        """Make an empty one."""
        self._data = bytearray()
        self._max_bytes = max_bytes
        self._kind = kind
        self._part = part

    def __len__(self) -> int:
        """Return how many bytes it has. [bytes]"""
        return len(self._data)

    def append(self, data: bytes) -> None:
        """Take bytes that have arrived."""
        self._data += data

    def next_frame(self) -> bytes | None:
        """
        Return the next whole frame without its size, and forget it; None if there is none.

        Raises:
            FormatError: It is too large, or of a negative size; of the buffer's kind.
        """
        if len(self._data) < INT32.size:
            return None
        (size,) = INT32.unpack_from(self._data)
        if not 0 <= size <= self._max_bytes:
            message = f"a frame of {size} bytes; at most {self._max_bytes} are read"
            raise self._kind(message, self._part, 0)
        end = INT32.size + size
        if len(self._data) < end:
            return None
        frame = bytes(self._data[INT32.size : end])
        del self._data[:end]
        return frame

    def frames(self, data: bytes) -> Iterator[bytes]:
        """
        Yield the frames that *data* completes, without their sizes.

        Raises:
            FormatError: As ``next_frame``.
        """
        self.append(data)
        while (frame := self.next_frame()) is not None:
            yield frame


# ---- writing


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
    return _frame(header, request, "request")


def response_frame(schema: type[ResponsePayload], correlation_id: int, response: Mapping[str, Any]) -> bytes:
    """
    Return *response*, the answer to the request *correlation_id*, as a frame.

    Args:
        schema: The schema of the version in which the client has asked.
        correlation_id: The number of the request.
        response: Numbers, texts, bytes, and mappings and sequences of those, by the names of kio's schemas. What the
            schema has and *response* has not gets Kafka's default; what only other versions have is left out. Ids are
            texts as Kafka prints them, None for none; error codes and durations [ms] are numbers, and so are times
            [ms since 1970; None for none].

    Raises:
        MalformedInputError: A field does not fit its place on the wire.
    """
    header = schema.__header_schema__(correlation_id=i32(correlation_id))
    return _frame(header, _entity(schema, response), "response")


def _frame(header: Header, payload: Payload, part: str) -> bytes:
    buffer = BytesIO()
    try:
        entity_writer(type(header))(buffer, header)
        entity_writer(type(payload))(buffer, payload)
    except (StructError, UnicodeEncodeError, OutOfBoundValue) as error:
        refuse(f"expected what fits into a {type(payload).__name__}: {error}", part)
    return INT32.pack(buffer.tell()) + buffer.getvalue()


_Convert: TypeAlias = Callable[[Any], Any]


class _Part(NamedTuple):
    """How a field of an entity is made: what converts its value, and what it is without one."""

    name: str
    convert: _Convert
    default: Any


def _entity(schema: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a class of kio
    parts = _parts(schema)
    return schema(**{name: convert(values[name]) if name in values else default for name, convert, default in parts})


@cache
def _parts(schema: Any) -> tuple[_Part, ...]:  # noqa: ANN401 - a class of kio
    return tuple(_part(field.name, _Kind.of(field), field.default) for field in fields(schema))


def _part(name: str, kind: _Kind, default: object) -> _Part:
    convert, implied = _CONVERSIONS.get(kind.kafka_type or "", (_same, 0))
    if kind.kafka_type is None:
        convert, implied = partial(_entity, kind.type), None
        if not kind.is_array and not kind.is_nullable and default is MISSING:
            implied = _entity(kind.type, {})
    item = convert
    if kind.is_array:
        convert, implied = lambda values: tuple(map(item, values)), ()
    if kind.is_nullable:
        of_value = convert
        convert = lambda value: None if value is None else of_value(value)  # noqa: E731 - as above
    return _Part(name, convert, implied if default is MISSING else default)


def _same(value: object) -> object:
    return value


def _duration(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _uuid(topic_id: str | None) -> UUID | None:
    return None if topic_id is None else UUID(bytes=topic_id_bytes(topic_id))


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_CONVERSIONS: Final[Mapping[str, tuple[_Convert, Any]]] = MappingProxyType(
    {
        "bool": (_same, False),
        "bytes": (_same, b""),
        "datetime_i64": (_time, _EPOCH),
        "error_code": (KioErrorCode, KioErrorCode.none),
        "records": (_same, b""),
        "string": (_same, ""),
        "timedelta_i32": (_duration, timedelta()),
        "timedelta_i64": (_duration, timedelta()),
        "uuid": (_uuid, None),
    }
)
"""What makes kio's value of a field of each type, and that of a field that is not there; numbers stay, and are 0."""


# ---- reading


def read_response(schema: type[ResponsePayload], frame: bytes, correlation_id: int) -> Fields:
    """
    Return the response in *frame*, the answer to the request *correlation_id*.

    Fields with a tag are skipped: none that we need has one.

    Raises:
        ResponseFormatError: It is no such response.
    """
    reader = _FrameReader(frame, schema.__name__, ResponseFormatError)
    header = _read(schema.__header_schema__, reader)
    if header["correlation_id"] != correlation_id:
        reader.refuse(f"the answer to request {header['correlation_id']}, not to {correlation_id}", at=0)
    response = _read(schema, reader)
    reader.end()
    return response


def read_lenient_response(schema: type[T], frame: bytes, correlation_id: int) -> T:
    """
    Return the response in *frame* as *schema* has it, of a broker that need not keep to the schema in all.

    Where something is null that may not be, it is empty. What follows the end is ignored, and so are fields with a tag.

    Raises:
        ResponseFormatError: It is no such response.
    """
    payload: Any = schema
    reader = _FrameReader(frame, schema.__name__, ResponseFormatError, is_lenient=True)
    header = _read(payload.__header_schema__, reader)
    if header["correlation_id"] != correlation_id:
        reader.refuse(f"the answer to request {header['correlation_id']}, not to {correlation_id}", at=0)
    try:
        response: T = _entity(payload, _read(payload, reader))
    except (OverflowError, ValueError) as error:  # such as the code of an error that came after kio
        raise ResponseFormatError(str(error), schema.__name__, 0) from error
    return response


class RequestHeader(NamedTuple):
    """
    What the header of a request has in all of its versions.

    Attributes:
        api_key: The API's key.
        version: The version of the request.
        correlation_id: The number of the request, with which its response begins.
    """

    api_key: int
    version: int
    correlation_id: int


_REQUEST_HEADER: Final = Struct(">hhi")


def read_request_header(frame: bytes) -> RequestHeader:
    """
    Return with what the request in *frame* begins.

    Raises:
        RequestFormatError: It ends before.
    """
    reader = _FrameReader(frame, "RequestHeader", RequestFormatError)
    return RequestHeader(*reader.numbers(_REQUEST_HEADER, "the header"))


def read_request(schema: type[RequestPayload], frame: bytes) -> tuple[str | None, Fields]:
    """
    Return the client id, and the request, in *frame*; its header says that it is one of *schema*.

    Fields with a tag are skipped: none that we need has one. Bytes behind its end are ignored, as brokers do.

    Raises:
        RequestFormatError: It is no such request.
    """
    reader = _FrameReader(frame, schema.__name__, RequestFormatError)
    reader.numbers(_REQUEST_HEADER, "the header")
    client_id = reader.decoded(reader.legacy_size(INT16, "client_id"), "client_id")  # in headers of all versions
    if schema.__header_schema__.__flexible__:
        reader.tagged_fields("RequestHeader")
    return client_id, _read(schema, reader)


class _FrameReader(Reader):
    """Reads a request or a response: the reader of records, with the types that records lack."""

    def __init__(self, data: bytes, part: str, kind: type[FormatError], *, is_lenient: bool = False) -> None:
        super().__init__(data, part)
        self._kind = kind
        self.is_lenient = is_lenient
        self._item_count = 0

    def refuse(self, message: str, _kind: type[FormatError] = FormatError, *, at: int) -> NoReturn:
        raise self._kind(message, self._part, at)

    def compact_size(self, what: str) -> int | None:
        size = self.varint("the length of {}", what)
        return size - 1 if size else None

    def legacy_size(self, struct: Struct, what: str) -> int | None:
        (size,) = self.numbers(struct, f"the length of {what}")
        return None if size < 0 else size

    def items(self, size: int, what: str) -> range:
        """Return what counts *size* items, of which each takes a byte at least, and much more here."""
        if size > self.left:
            self.refuse(f"{size} {what} take {size} bytes or more, but {self.left} are left", at=self.offset)
        self._item_count += size
        if self._item_count > MAX_ITEMS:
            self.refuse(f"more than {MAX_ITEMS} items in arrays", at=self.offset)
        return range(size)

    def decoded(self, size: int | None, what: str) -> str | None:
        if size is None:
            return None
        at = self.offset
        if size > MAX_TEXT_BYTES:
            self.refuse(f"{what} has {size} bytes; a text has {MAX_TEXT_BYTES} at most", at=at)
        try:
            return self.take(size, what).decode()
        except UnicodeDecodeError as error:
            self.refuse(f"{what} is not UTF-8", at=at + error.start)


_Read: TypeAlias = Callable[[_FrameReader, str], Any]

_NUMBERS: Final[Mapping[str, Struct]] = MappingProxyType(
    {
        "bool": Struct(">?"),
        "int8": Struct(">b"),
        "int16": INT16,
        "uint16": Struct(">H"),
        "int32": INT32,
        "int64": Struct(">q"),
        "float64": Struct(">d"),
        "error_code": INT16,  # a number: kio's enumeration lacks the codes of later releases
        "timedelta_i32": INT32,
        "timedelta_i64": Struct(">q"),
        "datetime_i64": Struct(">q"),
    }
)
"""The fields of fixed size; durations are numbers of milliseconds."""


class _Kind(NamedTuple):
    """
    The kind of a field.

    Attributes:
        type: The class of its value, or of the items of an array.
        kafka_type: The type's name in Kafka's schemas; None for an entity.
        is_array: Whether it is an array.
        is_nullable: Whether it may be null; of an array's items none may.
    """

    type: Any
    kafka_type: str | None
    is_array: bool
    is_nullable: bool

    @classmethod
    def of(cls, field: Field[Any]) -> _Kind:
        annotation: Any = field.type
        is_nullable = isinstance(annotation, UnionType)
        if is_nullable:
            (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
        is_array = get_origin(annotation) is tuple
        kind = get_args(annotation)[0] if is_array else annotation
        return cls(kind, field.metadata.get("kafka_type"), is_array, is_nullable)


def _read(schema: Any, reader: _FrameReader) -> Fields:  # noqa: ANN401 - a class of kio
    entity = {name: read(reader, name) for name, read in _readers(schema)}
    if schema.__flexible__:
        reader.tagged_fields(schema.__name__)
    return entity


@cache
def _readers(schema: Any) -> tuple[tuple[str, _Read], ...]:  # noqa: ANN401 - a class of kio
    """Return the name of each field of *schema*, and what reads it."""
    return tuple(
        (field.name, _reader(_Kind.of(field), is_flexible=schema.__flexible__))
        for field in fields(schema)
        if "tag" not in field.metadata
    )


def _reader(kind: _Kind, *, is_flexible: bool) -> _Read:
    if kind.is_array:
        item = _reader(kind._replace(is_array=False, is_nullable=False), is_flexible=is_flexible)
        return _array(item, is_flexible=is_flexible, is_nullable=kind.is_nullable)
    if kind.kafka_type is None:
        return partial(_read_entity, kind.type, kind.is_nullable)
    if kind.kafka_type in _NUMBERS:
        struct = _NUMBERS[kind.kafka_type]
        return lambda reader, name: reader.numbers(struct, name)[0]
    if kind.kafka_type == "uuid":
        return lambda reader, name: topic_id_text(reader.take(UUID_BYTES, name))
    sized = _FLEXIBLE_SIZE if is_flexible else _LEGACY_SIZES[kind.kafka_type]
    read_value = _VALUES[kind.kafka_type]

    def read(reader: _FrameReader, name: str) -> str | bytes | None:
        at = reader.offset
        size = sized(reader, name)
        if size is None and not kind.is_nullable:
            size = 0 if reader.is_lenient else reader.refuse(f"{name} must not be null", at=at)
        return read_value(reader, size, name)

    return read


def _read_entity(schema: Any, is_nullable: bool, reader: _FrameReader, name: str) -> Fields | None:  # noqa: ANN401, FBT001
    """Read an entity in another one, before which a byte says whether it is null if it may be."""
    if is_nullable and reader.numbers(_NUMBERS["int8"], name)[0] < 0:
        return None
    return _read(schema, reader)


def _array(item: _Read, *, is_flexible: bool, is_nullable: bool) -> _Read:
    sized = _FLEXIBLE_SIZE if is_flexible else _LEGACY_SIZES["array"]

    def read(reader: _FrameReader, name: str) -> list[Any] | None:
        at = reader.offset
        size = sized(reader, name)
        if size is None and is_nullable:
            return None
        if size is None:
            size = 0 if reader.is_lenient else reader.refuse(f"{name} must not be null", at=at)
        return [item(reader, name) for _ in reader.items(size, name)]

    return read


_FLEXIBLE_SIZE: Final = _FrameReader.compact_size
_LEGACY_SIZES: Final[Mapping[str, Callable[[_FrameReader, str], int | None]]] = MappingProxyType(
    {
        "array": lambda reader, name: reader.legacy_size(INT32, name),
        "bytes": lambda reader, name: reader.legacy_size(INT32, name),
        "records": lambda reader, name: reader.legacy_size(INT32, name),
        "string": lambda reader, name: reader.legacy_size(INT16, name),
    }
)
"""What reads the size of what has one; in flexible versions all sizes are alike."""


def _bytes(reader: _FrameReader, size: int | None, name: str) -> bytes | None:
    return None if size is None else reader.take(size, name)


_VALUES: Final[Mapping[str, Callable[[_FrameReader, int | None, str], str | bytes | None]]] = MappingProxyType(
    {"bytes": _bytes, "records": _bytes, "string": _FrameReader.decoded}
)
"""What reads a value after its size."""
