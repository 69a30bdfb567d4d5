"""
The records of a compressed batch, within bounds of memory.

The record reader of aiokafka takes as much memory as compressed bytes say they need, and the library below it ends the
process if that is not there. So records are decompressed here, into room of a fixed size, before it reads them.

Source:
    CompressionType, SnappyCompression (Kafka 4.3.1); the framing of snappy is that of xerial's SnappyInputStream.
"""

from __future__ import annotations

from enum import IntEnum
from mmap import mmap
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import cramjam

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_RECORDS_BYTES: Final = 104_857_600
"""The size of the largest batch that is decompressed: the largest request of brokers, ``socket.request.max.bytes``."""

_SMALL_BYTES: Final = 2**20
"""What any batch may be once it is decompressed: the largest that producers make of their own accord, of which
``max.request.size`` is the size before it is compressed."""

_RATIO: Final = 64
"""How many times its own size a larger one may be. Records of repeated text are 10 to 20 times theirs (zstd, JSON)."""

_COMMON_RATIO: Final = 256
"""How many times its own size a batch may be without being counted. Those of producers that fill 16 KiB, their
``batch.size``, are not: with its header a batch takes 76 bytes, and 145 if 1 kB comes again and again (zstd)."""

_MOST_EXCESS: Final = 2**30
"""What all batches of a log may have beyond that: a producer that fills 1 MiB with such records reaches 381 times, and
this after 3 GB of them. [bytes]"""

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
"""The mark and two versions of 32 bits, before the first block (SnappyOutputStream of snappy-java). [bytes]"""

_BLOCK_SIZE: Final = Struct(">i")


class Compression(IntEnum):
    """The compression of a batch's records; the numbers are those of the log."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Excess:
    """
    How much more the batches of a log may have, once they are decompressed, than is common for what they take there.

    Each has little of it; this is for all that are decompressed, as often as they are.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        """Begin with what a log may have."""
        self.left = _MOST_EXCESS
        """What is left of it. [bytes]"""

    def take(self, size: int, decompressed: int) -> None:
        """
        Count a batch of a *size* that has so many *decompressed* bytes of records.

        Raises:
            ValueError: It is too much.
        """
        excess = decompressed - _COMMON_RATIO * size
        if excess > self.left:
            message = (
                f"more than {_MOST_EXCESS} bytes beyond {_COMMON_RATIO} times what the batches up to this one take"
            )
            raise ValueError(message)
        self.left -= max(0, excess)


def decompressed(data: bytes, compression: Compression) -> bytes:
    """
    Return the records of which *data* was made.

    Raises:
        ValueError: They are too many for what they take in the log, or *data* is not compressed in that way.
    """
    if compression is Compression.NONE:
        return data
    most = min(max(_SMALL_BYTES, _RATIO * len(data)), MAX_RECORDS_BYTES)
    room = mmap(-1, most)  # the system provides what is written to, and nothing more
    try:
        size = _INTO[compression](data, room)
    except cramjam.DecompressionError as error:
        message = f"{error}; at most {most} bytes are decompressed"
        raise ValueError(message) from error
    return room[:size]


def _unsnapped(data: bytes, room: mmap) -> int:
    """Decompress *data* into *room*: the blocks of a stream, or a single one without a frame."""
    if not data.startswith(_XERIAL):
        return cramjam.snappy.decompress_raw_into(data, room)
    begin, size = _XERIAL_HEADER, 0
    left = memoryview(room)
    while begin < len(data):
        (block,) = _BLOCK_SIZE.unpack(data[begin : begin + _BLOCK_SIZE.size].ljust(_BLOCK_SIZE.size, b"\xff"))
        begin += _BLOCK_SIZE.size
        if not 0 <= block <= len(data) - begin:
            message = f"a block of {block} bytes, but {max(0, len(data) - begin)} are left"
            raise ValueError(message)
        size += cramjam.snappy.decompress_raw_into(data[begin : begin + block], left[size:])
        begin += block
    return size


_INTO: Final[Mapping[Compression, Callable[[bytes, mmap], int]]] = MappingProxyType(
    {
        Compression.GZIP: cramjam.gzip.decompress_into,
        Compression.SNAPPY: _unsnapped,
        Compression.LZ4: cramjam.lz4.decompress_into,
        Compression.ZSTD: cramjam.zstd.decompress_into,
    }
)
"""What decompresses into room of a fixed size, and returns how much it has filled."""
