"""Inputs that are nearly right: samples with damage where formats keep their lengths, counts, tags and numbers."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from aiokafka.record.util import calc_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

_SPAN: Final = 24
"""The most bytes that one change concerns, ends and splices apart. [bytes]"""

_NUMBERS: Final = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)
"""The numbers at which something changes, at one width or another."""

_VARINTS: Final = tuple(
    bytes.fromhex(text) for text in ("00", "01", "02", "7f", "8001", "ff7f", "ffffff7f", "ffffffff0f", "ffffffffff7f")
)

_JSON: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, -2, 127, 2**15, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, 1e300),
    *("", "a", "0", "\0", "\ud800", "AAAA", "AAECAwQFBgcICQoLDA0ODw", [], {}, [[]], [0], [[0, 0, 0, 0]], {"a": 0}),
)
"""Values that fields are likely not to expect."""


def random_bytes(random: Random) -> bytes:
    """Return bytes of no form at all."""
    return random.randbytes(random.randrange(120))


def damaged(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return one of *samples* with one to four changes."""
    data = bytearray(random.choice(samples))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(_CHANGES)(random, data, samples)
    return bytes(data)


def _place(random: Random, data: bytearray) -> int:
    return random.randrange(len(data) + 1)


def _flip(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _number(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Put a number of some width where one may be: a length, a count, an epoch, an offset."""
    width = random.choice((1, 2, 4, 8))
    number = random.choice((*_NUMBERS, len(data)))
    place = _place(random, data)
    data[place : place + width] = (number % 256**width).to_bytes(width, "big")


def _varint(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Put a number of variable size in the place of a byte: a length, a count, a tag."""
    place = _place(random, data)
    data[place : place + 1] = random.choice(_VARINTS)


def _tag(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Put tagged fields in the place of a byte, such as the one that says that there are none."""
    fields = b"".join(
        random.choice(_VARINTS) + bytes([size]) + random.randbytes(size) for size in random.choices(range(6), k=2)
    )
    place = _place(random, data)
    data[place : place + 1] = random.choice(_VARINTS) + fields


def _cut(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(random, data) :]


def _delete(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    place = _place(random, data)
    del data[place : place + random.randrange(_SPAN)]


def _repeat(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    place = _place(random, data)
    data[place:place] = data[place : place + random.randrange(_SPAN)] * random.choice((1, 1, 2, 50))


def _insert(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    place = _place(random, data)
    data[place:place] = random.randbytes(random.randrange(_SPAN))


def _splice(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    """Go on with the end of another sample."""
    other = random.choice(samples)
    data[_place(random, data) :] = other[random.randrange(len(other) + 1) :]


_CHANGES: Final[tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...]] = (
    *(_flip, _number, _number, _varint, _varint, _tag, _cut, _delete, _repeat, _insert, _splice),
)


# ---- forms that notice damage


_BEFORE_LENGTH: Final = 12
_CHECKSUM: Final = slice(17, 21)
_HEADER: Final = 61


def damaged_batches(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return a damaged log segment, mostly with right checksums, so that the damage gets as far as the records."""
    data = bytearray(damaged(random, samples))
    begin = 0
    while random.random() < 0.8 and len(data) - begin >= _HEADER:
        size = int.from_bytes(data[begin + 8 : begin + _BEFORE_LENGTH], "big", signed=True) + _BEFORE_LENGTH
        if not _HEADER <= size <= len(data) - begin:
            size = len(data) - begin
            data[begin + 8 : begin + _BEFORE_LENGTH] = (size - _BEFORE_LENGTH).to_bytes(4, "big")
        checksum = calc_crc32c(bytes(data[begin + _CHECKSUM.stop : begin + size]))
        data[begin + _CHECKSUM.start : begin + _CHECKSUM.stop] = checksum.to_bytes(4, "big")
        begin += size
    return bytes(data)


def damaged_json(random: Random, samples: Sequence[bytes]) -> bytes:
    """Return JSON in which one value or more are others, or are missing, and now and then no JSON."""
    if random.random() < 0.2:
        return damaged(random, samples)
    value = json.loads(random.choice(samples))
    for _ in range(random.choice((1, 1, 2, 3))):
        change_json(random, value)
    return json.dumps(value).encode()


def change_json(random: Random, value: Any, others: Sequence[Any] = ()) -> None:  # noqa: ANN401 - JSON
    """Change something in *value*, deeper down more often than not; *others* are values that it may become."""
    while True:
        keys = [*value] if isinstance(value, dict) else range(len(value))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(value[key], (dict, list)) or not value[key] or random.random() < 0.2:
            break
        value = value[key]
    change = random.randrange(6)
    if change == 0:
        del value[key]
    elif change == 1 and isinstance(value, list):
        value[key:key] = deepcopy([value[key]] * random.choice((1, 2, 40)))
    elif change == 2:
        value[key] = deepcopy(value[random.choice(keys)])
    elif change == 3 and type(value[key]) is int:
        value[key] += random.choice((-1, 1, 1000))
    elif change == 4 and isinstance(value, dict):
        value["unknown"] = deepcopy(random.choice(_JSON))
    else:
        value[key] = deepcopy(random.choice((*_JSON, *others)))
