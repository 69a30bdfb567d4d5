"""
Where the records of a dead-letter topic are read: log segments of a broker, JSON lines of kcat, or a live cluster.

A line of ``kcat -C -J`` has ``partition``, ``offset``, ``ts``, ``headers`` (names and values in one list), ``key`` and
``payload``; whatever else it has is ignored, but that ``topic`` must be the one that is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from sharestate.dead_letter_topic.letters import LoggedLetter
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Check, Field, a_list, integer, nullable, record, refuse, text
from sharestate.json_line_files import NumberedLines
from sharestate.json_lines import Json, read_json

if TYPE_CHECKING:
    from confluent_kafka import Message

    from sharestate.segments import SegmentTail
    from sharestate.state_topic.cluster import Cluster

_CREATE_TIME: Final = 1
"""The type of a timestamp that a client of librdkafka says is the producer's; 0 stands for none."""


class LetterSource(Protocol):
    """
    What yields the records of a dead-letter topic, those of each of its partitions in order.

    Attributes:
        spans: The offsets that each partition has had, as far as that is known: complete once all is read.
        size: How much there is to be read, in bytes or in records.
        position: How much of that was read so far.
    """

    spans: dict[int, range]

    @property
    def size(self) -> int:
        """How much there is to be read."""
        ...

    @property
    def position(self) -> int:
        """How much of that was read so far."""
        ...

    def __iter__(self) -> Iterator[LoggedLetter]:
        """Yield the records."""
        ...


class LetterFile:
    """
    A file of a dead-letter topic, or the directory of one of its partitions.

    Iterating reads it from the beginning. Segments need the extra ``segments``; a file that begins with a zero byte is
    taken for one, and a name has to say of which partition: ``TOPIC-7``, its directory's or its own.

    Attributes:
        file: Its name.
        is_segments: Whether it is segments.
        partition: The partition that segments are of; None of JSON lines, each of which says it.
        size: How much there is to be read. [bytes]
        position: How much of it was read so far. [bytes]
        spans: The offsets that each partition has had, from the first one of its log to the last that was read.
        tails: The ends of segments that hold no whole record batch.

    Raises:
        UnreadableFileError: The file cannot be read, or no name says its partition; from the iteration, also a line
            that is no record, or a batch of a segment.
    """

    def __init__(self, topic: str, path: Path | str) -> None:
        """Look what *path* is; nothing else is read yet."""
        path = Path(path)
        self.file = str(path)
        self.position = 0
        self.spans: dict[int, range] = {}
        self.tails: list[SegmentTail] = []
        self._topic = topic
        try:
            self.is_segments = path.is_dir() or _begins_with_zero(path)
            segments = sorted(path.glob("[0-9]*.log")) if path.is_dir() else [path]
            self.size = sum(each.stat().st_size for each in segments)
        except OSError as error:
            raise UnreadableFileError(error.strerror, self.file) from error
        self.partition = partition_of(topic, path) if self.is_segments else None
        if self.is_segments and self.partition is None:
            message = f"no name says of which partition of {topic} these segments are, such as {topic}-0"
            raise UnreadableFileError(message, self.file)

    def __iter__(self) -> Iterator[LoggedLetter]:
        """Yield the records."""
        self.position = 0
        return self._in_segments(self.partition) if self.partition is not None else self._in_lines()

    def _in_segments(self, partition: int) -> Iterator[LoggedLetter]:
        from sharestate.segments import LogReader  # noqa: PLC0415 - needs an extra

        reader = LogReader(self.file)
        self.tails = reader.tails
        begin = first_offset_of(reader.files[0])
        for batch in reader:
            self.position += batch.size
            begin = batch.first_offset if begin is None else begin
            self.spans[partition] = range(begin, batch.last_offset + 1)
            if batch.is_control:
                continue
            for offset, timestamp_ms, key, value, headers in batch.records():
                at_ms = timestamp_ms if timestamp_ms >= 0 else None
                yield LoggedLetter(partition, offset, at_ms, key, None if value is None else len(value), headers)
        self.tails = reader.tails

    def _in_lines(self) -> Iterator[LoggedLetter]:
        lines = NumberedLines(self.file, UnreadableFileError)
        try:
            for number, line in lines:
                self.position = lines.position
                try:
                    logged = _line(read_json(line), self._topic)
                except MalformedInputError as error:
                    raise UnreadableFileError(error.message, self.file, number, error.field or "") from error
                span = self.spans.get(logged.partition)
                begin = logged.offset if span is None else span.start
                if span is not None and logged.offset < span.stop:
                    message = f"offset {logged.offset} follows offset {span.stop - 1} of partition {logged.partition}"
                    raise UnreadableFileError(message, self.file, number, "offset")
                self.spans[logged.partition] = range(begin, logged.offset + 1)
                yield logged
        finally:
            lines.close()


class LetterFiles:
    """
    The files of a dead-letter topic, one after the other.

    Attributes:
        files: The files.
        spans: The offsets that each partition has had.

    Raises:
        UnreadableFileError: As ``LetterFile``; or a partition is in two of them.
    """

    def __init__(self, files: list[LetterFile]) -> None:
        """Read *files*."""
        self.files = files
        self.spans: dict[int, range] = {}
        self._order = sorted(files, key=lambda each: (-1 if each.partition is None else each.partition, each.file))

    @property
    def size(self) -> int:
        """How much there is to be read. [bytes]"""
        return sum(each.size for each in self.files)

    @property
    def position(self) -> int:
        """How much of it was read so far. [bytes]"""
        return sum(each.position for each in self.files)

    def __iter__(self) -> Iterator[LoggedLetter]:
        """Yield the records."""
        for file in self._order:
            for logged in file:
                if logged.partition in self.spans:
                    message = f"partition {logged.partition} of the topic is in another file, too"
                    raise UnreadableFileError(message, file.file)
                yield logged
            self.spans |= file.spans


class ClusterLetters:
    """
    The records of a dead-letter topic of a live cluster, as far as it has them now (extra ``consumer``).

    Args:
        cluster: The cluster, whose topic is the dead-letter topic.
        offsets: The offsets to read; by default all that it has when it is asked.

    Attributes:
        spans: The offsets that each partition has.
        position: How much was read so far. [records]

    Raises:
        ExternalError: The cluster cannot be reached, refuses, or has no such topic.
    """

    def __init__(self, cluster: Cluster, offsets: dict[int, range] | None = None) -> None:
        """Ask which offsets there are."""
        self._cluster = cluster
        self.spans = cluster.state_offsets() if offsets is None else offsets
        self.position = 0

    @property
    def size(self) -> int:
        """How much there is to be read. [records]"""
        return sum(map(len, self.spans.values()))

    def __iter__(self) -> Iterator[LoggedLetter]:
        """Yield the records."""
        self.position = 0
        for message in self._cluster.remaining_messages(self.spans):
            self.position += 1
            yield _message(message)


def letter_files(topic: str, path: Path | str) -> list[LetterFile]:
    """
    Return the files with records of a dead-letter topic at *path*: itself, or the partitions of it in a directory.

    A directory is a partition's, with segments, or one of a broker's ``log.dirs``, with a directory for each partition.

    Raises:
        UnreadableFileError: A directory cannot be read, or has neither; or a name does not say the partition.
    """
    path = Path(path)
    try:
        if not path.is_dir() or next(path.glob("[0-9]*.log"), None):
            return [LetterFile(topic, path)]
        found = sorted(each for each in path.iterdir() if _number_in(topic, each.name) is not None)
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(path)) from error
    if not found:
        message = f"no log segments of {topic} in this directory"
        raise UnreadableFileError(message, str(path))
    return [LetterFile(topic, each) for each in found]


def partition_of(topic: str, path: Path) -> int | None:
    """
    Return the partition of *topic* that a segment, or a directory of segments, is of; None if no name says it.

    >>> partition_of("dlq.orders", Path("dlq.orders-7/00000000000000000000.log"))
    7
    """
    names = (path.name, path.resolve().parent.name)
    return next((number for name in names if (number := _number_in(topic, name)) is not None), None)


def first_offset_of(segment: Path) -> int | None:
    """Return the offset that a segment is named after, where its log begins at the latest; None for another name."""
    return int(segment.stem) if re.fullmatch(r"\d{20}", segment.stem) else None


def _number_in(topic: str, name: str) -> int | None:
    found = re.fullmatch(rf"{re.escape(topic)}-(\d{{1,10}})(\.log)?", name)
    return None if found is None else int(found[1])


def _begins_with_zero(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(1) == b"\0"


# ---- lines of kcat


def _headers(value: Json, path: str) -> tuple[tuple[str, bytes | None], ...]:
    parts = a_list(value, path)
    if len(parts) % 2:
        refuse("as many values as names", value, path)
    names = [text(each, f"{path}[{2 * place}]") for place, each in enumerate(parts[::2])]
    values = [nullable(text)(each, f"{path}[{2 * place + 1}]") for place, each in enumerate(parts[1::2])]
    return tuple((name, None if each is None else _utf_8(each)) for name, each in zip(names, values, strict=True))


_fields: Final[Check[dict[str, Any]]] = record(
    {
        "topic": Field(nullable(text), default=None),
        "partition": Field(integer(0, 2**31 - 1)),
        "offset": Field(integer(0)),
        "ts": Field(nullable(integer()), default=None),
        "headers": Field(_headers, default=()),
        "key": Field(nullable(text), default=None),
        "payload": Field(nullable(text), default=None),
    },
    dict,
    extensible=True,
)


def _line(value: Json, topic: str) -> LoggedLetter:
    found = _fields(value, "")
    if found["topic"] not in {None, topic}:
        refuse(f"a record of {topic}", found["topic"], "topic")
    key, payload, at_ms = found["key"], found["payload"], found["ts"]
    return LoggedLetter(
        *(found["partition"], found["offset"], at_ms if at_ms is not None and at_ms >= 0 else None),
        *(None if key is None else _utf_8(key), None if payload is None else len(_utf_8(payload))),
        found["headers"],
    )


def _utf_8(string: str) -> bytes:
    """Return the bytes of a *string*, in which an escape may have put half of a surrogate pair."""
    return string.encode(errors="replace")


# ---- messages of a client


def _message(message: Message) -> LoggedLetter:
    kind, timestamp_ms = message.timestamp()
    key, value = message.key(), message.value()
    named = cast("list[tuple[str, bytes | None]]", message.headers() or [])  # which is what a consumer has
    headers = tuple((name, _bytes(each)) for name, each in named)
    at_ms = timestamp_ms if kind >= _CREATE_TIME and timestamp_ms >= 0 else None
    size = None if value is None else len(value)
    return LoggedLetter(message.partition() or 0, message.offset() or 0, at_ms, _bytes(key), size, headers)


def _bytes(data: bytes | str | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
