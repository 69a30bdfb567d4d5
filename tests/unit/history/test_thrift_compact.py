"""Structs of Thrift's compact protocol, in which Parquet describes its pages."""

from __future__ import annotations

import pytest

from sharestate.history.thrift_compact import read_struct


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
    "data",
    [b"", b"\x15", b"\x15\x80", b"\x18\x05abc", b"\x1c" * 100_000],
    ids=["none", "field", "number", "text", "deep"],
)
def test_what_is_no_struct_is_refused(data: bytes) -> None:
    """It is cut off, or nested too deeply."""
    with pytest.raises(ValueError, match=r"^\d+$"):
        read_struct(data)
