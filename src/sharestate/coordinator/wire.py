"""
The parts that Kafka's messages are made of, read from bytes and written to bytes.

Source:
    ByteBufferAccessor, ByteUtils, MessageUtil (Kafka 4.3.1).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception under its builtin's kind of name
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn
from uuid import UUID

from sharestate.errors import RecordFormatError
from sharestate.values.checks import brief_repr, expect, integer, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BITS: Final = {"b": 8, "h": 16, "i": 32, "q": 64}
_VARINT_BYTES: Final = 5
"""The bytes that 32 bits take, seven in each (``ByteUtils.readUnsignedVarint``)."""

_TOPIC_ID_BYTES: Final = 16
"""The size of a UUID."""

_MOST_TEXT_BYTES: Final = 2**15 - 1
"""The bytes of the longest text that a message may have (``MessageDataGenerator``). [bytes]"""

INT16: Final = Struct(">h")
INT32: Final = Struct(">i")


class Layout(NamedTuple):
    """
    Numbers of fixed size that follow each other, signed and big-endian.

    Attributes:
        struct: Their sizes.
        names: The name of each, as attributes of what has them.
    """

    struct: Struct
    names: tuple[str, ...]

    @classmethod
    def of(cls, sizes: str, *names: str) -> Layout:
        """Make the layout of numbers whose sizes are letters of the ``struct`` module."""
        return cls(Struct(f">{sizes}"), names)

    def pack(self, numbers: Sequence[int], where: str = "") -> bytes:
        """
        Return *numbers* as bytes; *where* goes before their names in errors.

        Raises:
            MalformedInputError: One has more bits than its place.
        """
        try:
            return self.struct.pack(*numbers)
        except StructError:
            self._refuse(numbers, where)

    def _refuse(self, numbers: Sequence[object], where: str) -> NoReturn:
        name, number, bound = next(
            (name, number, bound)
            for name, number, bound in zip(self.names, numbers, self._bounds(), strict=True)
            if not isinstance(number, int) or not -bound <= number < bound
        )
        refuse(f"expected an integer within {-bound}..{bound - 1}, got {brief_repr(number)}", f"{where}{name}")

    def _bounds(self) -> list[int]:
        return [2 ** (_BITS[size] - 1) for size in self.struct.format[1:]]


class Reader:
    """
    Reads bytes from their beginning to their end.

    Attributes:
        offset: The offset of the next byte. [bytes]
    """

    def __init__(self, data: bytes, part: str) -> None:
        """Read *data*, the *part* of a record that errors name."""
        self.offset = 0
        self._data = data
        self._part = part

    @property
    def left(self) -> int:
        """The number of bytes that are left. [bytes]"""
        return len(self._data) - self.offset

    def refuse(self, message: str, kind: type[RecordFormatError] = RecordFormatError, *, at: int) -> NoReturn:
        """Raise the error for what begins with byte *at*."""
        raise kind(message, self._part, at)

    def take(self, size: int, what: str, *of: object) -> bytes:
        """Return the next *size* bytes, which are *what*; in that text, *of* stands for braces."""
        end = self.offset + size
        if end > len(self._data):
            self.refuse(f"{what.format(*of)} takes {size} bytes, but {self.left} are left", at=self.offset)
        taken = self._data[self.offset : end]
        self.offset = end
        return taken

    def numbers(self, struct: Struct, what: str) -> tuple[int, ...]:
        """Return the next numbers."""
        begin, end = self.offset, self.offset + struct.size
        if end > len(self._data):
            self.take(struct.size, what)  # which says why not
        self.offset = end
        return struct.unpack_from(self._data, begin)

    def rows(self, struct: Struct, count: int) -> list[tuple[int, ...]]:
        """Return the next *count* rows of numbers, of which there must be so many, and stay before them."""
        return list(struct.iter_unpack(self._data[self.offset : self.offset + count * struct.size]))

    def varint(self, what: str, *of: object) -> int:
        """Return an unsigned number of at most 32 bits: seven in a byte, the lowest first; *what* as for ``take``."""
        begin = self.offset
        if begin < len(self._data) and (number := self._data[begin]) < 0x80:  # noqa: PLR2004 - nearly always; see below
            self.offset += 1
            return number
        number = 0
        for index in range(_VARINT_BYTES):
            (byte,) = self.take(1, what, *of)
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:  # noqa: PLR2004 - the highest bit says that another byte follows
                break
        else:
            self.refuse(f"{what.format(*of)} has more than {_VARINT_BYTES} bytes", at=begin)
        return number if number < 2**32 else self.refuse(f"{what.format(*of)} has more than 32 bits", at=begin)

    def text(self, what: str) -> str:
        """Return a string: its length in two bytes, then UTF-8."""
        begin = self.offset
        (size,) = self.numbers(INT16, f"the length of {what}")
        if size < 0:
            self.refuse(f"{what} has the length {size}", at=begin)
        return self._decoded(size, what)

    def compact_text(self, what: str) -> str:
        """Return a string: a varint that is one more than its length, then UTF-8."""
        begin = self.offset
        text = self.nullable_text(what)
        return self.refuse(f"{what} must not be null", at=begin) if text is None else text

    def nullable_text(self, what: str) -> str | None:
        """Return a string as ``compact_text`` does, or None, in the place of whose length is 0."""
        begin = self.offset
        size = self.varint("the length of {}", what) - 1
        if size > _MOST_TEXT_BYTES:
            self.refuse(f"{what} has the length {size}", at=begin)
        return None if size < 0 else self._decoded(size, what)

    def _decoded(self, size: int, what: str) -> str:
        begin = self.offset
        encoded = self.take(size, what)
        try:
            return encoded.decode()
        except UnicodeDecodeError as error:
            self.refuse(f"{what} is not UTF-8", at=begin + error.start)

    def size_of_array(self, item_size: int, what: str) -> int:
        """Return the number of items that follow, each of at least *item_size* bytes."""
        begin = self.offset
        size = self.varint("the length of {}", what) - 1
        left = self.left
        if size < 0:
            self.refuse(f"{what} must not be null", at=begin)
        if size * item_size > left:
            self.refuse(f"{size} {what} take {size * item_size} bytes or more, but {left} are left", at=begin)
        return size

    def tagged_fields(self, what: str) -> list[tuple[int, bytes]]:
        """Return the tagged fields that follow, which must be in ascending order of their tags."""
        if self._data[self.offset : self.offset + 1] == b"\0":  # nearly always: there are none
            self.offset += 1
            return []
        fields: list[tuple[int, bytes]] = []
        for _ in range(self.varint("the number of tagged fields of {}", what)):
            begin = self.offset
            tag = self.varint("a tag of {}", what)
            if fields and tag <= fields[-1][0]:
                self.refuse(f"tag {tag} of {what} follows tag {fields[-1][0]}", at=begin)
            size = self.varint("the size of tag {} of {}", tag, what)
            fields.append((tag, self.take(size, "tag {} of {}", tag, what)))
        return fields

    def end(self) -> None:
        """See to it that nothing is left."""
        if self.left:
            self.refuse(f"{self.left} bytes follow its end", at=self.offset)


def varint_bytes(number: int) -> bytes:
    """
    Return an unsigned number of at most 32 bits, seven in a byte, the lowest first.

    >>> varint_bytes(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - what seven bits can hold
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def text_bytes(text: str, field: str) -> bytes:
    """
    Return a string with its length before it.

    Raises:
        MalformedInputError: It has more than 32,767 bytes, or is not to be written in UTF-8.
    """
    encoded = _utf_8(text, field)
    return INT16.pack(len(encoded)) + encoded


def compact_text_bytes(text: str, field: str) -> bytes:
    """
    Return a string after a varint that is one more than its length.

    Raises:
        MalformedInputError: It has more than 32,767 bytes, or is not to be written in UTF-8.
    """
    encoded = _utf_8(text, field)
    return varint_bytes(len(encoded) + 1) + encoded


def _utf_8(text: str, field: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        refuse(f"expected text that UTF-8 can write, got {brief_repr(text)}", field)
    integer(len(encoded), f"the length of {field}", 0, _MOST_TEXT_BYTES)
    return encoded


def tagged_bytes(fields: Iterable[tuple[int, bytes]]) -> bytes:
    """Return tagged fields, in ascending order of their tags, with their number before them."""
    parts = [varint_bytes(tag) + varint_bytes(len(data)) + data for tag, data in sorted(fields)]
    return varint_bytes(len(parts)) + b"".join(parts)


def topic_id_text(data: bytes) -> str:
    """
    Return a topic's UUID as Kafka prints it.

    >>> topic_id_text(bytes(range(16)))
    'AAECAwQFBgcICQoLDA0ODw'
    """
    return urlsafe_b64encode(data).decode().rstrip("=")


def topic_id_of(uuid: UUID) -> str:
    """
    Return the id of the topic with *uuid*, as Kafka prints it: 22 characters of URL-safe base64.

    A topic of your own gets one with ``topic_id_of(uuid4())``.

    Raises:
        MalformedInputError: *uuid* is no UUID.

    Source:
        Uuid.toString (Kafka 4.3.1).

    >>> from uuid import UUID
    >>> topic_id_of(UUID("00010203-0405-0607-0809-0a0b0c0d0e0f"))
    'AAECAwQFBgcICQoLDA0ODw'
    """
    return topic_id_text(expect(uuid, UUID, "uuid", such_as="uuid4()").bytes)


def topic_id_bytes(text: str, field: str = "topic_id") -> bytes:
    """
    Return the 16 bytes of a topic's UUID that Kafka prints as *text*, the argument *field*.

    Raises:
        MalformedInputError: It is no UUID in 22 characters of URL-safe base64.
    """
    try:
        data = urlsafe_b64decode(f"{text}==")
    except (Base64Error, ValueError):
        data = b""
    if len(data) != _TOPIC_ID_BYTES or topic_id_text(data) != text:
        refuse(f"expected a UUID in 22 characters of URL-safe base64, got {brief_repr(text)}", field)
    return data
