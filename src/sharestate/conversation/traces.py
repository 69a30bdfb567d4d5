"""
Trace files: recorded conversations.

A trace is JSON lines: a header, then one ``{"request", "response"}`` per line. It is read and written line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from attrs import asdict, frozen

from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Check, Field, T, an_object, integer, list_of, nullable, record, text, version
from sharestate.json_lines import Json, bounded_lines, is_blank, read_json, write_json

TRACE_VERSION: Final = 1
"""The version of the format that is read and written."""

NOT_REPLAYABLE: Final = frozenset(
    {
        "concurrent",
        "external-change",
        "internal-call",
        "nested-completion",
        "real-timer",
        "spy",
        "stale-timer-run",
    }
)
"""Flags of traces in which something happened that is not in the requests."""


class Recorded(Enum):
    """What a trace was recorded of."""

    PARTITION = "share partitions"
    """Share partitions."""

    COORDINATOR = "share coordinators"
    """Share coordinators, or their combiner."""

    SESSIONS = "share sessions"
    """The share sessions of a broker."""

    GROUPS = "share groups"
    """The share groups of a group coordinator."""

    ASSIGNOR = "the assignor"
    """The assignor of share groups."""


RECORDED_CLASSES: Final[Mapping[str, Recorded]] = MappingProxyType(
    {
        "GroupMetadataManager": Recorded.GROUPS,
        "PersisterStateBatchCombiner": Recorded.COORDINATOR,
        "ShareCoordinatorShard": Recorded.COORDINATOR,
        "ShareSessionCache": Recorded.SESSIONS,
        "SimpleAssignor": Recorded.ASSIGNOR,
    }
)
"""The last words of sources, and what they are; their tests' names end with ``Test``. Others are of partitions."""


@frozen(kw_only=True)
class TraceHeader:
    """The first line of a trace."""

    source: str = ""
    """The system that was recorded."""

    name: str
    """The test that was recorded."""

    status: str = ""
    """The result of the test."""

    partitions: int = 0
    """The number of share partitions that it made."""

    calls: int = 0
    """The number of calls of public methods that were recorded."""

    flags: tuple[str, ...] = ()
    """Peculiarities of the recording; some of them forbid a replay."""

    @property
    def recorded(self) -> Recorded:
        """What was recorded, by the class of Kafka that the source names."""
        return RECORDED_CLASSES.get(self.source.rpartition(" ")[2].removesuffix("Test"), Recorded.PARTITION)

    @property
    def obstacles(self) -> tuple[str, ...]:
        """The flags that forbid a replay."""
        return tuple(flag for flag in self.flags if flag in NOT_REPLAYABLE)


@frozen
class TraceStep:
    """A request of a trace and the response to it."""

    line: int
    """The line's number in the file."""

    request: Json
    """The request, an object."""

    response: Json
    """The response, an object; None if there was none."""

    size: int = 0
    """The length of the line. [characters]"""

    @property
    def op(self) -> str:
        """The operation's name; empty if there is none."""
        op = self.request.get("op")
        return op if isinstance(op, str) else ""


@frozen
class Trace:
    """A trace that is being read."""

    file: str
    """The file, as it was given."""

    header: TraceHeader
    """Its first line."""

    steps: Iterator[TraceStep]
    """The other lines, read as they are asked for; raises UnreadableFileError."""


_NUMBER: Final = Field(integer(0), default=0)
_TEXT: Final = Field(text, default="")

_header: Final = record(
    {
        "trace": Field(version(TRACE_VERSION)),
        "name": Field(text),
        "source": _TEXT,
        "status": _TEXT,
        "partitions": _NUMBER,
        "calls": _NUMBER,
        "flags": Field(list_of(text), default=()),
    },
    lambda trace, **members: TraceHeader(**members),  # noqa: ARG005 - the version has been checked
    extensible=True,  # recorders add fields of their own
)

_step: Final = record(
    {"request": Field(an_object), "response": Field(nullable(an_object))},
    lambda request, response: (request, response),
    extensible=True,
)


@contextmanager
def open_trace(path: Path) -> Iterator[Trace]:
    """
    Read the trace at *path*.

    Raises:
        UnreadableFileError: It is not a trace, or not of TRACE_VERSION; the error has file, line and field.
    """
    file = str(path)
    try:
        stream = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    except OSError as error:
        raise UnreadableFileError(error.strerror, file) from error
    with stream:
        lines = enumerate(_lines(stream, file), 1)
        header = _read(_header, next(lines, (1, "")), file)
        yield Trace(file, header, _steps(lines, file))


def _lines(stream: TextIO, file: str) -> Iterator[str]:
    try:
        yield from bounded_lines(stream)
    except OSError as error:
        raise UnreadableFileError(error.strerror, file) from error


def _steps(lines: Iterator[tuple[int, str]], file: str) -> Iterator[TraceStep]:
    for number, line in lines:
        if not is_blank(line):
            yield TraceStep(number, *_read(_step, (number, line), file), len(line))


def _read(check: Check[T], numbered_line: tuple[int, str], file: str) -> T:
    number, line = numbered_line
    try:
        return check(read_json(line), "")
    except MalformedInputError as error:
        raise UnreadableFileError(error.message, file, number, error.field or "") from error


def write_trace(stream: TextIO, header: TraceHeader, steps: Iterable[tuple[Json, Json]]) -> None:
    """Write a trace of *header* and *steps*, each a request with its response, to *stream*."""
    stream.write(write_json({"trace": TRACE_VERSION, **asdict(header)}) + "\n")
    stream.writelines(write_json({"request": request, "response": response}) + "\n" for request, response in steps)
