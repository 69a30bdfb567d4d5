"""
What the tasks of an import of request logs do, over Arrow's record batches; nothing here needs Spark.

Lines are parsed wherever they are read. The requests of all brokers come together, in the order of their times, and are
folded as the plain import does. The events of a group come together again, and are written.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from attrs import frozen

from sharestate.broker_log import LoggedRequest, LogImport, TopicLogs
from sharestate.broker_log.envelopes import Envelopes
from sharestate.broker_log.lines import COMPLETED, last_stamp, read_request
from sharestate.broker_log.request_order import RequestOrder
from sharestate.errors import RequestLogError
from sharestate.history import Header
from sharestate.history.arrow import EVENT_SCHEMA, encode_events
from sharestate.history.parquet_files import ParquetHistoryFile
from sharestate.json_lines import write_json

SHOWN_BROKEN: Final = 10
"""How many broken lines are named. [lines]"""

_EVENTS_PER_BATCH: Final = 1000
"""Events that are encoded at once, as in ``history_files``. [events]"""


class RowKind(IntEnum):
    """What a parsed row is; they come in this order."""

    BLOCK = 0
    """A part of a file: ``line`` is the number of its lines, ``number`` is 1 if its first stamp does not say its offset
    from UTC."""

    BROKEN = 1
    """A broken line; ``text`` is what is wrong with it."""

    REQUEST = 2
    """A line with a request; ``text`` is the line, without what wraps it."""


class Parsed(NamedTuple):
    """
    A row that is made of lines.

    Attributes:
        what: One of ``RowKind``.
        taken_us: When a handler took the request. [µs since 1970]
        connection: Its connection.
        number: Its number in that connection.
        file: The file.
        block: Where the part of the file begins that a task has read. [bytes]
        line: The number of the line in that part, from 1 on.
        text: The line, or what is wrong with it.
    """

    what: int
    taken_us: int
    connection: str
    number: int
    file: str
    block: int
    line: int
    text: bytes


PARSED_SCHEMA: Final = pa.schema(
    [
        pa.field("what", pa.int32()),
        pa.field("taken_us", pa.int64()),
        pa.field("connection", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("file", pa.string()),
        pa.field("block", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("text", pa.binary()),
    ]
)

FOLDED_SCHEMA: Final = pa.schema(
    [
        *(field.with_nullable(nullable=True) for field in EVENT_SCHEMA),
        pa.field("note", pa.string()),
        pa.field("count", pa.int64()),
    ]
)
"""Events, and notes: what was counted, which broken lines there are."""

WRITTEN_SCHEMA: Final = pa.schema([pa.field("note", pa.string()), pa.field("count", pa.int64())])
"""The notes, and the files that were written with the numbers of their events."""

FILE: Final = "file "
"""How the note of a file begins; its name follows."""

ASSUMED: Final = "assumed "
"""How the note of a group begins of which settings are assumed; it follows, with these, as JSON."""

OFFSET: Final = "offset "
"""How the note of brokers begins whose clocks disagree."""

CLOCK: Final = "clock "
"""How the note of a clock that was put forward begins."""

BROKEN: Final = "broken line "
"""How the note of a broken line begins; its place, and what is wrong with it, follow."""


@frozen(kw_only=True)
class ImportSettings:
    """What all tasks of an import know; see ``import_logs``."""

    segments: tuple[str, ...]
    """The directories of log segments, in any order."""

    properties: dict[str, Any]
    """The settings of the brokers."""

    groups: dict[str, Any]
    """The settings of groups when the logs begin."""

    group_id: str | None
    """The only group; all if None."""

    profile: str | None
    """The rules that brokers follow; by their releases if None."""

    field: str | None
    """Where JSON has the line; in one of the usual fields if None."""

    utc_offset_us: int
    """The offset from UTC of stamps that do not say their own. [µs]"""

    redaction_key: bytes | None
    """The key of hashes for names; None leaves them."""

    is_lenient: bool
    """Whether broken lines are skipped."""


# ---- parsing


def parse_lines(settings: ImportSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Yield what lines say, for each of which nothing but itself has to be known, and the pieces that it is made of.

    Args:
        settings: The settings.
        batches: Columns file, block and value, in the order of the lines of each part of a file.
    """
    parts: dict[tuple[str, int], _Part] = {}
    for batch in batches:
        values = batch.column("value").cast(pa.binary()).to_pylist()
        places = zip(*(batch.column(name).to_pylist() for name in ("file", "block")), strict=True)
        rows: list[Parsed] = []
        for place, value in zip(places, values, strict=True):
            if place not in parts:
                parts[place] = _Part(settings, *place)
            rows += parts[place].parsed(value)
        yield _encoded(rows)
    yield _encoded([row for part in parts.values() for row in part.rest()])


class _Part:
    """A part of a file that a task reads."""

    def __init__(self, settings: ImportSettings, file: str, block: int) -> None:
        self._settings = settings
        self._place = file, block
        self._envelopes = Envelopes(settings.field)
        self._size = 0
        self._lacks_offset: bool | None = None

    def parsed(self, line: bytes) -> Iterator[Parsed]:
        """Yield the rows of the next line."""
        self._size += 1
        try:
            opened = self._envelopes.opened(line.removeprefix(BOM_UTF8), self._size)
        except ValueError as error:
            yield self._broken(self._size, str(error))
            return
        for number, text in opened:
            yield from self._request(number, text)

    def rest(self) -> Iterator[Parsed]:
        """Yield the rows of pieces whose last ones are not there, and of the part itself."""
        for number, text in self._envelopes.rest():
            yield from self._request(number, text)
        lacks_offset = int(self._lacks_offset or False)
        yield Parsed(RowKind.BLOCK, 0, "", lacks_offset, *self._place, self._size, b"")

    def _broken(self, number: int, what: str) -> Parsed:
        return Parsed(RowKind.BROKEN, 0, "", 0, *self._place, number, what.encode(errors="replace"))

    def _request(self, number: int, line: bytes) -> Iterator[Parsed]:
        if self._lacks_offset is None:
            stamp = last_stamp(line, line.find(COMPLETED))
            self._lacks_offset = stamp is not None and stamp[4] is None
        try:
            request = read_request(line, self._place[0], number, self._settings.utc_offset_us)
        except RequestLogError as error:
            yield self._broken(number, f"{error.field}: {error.message}" if error.field else str(error.message))
            return
        if request is not None:
            times = request.taken_us, request.connection, request.correlation_id
            yield Parsed(RowKind.REQUEST, *times, *self._place, number, line)


def _encoded(rows: list[Parsed]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(PARSED_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PARSED_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PARSED_SCHEMA)


# ---- the fold


def fold(settings: ImportSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Yield the events of all share partitions, and notes.

    Args:
        settings: The settings.
        batches: What ``parse_lines`` has made of all files, sorted by all columns but the last.

    Raises:
        RequestLogError: A line is broken, unless such lines are skipped.
        SegmentError: Segments cannot be read.
    """
    rows = (
        Parsed(*row) for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)
    )
    requests = _ParsedRequests(settings, rows)
    events = LogImport(
        requests,
        TopicLogs(map(Path, settings.segments)),
        broker=settings.properties,
        groups=settings.groups,
        group_id=settings.group_id,
        profile=settings.profile,
        redaction_key=settings.redaction_key,
    )
    made = iter(events)
    while chunk := list(islice(made, _EVENTS_PER_BATCH)):
        batch = encode_events(chunk)
        extra = [pa.nulls(len(chunk), pa.string()), pa.nulls(len(chunk), pa.int64())]
        yield pa.RecordBatch.from_arrays([*batch.columns, *extra], schema=FOLDED_SCHEMA)
    notes = [*events.counts.items(), *requests.notes()]
    notes += [(f"{ASSUMED}{write_json(list(each))}", 1) for each in events.assumed().items()]
    notes += [(f"{OFFSET}{offset}", 1) for offset in events.clock_offsets()]
    rows_of_notes = [{"note": note, "count": count} for note, count in notes]
    yield pa.RecordBatch.from_pylist(rows_of_notes, schema=FOLDED_SCHEMA)


class _ParsedRequests:
    """The requests of parsed rows, in order."""

    def __init__(self, settings: ImportSettings, rows: Iterator[Parsed]) -> None:
        self._rows = rows
        self._is_lenient = settings.is_lenient
        self._utc_offset_us = settings.utc_offset_us
        self._order = RequestOrder()
        self._begins: dict[tuple[str, int], int] = {}
        self._lines = self._broken = self._read = self._lacking = 0
        self._first_broken: list[RequestLogError] = []

    def __iter__(self) -> Iterator[LoggedRequest]:
        return self._order.ordered(self._requests())

    def _requests(self) -> Iterator[LoggedRequest]:
        for what, rows in groupby(self._rows, itemgetter(0)):
            if what == RowKind.BLOCK:
                self._number(list(rows))
            elif what == RowKind.BROKEN:
                for row in rows:
                    self.broken(RequestLogError(row.text.decode(errors="replace"), _path(row.file), self._line(row)))
            else:
                for row in rows:
                    request = read_request(row.text, _path(row.file), self._line(row), self._utc_offset_us)
                    if request is not None:
                        self._read += 1
                        yield request

    def _number(self, blocks: list[Parsed]) -> None:
        """Note at which line each part of a file begins."""
        for file, parts in groupby(sorted(blocks, key=itemgetter(4, 5)), itemgetter(4)):
            begin = 0
            for part in parts:
                self._begins[file, part.block] = begin
                begin += part.line
                self._lines += part.line
                self._lacking += part.number

    def _line(self, row: Parsed) -> int:
        return self._begins[row.file, row.block] + row.line

    def broken(self, error: RequestLogError) -> None:
        """Count a line that makes no sense, or raise its error."""
        if not self._is_lenient:
            raise error
        self._broken += 1
        if len(self._first_broken) < SHOWN_BROKEN:
            self._first_broken.append(error)

    def notes(self) -> Iterator[tuple[str, int]]:
        """Yield what was counted, and the first broken lines."""
        yield "lines", self._lines
        yield "requests", self._read
        yield "late", self._order.late
        yield "repeated", self._order.repeated
        yield "without_utc_offset", self._lacking
        yield "broken_lines", self._broken
        if self._order.clock_change is not None:
            yield f"{CLOCK}{self._order.clock_change}", 1
        for error in self._first_broken:
            yield f"{BROKEN}{error}", 1


def _path(uri: str) -> str:
    """Return the path of a local file as Python has it, and any other as Spark has it."""
    return "/" + unquote(uri).removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


# ---- the files


def write_events(directory: str, header: Header, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Write the events of a task as a history, and yield its name and the notes.

    Args:
        directory: The directory; the name of the file in it is new.
        header: The header of the history.
        batches: What ``fold`` has made, each share partition's together, in order.
    """
    path = Path(directory, f"{uuid4().hex}.parquet")
    file: ParquetHistoryFile | None = None
    notes: list[tuple[str, int]] = []
    count = 0
    try:
        for batch in batches:
            is_note = batch.column("note").is_valid()
            noted = batch.filter(is_note)
            notes += zip(noted.column("note").to_pylist(), noted.column("count").to_pylist(), strict=True)
            events = batch.filter(batch.column("note").is_null()).select(EVENT_SCHEMA.names)
            if events.num_rows:
                file = file or ParquetHistoryFile(path, header)
                file.write_batch(pa.RecordBatch.from_arrays(events.columns, schema=EVENT_SCHEMA))
                count += events.num_rows
    finally:
        if file is not None:
            file.close()
    if file is not None:
        notes.append((f"{FILE}{path.name}", count))
    names, counts = zip(*notes, strict=True) if notes else ((), ())
    arrays = [pa.array(names, pa.string()), pa.array(counts, pa.int64())]
    yield pa.RecordBatch.from_arrays(arrays, schema=WRITTEN_SCHEMA)
