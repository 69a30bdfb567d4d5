"""
Values in Thrift's compact protocol, in which Parquet describes itself.

Source:
    thrift-compact-protocol.md (Thrift 0.21.0).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Struct: TypeAlias = dict[int, Any]
"""The fields of a struct by their numbers: booleans, integers, bytes, lists and structs; None for a double."""

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12
_DOUBLE_BYTES: Final = 8
_LONG_LIST: Final = 15
_VARINT_BYTES: Final = 10
_CONTINUED: Final = 0x80
"""The highest bit of a byte says that another one follows."""


def read_struct(data: bytes, at: int = 0) -> tuple[Struct, int]:
    """
    Return the struct with which *data* goes on at a place, and where it ends.

    Raises:
        ValueError: There is none, or it is nested too deeply.

    Complexity:
        O(n) in its bytes.
    """
    try:
        return _struct(data, at)
    except (IndexError, RecursionError) as error:
        raise ValueError(at) from error


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    field = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _integer(data, at)
        type_ = head & 0x0F
        fields[field], at = (type_ == _TRUE, at) if type_ in {_TRUE, _FALSE} else _value(data, at, type_)
    return fields, at + 1


def _value(data: bytes, at: int, type_: int) -> tuple[Any, int]:
    if type_ in _INTEGERS:
        return _integer(data, at)
    if type_ == _STRUCT:
        return _struct(data, at)
    if type_ == _BINARY:
        size, at = _varint(data, at)
        return data[at : at + size], at + size  # one that is cut off lacks what ends its struct, too
    if type_ in _LISTS:
        return _list(data, at)
    if type_ == _DOUBLE:
        return None, at + _DOUBLE_BYTES
    if type_ in {_TRUE, _FALSE, _BYTE}:  # booleans have a byte in lists
        return data[at], at + 1
    raise ValueError(at)


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    count, type_ = data[at] >> 4, data[at] & 0x0F
    at += 1
    if count == _LONG_LIST:
        count, at = _varint(data, at)
    items = []
    for _ in range(count):
        item, at = _value(data, at, type_)
        items.append(item)
    return items, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return number >> 1 ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = data[at]
    if number < _CONTINUED:  # most numbers have one byte
        return number, at + 1
    number -= _CONTINUED
    for index in range(1, _VARINT_BYTES):
        byte = data[at + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < _CONTINUED:
            return number, at + index + 1
    raise ValueError(at)
