"""Structs of Thrift's compact protocol, in which Parquet describes its pages."""

from __future__ import annotations

import pytest

from sharestate.history.thrift_compact import Struct, read_struct


def test_a_struct_has_fields_by_their_numbers() -> None:
    """The protocol's own description: the distance to the last number and the type in a byte, integers in zigzag."""
    data = bytes.fromhex("15 0a 16 01 28 02 6869 21 05 32 0a 00 00")

    assert read_struct(data) == ({1: 5, 2: -1, 4: b"hi", 6: True, 25: 5}, 13)
    assert read_struct(data, 13) == ({}, 14)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        ("00", 0),
        ("01", -1),
        ("02", 1),
        ("7f", -64),
        ("80 01", 64),
        ("fe ff 03", 2**15 - 1),
        ("ff ff ff ff 0f", -(2**31)),
        ("fe ff ff ff ff ff ff ff ff 01", 2**63 - 1),
    ],
)
def test_integers_are_in_zigzag_seven_bits_a_byte(data: str, number: int) -> None:
    """The lowest bits come first, and the highest bit of a byte says that another one follows."""
    encoded = bytes.fromhex(data)

    assert read_struct(b"\x16" + encoded + b"\x00") == ({1: number}, len(encoded) + 2)


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ("15 0a 08 32 02 6869 00", {1: 5, 25: b"hi"}),
        ("17 00 00 00 00 00 00 f0 3f 15 02 00", {1: None, 2: 1}),
        ("11 12 13 07 00", {1: True, 2: False, 3: 7}),
        ("19 31 01 02 01 16 02 00", {1: [1, 2, 1], 2: 1}),
        ("1a 23 07 09 16 02 00", {1: [7, 9], 2: 1}),
        ("19 25 02 01 00", {1: [1, -1]}),
        ("19 17 00 00 00 00 00 00 f0 3f 15 02 00", {1: [None], 2: 1}),
        ("19 29 15 02 25 01 02 16 02 00", {1: [[1], [-1, 1]], 2: 1}),
        ("19 1c 15 02 00 15 02 00", {1: [{1: 1}], 2: 1}),
        (f"19 f8 10 {'01 61' * 16} 00", {1: [b"a"] * 16}),
    ],
    ids=[
        "a field that says its own number",
        "a double",
        "booleans and a byte",
        "a list of booleans",
        "a set of bytes",
        "a list of integers",
        "a list of doubles",
        "a list of lists",
        "a list of structs",
        "a list of sixteen texts",
    ],
)
def test_values_take_as_many_bytes_as_their_types_have(data: str, fields: Struct) -> None:
    """What follows a value is read behind it; no value of a double is known, and booleans have a byte in lists."""
    encoded = bytes.fromhex(data)

    assert read_struct(encoded) == (fields, len(encoded))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x15", b"\x15\x80", b"\x18\x05abc", b"\x1c" * 100_000, b"\x1d\x00", b"\x15" + b"\xff" * 10 + b"\x00\x00"],
    ids=["none", "field", "number", "text", "deep", "type", "long number"],
)
def test_what_is_no_struct_is_refused(data: bytes) -> None:
    """It is cut off, nested too deeply, of a type that is not known, or has a number of more than 64 bits."""
    with pytest.raises(ValueError, match=r"^\d+$"):
        read_struct(data)
