"""
The record batches of a segment file, or of all that a partition's directory has, in the order of the log.

Source:
    LogSegment.recover, LogFileUtils, FileLogInputStream (Kafka 4.3.1).
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from sharestate.errors import SegmentError, SegmentTailError, UnknownMagicError, UnreadableFileError
from sharestate.segments.batches import BEFORE_LENGTH, HEADER, LogBatch, decode_batch
from sharestate.segments.compression import Excess

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = re.compile(r"\d{20}\.log")
_BUFFER: Final = 2**20
"""How much of a file is read at once: segments are read from end to end. [bytes]"""

_MAGIC: Final = 2
"""The format of record batches since Kafka 0.11."""

_MAGIC_OFFSET: Final = 16
"""Where a batch says its format, in all formats so far. [bytes]"""

_LENGTH: Final = Struct(">8xi")
_FEWEST_ZEROS: Final = 16
"""Zeros at the end of a batch that cannot be data any more. [bytes]"""


class TailKind(Enum):
    """The kind of a segment's end that is no whole record batch."""

    TORN = "torn"
    """The beginning of a record batch: the broker, or a copy, was stopped while it wrote."""

    ZEROS = "zeros"
    """Zeros to the end of the file: space that was reserved, or never written before the machine stopped."""


class SegmentTail(NamedTuple):
    """
    The end of a segment that holds no whole record batch; a broker that recovers cuts it off.

    Attributes:
        file: The segment.
        byte_offset: Where the last whole batch ends. [bytes]
        size: The bytes from there to the end of the file. [bytes]
        kind: What they are.
    """

    file: str
    byte_offset: int
    size: int
    kind: TailKind

    @property
    def reason(self) -> str:
        """A description of them."""
        what = "zeros" if self.kind is TailKind.ZEROS else "a part of a record batch"
        return f"the last {self.size} bytes are {what}"

    def __str__(self) -> str:
        """Return place and reason in one line."""
        return f"{self.file}, byte {self.byte_offset}: {self.reason}"


def segment_files(directory: Path | str) -> list[Path]:
    """
    Return the segments in a partition's *directory*, in the order of the log.

    Files that are not named after an offset are skipped, such as indexes and segments that are being deleted.

    Raises:
        UnreadableFileError: The directory cannot be read, or has no segments.
    """
    try:
        files = sorted(file for file in Path(directory).iterdir() if _NAME.fullmatch(file.name))
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(directory)) from error
    if not files:
        message = "no log segments in this directory"
        raise UnreadableFileError(message, str(directory))
    return files


class LogReader:
    """
    The record batches of a segment, or of a partition's directory.

    Iterating reads the files from the beginning, one batch at a time. A segment may end in the middle of a batch, or in
    zeros: that is noted in ``tails``, and reading goes on with the next segment.

    Attributes:
        files: The segments, in the order of the log.
        tails: The ends of segments, of those read so far, that hold no whole batch.

    Raises:
        UnreadableFileError: A directory or a file cannot be read.
        SegmentError: From the iteration: a record batch with a wrong checksum, of senseless length, or with offsets
            that do not ascend. What comes before it has been yielded.
        UnknownMagicError: From the iteration: a record batch of another format than 2.
        SegmentTailError: From the iteration, if the reader is strict: a segment that ends in no whole batch.

    Complexity:
        Memory for one batch.
    """

    def __init__(self, path: Path | str, *, strict: bool = False) -> None:
        """Read a segment, or all of a directory; if *strict*, the end of each segment has to be that of a batch."""
        path = Path(path)
        self.files = segment_files(path) if path.is_dir() else [path]
        self.tails: list[SegmentTail] = []
        self._strict = strict

    def __iter__(self) -> Iterator[LogBatch]:
        """Yield the record batches."""
        self.tails = []
        previous = -1
        excess = Excess()
        for file in self.files:
            try:
                with file.open("rb", buffering=_BUFFER) as stream:
                    for batch in self._batches(stream, str(file), excess):
                        if batch.first_offset <= previous:
                            message = f"offset {batch.first_offset} follows offset {previous}"
                            raise SegmentError(message, batch.file, byte_offset=batch.byte_offset)
                        yield batch
                        previous = batch.last_offset
            except OSError as error:
                raise UnreadableFileError(error.strerror, str(file)) from error

    def _batches(self, stream: BinaryIO, file: str, excess: Excess) -> Iterator[LogBatch]:
        byte_offset = 0
        while (batch := _next_batch(stream, file, byte_offset, excess)) is not None:
            if isinstance(batch, SegmentTail):
                if self._strict:
                    raise SegmentTailError(batch.reason, file, byte_offset=byte_offset)
                self.tails.append(batch)
                return
            yield batch
            byte_offset += batch.size


def _next_batch(stream: BinaryIO, file: str, byte_offset: int, excess: Excess) -> LogBatch | SegmentTail | None:
    """Return the batch at *byte_offset*, or the tail if there is no whole one any more, or None at the end."""
    data = stream.read(HEADER.size)
    if not data:
        return None
    try:
        size = _size(data, file, byte_offset)
        data += _read(stream, size - len(data))
        if len(data) == size:
            return decode_batch(data, file, byte_offset, excess)
    except SegmentError:
        zeros = _count_zeros(stream) if _may_end_in_zeros(data) else None
        if zeros is None:
            raise
        return SegmentTail(file, byte_offset, len(data) + zeros, TailKind.ZEROS)
    return SegmentTail(file, byte_offset, len(data), TailKind.TORN if any(data) else TailKind.ZEROS)


def _size(header: bytes, file: str, byte_offset: int) -> int:
    """Return the size of the batch that begins with *header*; as much as a header takes if it is cut off."""
    if len(header) == HEADER.size and not any(header):
        message = "zeros where a record batch should begin"
        raise SegmentError(message, file, byte_offset=byte_offset)
    if len(header) > _MAGIC_OFFSET and header[_MAGIC_OFFSET] != _MAGIC:
        message = f"a record batch of format {header[_MAGIC_OFFSET]}; only {_MAGIC} can be read"
        raise UnknownMagicError(message, file, byte_offset=byte_offset)
    if len(header) < HEADER.size:
        return HEADER.size
    size = _LENGTH.unpack_from(header)[0] + BEFORE_LENGTH
    if size < HEADER.size:
        message = f"a record batch of {size} bytes; its header takes {HEADER.size}"
        raise SegmentError(message, file, byte_offset=byte_offset)
    return int(size)


def _read(stream: BinaryIO, size: int) -> bytes:
    """Return the next *size* bytes, or as many as there are; no more memory than that is taken."""
    parts: list[bytes] = []
    while size and (part := stream.read(min(size, _BUFFER))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _may_end_in_zeros(data: bytes) -> bool:
    """Return whether the end of *data*, which is no batch, was never written: from before its magic on, or later."""
    written = len(data.rstrip(b"\0"))
    return written <= _MAGIC_OFFSET or (data[_MAGIC_OFFSET] == _MAGIC and len(data) - written >= _FEWEST_ZEROS)


def _count_zeros(stream: BinaryIO) -> int | None:
    """Return how many zeros follow to the end; None if anything else does."""
    count = 0
    while part := stream.read(_BUFFER):
        if any(part):
            return None
        count += len(part)
    return count
