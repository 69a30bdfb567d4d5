"""
Files with records of the state topic: JSON lines with keys and values in base64, or log segments of a broker.

A line has ``key`` and ``value``, which is null for a tombstone, and may have ``statePartition``, ``offset`` and
``timestamp``; whatever else it has is ignored. Or it is a record in the decoded form, which has a ``type``.
"""

from __future__ import annotations

import binascii
import gzip
import re
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TextIO
from zlib import error as DeflateError  # noqa: N812 - an exception under its builtin's kind of name

from sharestate.coordinator import StateRecord, decode_record, encode_record
from sharestate.errors import MalformedInputError, RecordFormatError, SegmentError, UnreadableFileError
from sharestate.json_checks import Field, integer, nullable, record, refuse, text
from sharestate.json_line_files import BoundedGzipFile
from sharestate.json_lines import Json, bounded_lines, is_blank, most_lines, read_json
from sharestate.state_topic.decoded import from_decoded_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sharestate.segments import LogBatch, LogReader, SegmentTail

TOPIC: Final = "__share_group_state"
GZIP: Final = b"\x1f\x8b"
"""The bytes with which a file begins that is compressed with gzip (RFC 1952)."""

_PARTITION: Final = re.compile(rf"{TOPIC}-(\d{{1,10}})")


class TopicRecord(NamedTuple):
    """
    A record of the state topic, and where it was found.

    Attributes:
        file: The file, or the cluster.
        line: The number of its line, from 1 on; None in a segment and in a cluster.
        byte_offset: Where its record batch begins in a segment; None elsewhere. [bytes]
        state_partition: The partition of the state topic; None if the file does not say.
        offset: Its offset there; None if the file does not say.
        timestamp_ms: Its timestamp; None if the file does not say. [ms since 1970]
        key: The bytes of its key.
        value: The bytes of its value; None for a tombstone.
        timestamp_type: Who has set its timestamp: 0 the producer, 1 the broker; None if the file does not say.
    """

    file: str
    line: int | None
    byte_offset: int | None
    state_partition: int | None
    offset: int | None
    timestamp_ms: int | None
    key: bytes
    value: bytes | None
    timestamp_type: int | None = None

    def decode(self) -> StateRecord:
        """
        Return what its bytes mean.

        Raises:
            UnreadableFileError: They are no record of this topic; the cause is the RecordFormatError.
        """
        try:
            return decode_record(self.key, self.value)
        except RecordFormatError as error:
            self.refuse(f"byte {error.byte_offset}: {error.message}", error.part or "", error)

    def refuse(self, message: str, field: str = "", cause: Exception | None = None) -> NoReturn:
        """Raise the error for this record, with the place in its file."""
        if self.line is not None:
            raise UnreadableFileError(message, self.file, self.line, field) from cause
        if self.byte_offset is None:
            message = ": ".join(
                filter(None, (f"partition {self.state_partition}, offset {self.offset}", field, message))
            )
            raise UnreadableFileError(message, self.file) from cause
        message = ": ".join(filter(None, (f"offset {self.offset}", field, message)))
        raise SegmentError(message, self.file, field=field, byte_offset=self.byte_offset) from cause


class StateTopicFile:
    """
    The records in JSON lines, or in a segment or a directory of segments.

    Iterating reads it from the beginning, record by record, in the order in which they stand there. Transaction markers
    are skipped. Segments need the extra ``segments``; a file that begins with a zero byte is taken for one. JSON
    lines may be compressed with gzip.

    Attributes:
        file: Its name, as it was given.
        is_segments: Whether it is segments.
        state_partition: The partition of the state topic that segments are of; None if no name says it.
        size: The size of what is to be read; None if that is not known. [bytes]
        position: How much of it was read so far. [bytes]

    Raises:
        UnreadableFileError: From the iteration: the file, a line of it or its segment cannot be read.
    """

    def __init__(self, path: Path | str, stream: TextIO | None = None) -> None:
        """Read *path*, or, under its name, JSON lines from *stream*."""
        self.file = str(path)
        self.is_segments = stream is None and _is_segments(Path(path))
        self.state_partition = state_partition_of(Path(path)) if self.is_segments else None
        self.size = _size(Path(path)) if stream is None else None
        self.position = 0
        self._stream = stream
        self._log: LogReader | None = None

    @property
    def tails(self) -> list[SegmentTail]:
        """The ends of segments read so far that hold no whole record batch."""
        return [] if self._log is None else self._log.tails

    def __iter__(self) -> Iterator[TopicRecord]:
        """Yield the records."""
        self.position = 0
        try:
            if self.is_segments:
                yield from self._in_segments()
            elif self._stream is not None:
                yield from self._in_lines(self._stream)
            else:
                yield from self._in_file()
        except (EOFError, DeflateError, gzip.BadGzipFile) as error:
            message = f"not all of it can be decompressed: {error}"
            raise UnreadableFileError(message, self.file) from error
        except OSError as error:
            raise UnreadableFileError(error.strerror, self.file) from error

    def first_offset(self) -> int:
        """Return the offset with which a segment begins; 0 for whatever else it is, and for what cannot be read."""
        try:
            with Path(self.file).open("rb") as stream:
                return int.from_bytes(stream.read(8))
        except OSError:
            return 0

    def _in_file(self) -> Iterator[TopicRecord]:
        with Path(self.file).open("rb") as file:
            is_gzip = _is_gzip(file)
            with json_text(file, self.size) as lines:
                for logged in self._in_lines(lines):
                    if is_gzip:
                        self.position = file.tell()
                    yield logged

    def _in_lines(self, stream: TextIO) -> Iterator[TopicRecord]:
        most = None if self.size is None else most_lines(self.size)
        for number, line in enumerate(bounded_lines(stream), 1):
            if number == most:
                message = f"more than {most} lines in {self.size} bytes"
                raise UnreadableFileError(message, self.file, number)
            self.position += len(line)
            if not is_blank(line):
                try:
                    row = _row_of(read_json(line))
                except MalformedInputError as error:
                    raise UnreadableFileError(error.message, self.file, number, error.field or "") from error
                yield TopicRecord(self.file, number, None, *row)

    def _in_segments(self) -> Iterator[TopicRecord]:
        from sharestate.segments import LogReader  # noqa: PLC0415 - needs an extra

        self._log = LogReader(self.file)
        left = None if self.size is None else most_lines(self.size)
        for batch in self._log:
            self.position += batch.size
            if left is not None:
                left -= batch.record_count
                if left < 0:
                    message = f"more than {most_lines(self.size or 0)} records in {self.size} bytes"
                    raise SegmentError(message, batch.file, byte_offset=batch.byte_offset)
            yield from records_of(batch, self.state_partition)


def records_of(batch: LogBatch, state_partition: int | None) -> Iterator[TopicRecord]:
    """Yield the records of a batch in a segment of the state topic; a transaction marker has none."""
    if not batch.is_control:
        for offset, timestamp_ms, key, value, _ in batch.records():
            place = (batch.file, None, batch.byte_offset, state_partition, offset, timestamp_ms)
            yield TopicRecord(*place, key or b"", value, batch.timestamp_type)


def json_text(data: BufferedReader[Any], size: int | None = None) -> TextIO:
    """
    Return the text in *data*, gzip or not, in which whatever is not UTF-8 stays to be refused with its line.

    Args:
        data: The bytes.
        size: How many there are, which bounds what they are decompressed to; None if that is not known.
    """
    return TextIOWrapper(_plain(data, size), "utf-8-sig", errors="surrogateescape", newline="\n")


def _plain(data: BufferedReader[Any], size: int | None) -> BufferedReader[Any] | gzip.GzipFile:
    if not _is_gzip(data):
        return data
    return gzip.GzipFile(fileobj=data) if size is None else BoundedGzipFile(data, size)


def _is_gzip(data: BufferedReader[Any]) -> bool:
    return data.peek(len(GZIP)).startswith(GZIP)


def state_topic_files(path: Path | str) -> list[StateTopicFile]:
    """
    Return the files with records of the state topic at *path*: itself, or the partitions of the topic in a directory.

    A directory is a partition's, with segments, or one of a broker's ``log.dirs``, with a directory for each partition.
    Segments that are named after their partitions, such as ``__share_group_state-7.log``, are found too.

    Raises:
        UnreadableFileError: A directory cannot be read, or has neither.
    """
    path = Path(path)
    try:
        if not path.is_dir() or next(path.glob("[0-9]*.log"), None):
            return [StateTopicFile(path)]
        partitions = [found for found in path.iterdir() if _PARTITION.fullmatch(found.name.removesuffix(".log"))]
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(path)) from error
    if not partitions:
        message = f"no log segments of {TOPIC} in this directory"
        raise UnreadableFileError(message, str(path))
    return sorted(map(StateTopicFile, partitions), key=lambda file: (file.state_partition or 0, file.file))


def state_partition_of(path: Path) -> int | None:
    """
    Return the partition of the state topic that a segment, or a directory of segments, is of; None if no name says it.

    >>> state_partition_of(Path("__share_group_state-7/00000000000000000000.log"))
    7
    """
    named = (_PARTITION.match(name) for name in (path.name, path.resolve().parent.name))
    return next((int(found[1]) for found in named if found), None)


def _base64(value: Json, path: str) -> bytes:
    try:
        return binascii.a2b_base64(text(value, path), strict_mode=True)
    except (binascii.Error, ValueError):
        refuse("base64", value, path)


_row: Final = record(
    {
        "statePartition": Field(nullable(integer(0, 2**31 - 1)), default=None),
        "offset": Field(nullable(integer(0)), default=None),
        "timestamp": Field(nullable(integer()), default=None),
        "key": Field(_base64),
        "value": Field(nullable(_base64)),
    },
    lambda **fields: tuple(fields.values()),
    extensible=True,
)


def _row_of(value: Json) -> tuple[Any, ...]:
    if isinstance(value, dict) and "type" in value and "key" not in value:
        return (None, None, None, *encode_record(from_decoded_form(value)))
    return _row(value, "")


def _is_segments(path: Path) -> bool:
    """Return whether *path* is a directory, or begins with the first byte of an offset; a pipe is not looked into."""
    if path.is_dir():
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(1) == b"\0"
    except OSError:
        return False  # reading it will say why


def _size(path: Path) -> int | None:
    try:
        if not path.is_dir() and not path.is_file():  # a pipe
            return None
        return sum(file.stat().st_size for file in (path.glob("*.log") if path.is_dir() else [path]))
    except OSError:
        return None
