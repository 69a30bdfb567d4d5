"""Texts on the wire, as Kafka's generated messages read and write them."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError, RecordFormatError
from sharestate.coordinator.wire import Layout, Reader, compact_text_bytes, varint_bytes


@pytest.mark.parametrize(("text", "data"), [("", b"\x01"), ("abc", b"\x04abc"), ("\u00fc", b"\x03\xc3\xbc")])
def test_a_compact_text_follows_one_more_than_its_length(text: str, data: bytes) -> None:
    """COMPACT_STRING of Kafka's protocol: an unsigned varint of the length plus one, then UTF-8."""
    assert compact_text_bytes(text, "name") == data
    assert Reader(data, "value").compact_text("name") == text
    assert Reader(data, "value").nullable_text("name") == text


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (2**14 - 1, b"\xff\x7f"),
        (2**14, b"\x80\x80\x01"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_a_varint_has_seven_bits_in_a_byte(number: int, data: bytes) -> None:
    """The lowest first; the highest bit of a byte says that another one follows, as in Kafka's ByteUtils."""
    reader = Reader(data + b"\x01", "value")

    assert varint_bytes(number) == data
    assert reader.varint("number") == number
    assert reader.offset == len(data)


@pytest.mark.parametrize("data", [b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\x7f"])
def test_a_varint_of_more_than_32_bits_is_refused(data: bytes) -> None:
    """The first one that has more is 2^32."""
    with pytest.raises(RecordFormatError, match="the number has more than 32 bits"):
        Reader(data, "value").varint("the number")


def test_the_length_of_null_is_zero() -> None:
    """COMPACT_NULLABLE_STRING; where null is not allowed it is refused."""
    assert Reader(b"\0", "value").nullable_text("name") is None
    with pytest.raises(RecordFormatError, match="name must not be null"):
        Reader(b"\0", "value").compact_text("name")


def test_the_shortest_and_the_longest_text() -> None:
    """A STRING may be empty, and a COMPACT_STRING have 32,767 bytes."""
    longest = "a" * (2**15 - 1)

    assert Reader(b"\0\0", "value").text("name") == ""
    assert Reader(compact_text_bytes(longest, "name"), "value").nullable_text("name") == longest


def test_a_text_longer_than_messages_may_have_is_refused() -> None:
    """Kafka's generated messages refuse more than 32,767 bytes, in both directions."""
    with pytest.raises(RecordFormatError, match="name has the length 32768"):
        Reader(b"\x81\x80\x02" + bytes(2**15), "value").nullable_text("name")
    with pytest.raises(MalformedInputError, match=r"the length of name: expected an integer within 0\.\.32767"):
        compact_text_bytes("a" * 2**15, "name")


# ---- numbers and tagged fields


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, "5"])
def test_the_number_that_has_no_place_is_named(number: object) -> None:
    """The least INT32 has one, and is not taken for it."""
    layout = Layout.of("ii", "first", "second")
    assert layout.pack([-(2**31), 2**31 - 1]) == b"\x80\0\0\0\x7f\xff\xff\xff"

    with pytest.raises(MalformedInputError, match=r"expected an integer within -2147483648\.\.2147483647") as caught:
        layout.pack([-(2**31), number], "batch.")  # type: ignore[list-item]
    assert caught.value.field == "batch.second"


def test_tags_ascend() -> None:
    """As in Kafka's generated messages; the two that do not are named."""
    reader = Reader(b"\2\1\1a\5\0" + b"\0", "value")
    assert (reader.tagged_fields("the state"), reader.left) == ([(1, b"a"), (5, b"")], 1)

    for tag in (3, 5):
        with pytest.raises(RecordFormatError, match=rf"^value, byte 5: tag {tag} of the state follows tag 5$"):
            Reader(b"\3\1\0\5\0" + bytes([tag, 0]), "value").tagged_fields("the state")


def test_an_array_may_be_the_last_that_there_is() -> None:
    """Its items take all bytes that are left, and no more."""
    assert Reader(b"\3" + bytes(8), "value").size_of_array(4, "items") == 2
    with pytest.raises(RecordFormatError, match=r"2 items take 8 bytes or more, but 7 are left"):
        Reader(b"\3" + bytes(7), "value").size_of_array(4, "items")
