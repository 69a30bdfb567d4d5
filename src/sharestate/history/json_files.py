"""Histories as JSON Lines: a header, then one event in each line; compressed if the name ends with ``.gz``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

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
from sharestate.json_line_files import JsonLinesFile, NumberedLines
from sharestate.json_lines import read_json


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
        self._lines = NumberedLines(path, HistoryError)
        self._path = self._lines.path
        self.size = self._lines.size
        self.header = self._read_header()

    @property
    def position(self) -> int:
        """How much of the file was read so far. [bytes]"""
        return self._lines.position

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
        self._lines.close()

    def _read_header(self) -> Header:
        number = 1
        try:
            number, line = next(iter(self._lines), (1, ""))
            return read_header(read_json(line), "")
        except HistoryError:
            self.close()
            raise
        except MalformedInputError as error:
            self.close()
            raise HistoryError(error.message, str(self._path), number, error.field or "") from error


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
