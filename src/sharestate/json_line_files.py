"""Files of JSON lines: read within bounds, and written; compressed if the name ends with ``.gz``."""

from __future__ import annotations

import gzip
import io
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, TextIO

from sharestate.errors import UnreadableFileError
from sharestate.json_lines import Json, bounded_lines, is_blank, most_lines, write_json

_COPIED: Final = 2**20
"""How much of a file is copied at once. [bytes]"""

_RATIO: Final = 256
_MOST_EXCESS: Final = 2**30
"""How much of a file is decompressed: its size so many times, and so much more [bytes]. gzip makes up to 1,032 bytes of
one; what brokers, clients and kcat have written for our tests becomes 26 times as large at the most."""


class BoundedGzipFile(gzip.GzipFile):
    """
    A file that was compressed with gzip, to be read within bounds.

    Args:
        file: The file.
        size: Its size. [bytes]

    Raises:
        BadGzipFile: From what reads: it is damaged, or decompresses to too much.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        """Open it."""
        super().__init__(fileobj=file)
        self._most = _RATIO * size + _MOST_EXCESS

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        return self._bounded(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Return some of the next bytes."""
        return self._bounded(super().read1(size))

    def _bounded(self, data: bytes) -> bytes:
        if self.tell() > self._most:
            message = f"more than {self._most} bytes when it is decompressed"
            raise gzip.BadGzipFile(message)
        return data


class NumberedLines:
    """
    A file of JSON lines, opened to be read once: iterating yields the lines that are not blank, with their numbers.

    Args:
        path: The file.
        error: The class of the errors that it raises.

    Raises:
        UnreadableFileError: It cannot be read, or has more lines, or more bytes once they are decompressed, than its
            size allows; of the class *error*.

    Attributes:
        path: The file.
        size: The size of the file. [bytes]
    """

    def __init__(self, path: Path | str, error: type[UnreadableFileError]) -> None:
        """Open the file."""
        self.path = Path(path)
        self._error = error
        try:
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                message = "no regular file, and opening a pipe might wait for ever"
                raise error(message, str(path))
            self.size = found.st_size
            self._file = self.path.open("rb")
        except OSError as failure:
            raise error(failure.strerror, str(path)) from failure
        binary = BoundedGzipFile(self._file, self.size) if self.path.suffix == ".gz" else self._file
        self._stream = io.TextIOWrapper(binary, "utf-8-sig", errors="surrogateescape", newline="\n")
        self._lines = self._numbered()

    @property
    def position(self) -> int:
        """How much of the file was read so far. [bytes]"""
        return self.size if self._file.closed else self._file.tell()

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield what is left of the lines."""
        return self._lines

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()  # which a decompressing stream leaves open

    def _numbered(self) -> Iterator[tuple[int, str]]:
        number = 0
        most = most_lines(self.size)
        try:
            for number, line in enumerate(bounded_lines(self._stream), 1):
                if number > most:
                    message = f"more than {most} lines in {self.size} bytes"
                    raise self._error(message, str(self.path), number)
                if not is_blank(line):
                    yield number, line
        except (OSError, EOFError, zlib.error) as failure:
            message = f"cannot be read: {failure}"
            raise self._error(message, str(self.path), number + 1) from failure


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
