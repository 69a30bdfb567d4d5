"""Files of events that other programs have printed, one in a line, read as operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from sharestate.audit.operation_files import OperationsError
from sharestate.audit.operations import LoggedOperation, OperationsHeader
from sharestate.errors import MalformedInputError
from sharestate.json_checks import an_object
from sharestate.json_line_files import NumberedLines
from sharestate.json_lines import Json, read_json


class EventsReader(ABC):
    """
    A file of events, opened to be read once, with what an ``OperationsReader`` has.

    Lines that do not begin with ``{`` are what a program has printed besides.

    Args:
        path: The file.
        group: The share group, which such files do not name.
        client: The client; the file's name if None.

    Raises:
        OperationsError: It cannot be read.

    Attributes:
        path: The file.
        group: The share group.
        header: What stands for the header of a file of operations.
        size: The size of the file. [bytes]
    """

    def __init__(self, path: Path | str, *, group: str, client: str | None = None) -> None:
        """Open the file."""
        self.path = Path(path)
        self.group = group
        self.header = self._header(client or self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name)
        self._lines = NumberedLines(path, OperationsError)
        self.size = self._lines.size

    @property
    def position(self) -> int:
        """How much of the file was read so far. [bytes]"""
        return self._lines.position

    def __iter__(self) -> Iterator[tuple[int, LoggedOperation]]:
        """
        Yield the operations with the numbers of the lines that they are from, and close the file.

        Raises:
            OperationsError: A line is no event; operations of those before it were yielded.
        """
        number = 0
        with self:
            for number, line in self._lines:
                if line.startswith("{"):
                    for operation in self._read(number, line):
                        yield number, operation
            for operation in self._ended():
                yield number, operation

    def _read(self, number: int, line: str) -> list[LoggedOperation]:
        try:
            return list(self._operations(an_object(read_json(line), "")))
        except MalformedInputError as error:
            raise OperationsError(error.message, str(self.path), number, error.field or "") from error

    @abstractmethod
    def _header(self, client: str) -> OperationsHeader:
        """Return what stands for the header."""

    @abstractmethod
    def _operations(self, event: dict[str, Json]) -> Iterator[LoggedOperation]:
        """Yield the operations that an event stands for; MalformedInputError if it is not one."""

    @abstractmethod
    def _ended(self) -> Iterator[LoggedOperation]:
        """Yield the operations that the end of the file stands for."""

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
