"""Files of operations: a header, then one operation in each line; compressed if the name ends with ``.gz``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from sharestate.audit.operations import (
    LoggedOperation,
    OperationsHeader,
    read_operation,
    read_operations_header,
)
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_line_files import JsonLinesFile, NumberedLines
from sharestate.json_lines import read_json


class OperationsError(UnreadableFileError):
    """A file of operations that cannot be read, or an operation in it that is malformed."""


class OperationsReader:
    """
    A file of operations, opened to be read once.

    Args:
        path: The file.

    Raises:
        OperationsError: It cannot be read, or does not begin with a header of a version that is known.

    Attributes:
        header: Its header.
        size: The size of the file. [bytes]
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file and read its header."""
        self._lines = NumberedLines(path, OperationsError)
        self.size = self._lines.size
        number = 1
        try:
            number, line = next(iter(self._lines), (1, ""))
            self.header = read_operations_header(read_json(line))
        except MalformedInputError as error:
            self.close()
            raise OperationsError(error.message, str(path), number, error.field or "") from error
        except OperationsError:
            self.close()
            raise

    @property
    def position(self) -> int:
        """How much of the file was read so far. [bytes]"""
        return self._lines.position

    def __iter__(self) -> Iterator[tuple[int, LoggedOperation]]:
        """
        Yield the operations with the numbers of their lines, and close the file.

        Raises:
            OperationsError: A line is no operation, or nothing says which client it is of; those before it were
                yielded.
        """
        with self:
            for number, line in self._lines:
                try:
                    operation = read_operation(read_json(line))
                    self._expect_client(operation)
                except MalformedInputError as error:
                    raise OperationsError(error.message, str(self._lines.path), number, error.field or "") from error
                yield number, operation

    def _expect_client(self, operation: LoggedOperation) -> None:
        if operation.client is None and self.header.client is None:
            message = "missing, here and in the header"
            raise MalformedInputError(message, "client")

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class OperationsFile:
    """A file of operations that is being written; a context manager that closes it."""

    def __init__(self, path: Path | str, header: OperationsHeader) -> None:
        """Open the file, and write *header*."""
        self._file = JsonLinesFile(path, header.to_json())

    def write(self, operations: Iterable[LoggedOperation]) -> None:
        """Append *operations*."""
        self._file.write_lines(operation.to_json() for operation in operations)

    def replace_header(self, header: OperationsHeader) -> None:
        """Close the file, and write another *header* into it."""
        self._file.close()
        self._file.replace_header(header.to_json())

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
