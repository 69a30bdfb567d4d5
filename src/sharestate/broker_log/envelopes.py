r"""
What wraps the lines of a request log where something has collected them.

A line of a broker begins with its stamp, and ends with the request: ``[2026-11-22 04:35:43,518] DEBUG Completed
request:{...}``. Whatever stands before the stamp does no harm: syslog's prefixes, those of ``docker compose`` and of
``kubectl``. Three things have to be taken off:

- the tags of container runtimes (CRI), ``2026-11-22T04:35:43.5Z stdout P ...``, of which all but the last piece of a
  long line have the tag ``P``;
- Docker's files of JSON, ``{"log":"...\n","stream":"stdout","time":"..."}``, where only the last piece of a long line
  ends with a newline;
- JSON of collectors and of log4j2's layouts, which has the line in one of its fields, and often the time in another.

They may be in each other, such as a layout's JSON in a container's log.

Source:
    KEP "CRI log format" (Kubernetes), jsonfilelog (Docker), JsonLayout and JsonTemplateLayout (Log4j 2.25), Loki's
    ``logcli --output=jsonl``, Fluentd's ``out_file``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from sharestate.broker_log.lines import COMPLETED, MAX_LINE, STAMP, decoded

_CRI: Final = re.compile(rb"(\d{4}-\S+) (stdout|stderr) ([PF])(?::\S*)? ")
"""The time, the stream, and whether the line is a piece (``P``) or the last one (``F``)."""

_FRONT: Final = 50
"""Where lines of container runtimes have the stream: after a stamp of 35 bytes, with nanoseconds and offset. [bytes]"""

_FIELDS: Final = ("message", "log", "line", "short_message")
"""Where JSON has the line: Log4j, Elastic Common Schema and Fluentd; Docker and Fluent Bit; Loki; GELF."""

_TIMES: Final = ("@timestamp", "timestamp", "time", "ts", "instant", "timeMillis")
"""Where JSON has the time, likewise."""

_DOCKER: Final = frozenset({"log", "stream", "time", "attrs"})
"""The fields of Docker's files."""

_MOST_WRAPPED: Final = 4
"""How many envelopes a line may have around it; a layout's JSON in a container's log in a collector's are three."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""Times since 1970 that are less than the first are of a unit with that many microseconds: seconds until 5138."""


class _Opened(NamedTuple):
    """
    What was in an envelope.

    Attributes:
        stamp: The time that the envelope says; empty if none.
        text: The line, or a piece of it.
        stream: The stream that the container wrote it to; None if the envelope is no container's.
        is_piece: Whether the line goes on in a later piece.
    """

    stamp: bytes
    text: bytes
    stream: str | None = None
    is_piece: bool = False


class _Pieces:
    """The pieces of a line, and the number of the line that has the first one."""

    def __init__(self, number: int, stamp: bytes) -> None:
        self.number = number
        self._parts = [stamp, b" "]
        self.size = 0

    def add(self, text: bytes) -> None:
        self.size += len(text)
        self._parts.append(text)

    @property
    def line(self) -> bytes:
        """The pieces put together."""
        return b"".join(self._parts)


class Envelopes:
    """
    The envelopes of the lines of a file, which are opened in the order of the lines.

    Args:
        field: Where JSON has the line, as in ``_source.message``; it is looked for in the usual fields, too.
    """

    def __init__(self, field: str | None = None) -> None:
        """Start before the first line."""
        self._fields = _FIELDS if field is None else (field, *_FIELDS)
        self._pieces: dict[str, _Pieces] = {}

    def opened(self, line: bytes, number: int) -> list[tuple[int, bytes]]:
        """
        Return the lines that have a request and are whole with this one, without envelopes, and their numbers.

        Args:
            line: The line of the file.
            number: Its number.

        Raises:
            ValueError: It has a request, and its envelope cannot be opened.
        """
        cri = _CRI.match(line) if line.find(b" std", 0, _FRONT) > 0 else None
        if cri is not None:
            stamp, stream, tag = cri.groups()
            is_piece = tag == b"P"
            text = line[cri.end() :].rstrip(b"\r\n") if is_piece else line[cri.end() :]
            return self._whole(number, _Opened(stamp, text, stream.decode(), is_piece))
        begin = line.find(COMPLETED)
        if line[:1] == b"{" and (begin >= 0 or self._pieces):
            return self._whole(number, self._object(line, 0))
        if begin < 0:
            return []
        return [(number, self._inner(line) if _is_quoted(line, begin) else line)]

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines whose last pieces are not there."""
        pieces, self._pieces = self._pieces, {}
        for each in pieces.values():
            if COMPLETED in each.line:
                yield each.number, self._inner(each.line)

    def _whole(self, number: int, opened: _Opened) -> list[tuple[int, bytes]]:
        """Return what is whole with this piece: its line, and one that turns out to have been whole before it."""
        stamp, text, stream, is_piece = opened
        if stream is None:
            return [(number, self._inner(stamp + b" " + text))] if COMPLETED in text else []
        found = []
        before = self._pieces.pop(stream, None)
        if before is not None and COMPLETED in text:  # where another line begins, the one before has had no newline
            found.append((before.number, self._inner(before.line)))
            before = None
        if before is None:
            if COMPLETED not in text:  # of another logger, or the end of a line that began in another file
                return found
            before = _Pieces(number, stamp)
        before.add(text)
        if before.size > MAX_LINE:
            message = f"the pieces of the line are more than {MAX_LINE} bytes"
            raise ValueError(message)
        if is_piece:
            self._pieces[stream] = before
        else:
            found.append((before.number, self._inner(before.line)))
        return found

    def _inner(self, line: bytes) -> bytes:
        """Return a line without the JSON that is around it."""
        for _ in range(_MOST_WRAPPED):
            begin = line.find(COMPLETED)
            if not _is_quoted(line, begin):
                break
            opened = self._object(line, line.find(b"{"))
            line = opened.stamp + b" " + opened.text
        return line

    def _object(self, line: bytes, begin: int) -> _Opened:
        """Open the JSON that begins at the byte *begin*."""
        if begin > line.find(COMPLETED) >= 0:
            message = "the request is in JSON that takes several lines: have each event written in one line"
            raise ValueError(message)
        value = decoded(line[begin:])
        for_line = [found for each in self._fields if (found := _member(value, each)) is not None]
        holder, text = next((found for found in for_line if "Completed request:" in found[1]), (value, None))
        if text is None:
            if COMPLETED in line:
                fields = ", ".join(self._fields)
                message = f"it is JSON without the request in one of the fields {fields}: name its field with --field"
                raise ValueError(message)
            text = for_line[0][1] if for_line else ""
        stream = value.get("stream")
        is_docker = type(stream) is str and (value.keys() <= _DOCKER or "logtag" in value)
        tag = value.get("logtag", "F" if text.endswith("\n") else "P")
        return _Opened(
            _stamp(holder) or _stamp(value),
            text.encode("utf-8", "surrogatepass"),
            stream if is_docker else None,
            is_docker and tag == "P",
        )


def _is_quoted(line: bytes, begin: int) -> bool:
    r"""Return whether the request after the words at *begin* is in a string of JSON, where quotes are ``\"``."""
    after = begin + len(COMPLETED)
    return line[after : after + 2] != b'{"' and line[after : after + 20].lstrip().startswith(b"{\\")


def _member(value: Any, path: str) -> tuple[Mapping[str, Any], str] | None:  # noqa: ANN401 - any JSON
    """Return the text at a dotted *path*, and the object that has it; names of fields may have dots themselves."""
    if type(value) is not dict:
        return None
    if type(value.get(path)) is str:
        return value, value[path]
    names = path.split(".")
    for size in range(1, len(names)):
        found = _member(value.get(".".join(names[:size])), ".".join(names[size:]))
        if found is not None:
            return found
    return None


def _stamp(value: Mapping[str, Any]) -> bytes:
    """Return the time that an object has; empty if there is none."""
    for name in _TIMES:
        time = value.get(name)
        if type(time) is dict and type(time.get("epochSecond")) is int:  # Log4j's JsonLayout
            nanoseconds = time.get("nanoOfSecond")
            return _since_1970(time["epochSecond"] * 10**9 + (nanoseconds if type(nanoseconds) is int else 0))
        if type(time) is str:
            if STAMP.match(time.encode(errors="replace")):
                return time.encode(errors="replace")
            time = int(time) if time.isascii() and time.isdigit() and len(time) < _LONGEST_TIME else None
        if type(time) is int or type(time) is float:
            return _since_1970(time)
    return b""


_LONGEST_TIME: Final = 25
"""A time in as many digits is refused: in nanoseconds one has 19. [digits]"""


def _since_1970(time: float) -> bytes:
    """Return a time since 1970, in whatever unit it is, as text; empty if it is not a time."""
    microseconds = next((time * unit for end, unit in _UNITS if 0 <= time < end), time / 1000)
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds").encode()
    except (OverflowError, ValueError):
        return b""
