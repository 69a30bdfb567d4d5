"""Files of request logs: which ones can be read, and how their bytes become lines."""

from __future__ import annotations

import codecs
import gzip
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Final

from sharestate.broker_log.lines import MAX_LINE
from sharestate.errors import RequestLogError
from sharestate.json_line_files import BoundedGzipFile
from sharestate.json_lines import most_lines

_GZIP: Final = b"\x1f\x8b"
_NOT_READ: Final = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first"),
    (b"BZh", "compressed with bzip2: decompress it first"),
    (b"\xfd7zXZ\x00", "compressed with xz: decompress it first"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: decompress it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"PAR1", "Parquet, and no request log"),
    (codecs.BOM_UTF32_LE, "text in UTF-32: convert it to UTF-8 first"),
)
"""How files begin that are not read, and what they are."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SIZE: Final = max(len(begin) for begin, _ in _NOT_READ)

_BYTES_OF_LINE: Final = 24
"""The fewest bytes of a line of a compressed file, but for 10,000 lines: brokers write 59 and more. [bytes]"""


class LogFile:
    """
    A file of a request log.

    Args:
        path: The file.

    Raises:
        RequestLogError: There is none, or it cannot be read again and again, as a pipe cannot.

    Attributes:
        path: The file.
        size: Its size. [bytes]
    """

    def __init__(self, path: Path | str) -> None:
        """Look for the file, and do not open it yet, for which a pipe would wait."""
        self.path = Path(path)
        try:
            found = self.path.stat()
        except (OSError, ValueError) as error:
            raise _unreadable(self.path, error) from error
        if not stat.S_ISREG(found.st_mode):
            message = "no regular file, and it is read twice: write what it has to a file first"
            raise RequestLogError(message, str(path))
        self.size = found.st_size
        self._file: IO[bytes] | None = None
        self._position = 0

    @property
    def position(self) -> int:
        """How much of it was read. [bytes]"""
        if self._file is not None and not self._file.closed:
            self._position = self._file.tell()
        return self._position

    @contextmanager
    def lines(self) -> Iterator[Iterator[bytes]]:
        """
        Return a context with its lines as UTF-8, each of MAX_LINE bytes at the most.

        Raises:
            RequestLogError: It cannot be read.
            EOFError: It is compressed, and cut off.
            OSError: Its compression is damaged; also zlib.error.
        """
        with _opened(self.path) as self._file, _stream(self._file, self.size, str(self.path)) as stream:
            if isinstance(stream, io.TextIOWrapper):
                yield self._few(map(str.encode, iter(partial(stream.readline, MAX_LINE), "")))
            else:
                lines = iter(partial(stream.readline, MAX_LINE), b"")
                yield lines if stream is self._file else self._few(lines)
            self._position = self._file.tell()

    def _few(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield *lines* that were compressed, or are text in UTF-16, up to as many as there may be."""
        most = most_lines(self.size, _BYTES_OF_LINE)
        yield from islice(lines, most)
        if next(lines, None) is not None:
            message = f"more than {most} lines in {self.size} bytes"
            raise RequestLogError(message, str(self.path), most + 1)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        yield file


def _unreadable(path: Path, error: Exception) -> RequestLogError:
    message = f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    return RequestLogError(message, str(path))


def _stream(file: io.BufferedReader, size: int, name: str) -> io.BufferedReader | io.TextIOWrapper:
    """Return what reads the lines of a file, by how it begins."""
    stream = file
    begin = file.peek(_SIZE)[:_SIZE]
    if begin.startswith(_GZIP):
        stream = io.BufferedReader(BoundedGzipFile(file, size))
        begin = stream.peek(_SIZE)[:_SIZE]
    for magic, what in _NOT_READ:
        if begin.startswith(magic):
            message = f"it is {what}"
            raise RequestLogError(message, name)
    if begin.startswith(_UTF_16):
        return io.TextIOWrapper(stream, "utf-16", newline="\n")
    if begin.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    return stream


COMPRESSION_ERRORS: Final = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a compressed file raises that is damaged or cut off."""
