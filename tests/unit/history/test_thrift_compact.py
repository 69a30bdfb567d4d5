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
    "data",
    [b"", b"\x15", b"\x15\x80", b"\x18\x05abc", b"\x1c" * 100_000],
    ids=["none", "field", "number", "text", "deep"],
)
def test_what_is_no_struct_is_refused(data: bytes) -> None:
    """It is cut off, or nested too deeply."""
    with pytest.raises(ValueError, match=r"^\d+$"):
        read_struct(data)
