"""Histories as JSON Lines: a header, then one event in each line; compressed if the name ends with ``.gz``."""

from __future__ import annotations

import gzip
import io
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, Self, TextIO

from attrs import evolve

from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history.events import (
    Event,
    PartSequenceCheck,
    SequenceCheck,
    read_event,
    write_event,
)
from sharestate.history.header import Header, read_header
from sharestate.json_lines import Json, bounded_lines, is_blank, most_lines, read_json, write_json

_COPIED: Final = 2**20
"""How much of a file is copied at once. [bytes]"""


class JsonHistory:
    """
    A history in JSON Lines, opened to be read once.

    Args:
        path: The file.

    Raises:
        HistoryError: It cannot be read, or does not begin with a header of a version that is known.

    Attributes:
        header: Its header.
        position: How much of the file was read so far. [bytes]
        size: The size of the file. [bytes]
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file and read its header."""
        self._path = Path(path)
        try:
            found = self._path.stat()
            if not stat.S_ISREG(found.st_mode):
                message = "no regular file, and opening a pipe might wait for ever"
                raise HistoryError(message, str(path))
            self.size = found.st_size
            self._file = self._path.open("rb")
        except OSError as error:
            raise HistoryError(error.strerror, str(path)) from error
        binary = gzip.GzipFile(fileobj=self._file) if self._path.suffix == ".gz" else self._file
        self._stream = io.TextIOWrapper(binary, "utf-8-sig", errors="surrogateescape", newline="\n")
        self._lines = self._numbered(self._stream)
        self.header = self._read_header()

    @property
    def position(self) -> int:
        """How much of the file was read so far. [bytes]"""
        return self.size if self._file.closed else self._file.tell()

    def __iter__(self) -> Iterator[Event]:
        """
        Yield the events, in the order of the lines.

        Raises:
            HistoryError: A line is no event, or a share partition's events are not in order; those before it were
                yielded.
        """
        return self._events(SequenceCheck())

    def part(self) -> Iterator[Event]:
        """
        Yield the events of a file that has a part of a history: a share partition's may begin with any number.

        Raises:
            HistoryError: As from the iteration.
        """
        return self._events(PartSequenceCheck())

    def _events(self, sequence: SequenceCheck) -> Iterator[Event]:
        with self:
            for number, line in self._lines:
                try:
                    event = read_event(read_json(line))
                    sequence.expect(event)
                except MalformedInputError as error:
                    raise HistoryError(error.message, str(self._path), number, error.field or "") from error
                yield event

    def __enter__(self) -> Self:
        """Return the history."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()  # which a decompressing stream leaves open

    def _read_header(self) -> Header:
        number = 1
        try:
            number, line = next(self._lines, (1, ""))
            return read_header(read_json(line), "")
        except HistoryError:
            self.close()
            raise
        except MalformedInputError as error:
            self.close()
            raise HistoryError(error.message, str(self._path), number, error.field or "") from error

    def _numbered(self, stream: TextIO) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank, with their numbers."""
        number = 0
        most = most_lines(self.size)
        try:
            for number, line in enumerate(bounded_lines(stream), 1):
                if number > most:
                    message = f"more than {most} lines in {self.size} bytes"
                    raise HistoryError(message, str(self._path), number)
                if not is_blank(line):
                    yield number, line
        except (OSError, EOFError, zlib.error) as error:
            message = f"cannot be read: {error}"
            raise HistoryError(message, str(self._path), number + 1) from error


class JsonLinesFile:
    """JSON Lines that are being written, the first of them a header; compressed if the name ends with ``.gz``."""

    def __init__(self, path: Path | str, header: Json) -> None:
        """Open the file, and write *header*."""
        self._path = Path(path)
        self._write_header(self._path, header)
        self._header_size = self._path.stat().st_size
        self._stream = self._open(self._path, is_new=False)

    def write_lines(self, values: Iterable[Json]) -> None:
        """Append *values*, each as a line."""
        self._stream.writelines(f"{write_json(value)}\n" for value in values)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def replace_header(self, header: Json) -> None:
        """Write another *header* into the file, which is closed; the lines are copied, and not looked at."""
        target = self._path.with_name(f".{self._path.name}")
        try:
            self._write_header(target, header)
            with self._path.open("rb") as lines, target.open("ab") as file:
                lines.seek(self._header_size)
                shutil.copyfileobj(lines, file, _COPIED)
            target.replace(self._path)
        finally:
            target.unlink(missing_ok=True)

    def _write_header(self, path: Path, header: Json) -> None:
        # If it is compressed, the header is a member of its own, so that the rest can be copied as it is.
        with self._open(path, is_new=True) as stream:
            stream.write(f"{write_json(header)}\n")

    def _open(self, path: Path, *, is_new: bool) -> TextIO:
        if self._path.suffix == ".gz":
            mode: Literal["wt", "at"] = "wt" if is_new else "at"
            return gzip.open(path, mode, compresslevel=6, encoding="ascii", newline="\n")
        return path.open("w" if is_new else "a", encoding="ascii", newline="\n")


class JsonHistoryFile:
    """Writes a history as JSON Lines; a context manager that closes the file."""

    def __init__(self, path: Path | str, header: Header) -> None:
        """Open the file, and write *header*."""
        self._header = self._last_header = header
        self._file = JsonLinesFile(path, header.to_json())

    def write(self, events: Iterable[Event]) -> None:
        """Append *events*."""
        self._file.write_lines(map(write_event, events))

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Add the names of topics, by their ids, to the header, which is written again when the file is closed."""
        self._last_header = evolve(self._last_header, topics={**self._last_header.topics, **names})

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._last_header != self._header:
            self._file.replace_header(self._last_header.to_json())
            self._header = self._last_header
