"""What files of JSON lines are bounded by."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sharestate import json_line_files
from sharestate.audit import OperationsError, OperationsReader
from sharestate.broker_log import RequestLog
from sharestate.errors import RequestLogError, UnreadableFileError
from sharestate.state_topic import StateTopicFile

KIB = 2**10

HEADER = b'{"sharestate_operations": 1, "client": "c1"}'


@pytest.fixture
def _little_excess(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file become larger by 100 KiB only."""
    monkeypatch.setattr(json_line_files, "_MOST_EXCESS", 100 * KIB)


def written(path: Path, *lines: bytes) -> Path:
    """Return a file that has these lines, compressed."""
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    return path


LONG_LINE = b" " * 5000 * KIB
MANY_LINES = b"\n".join([b" " * 100 * KIB] * 50)


@pytest.mark.parametrize("end", [LONG_LINE, MANY_LINES], ids=["one line", "many lines"])
@pytest.mark.parametrize(
    ("read", "begin", "error"),
    [
        (OperationsReader, HEADER, OperationsError),
        (StateTopicFile, b"", UnreadableFileError),
        (lambda path: RequestLog([path]), b"", RequestLogError),
    ],
)
@pytest.mark.usefixtures("_little_excess")
def test_a_file_is_not_decompressed_to_more_than_its_size_allows(
    tmp_path: Path, end: bytes, read: Callable[[Path], Iterable[object]], begin: bytes, error: type[Exception]
) -> None:
    """Whoever reads one that becomes a thousand times as large is told so before it has all been decompressed."""
    path = written(tmp_path / "a.jsonl.gz", begin, end)

    with pytest.raises(error, match="when it is decompressed"):
        list(read(path))


def test_lines_that_repeat_themselves_are_read(tmp_path: Path) -> None:
    """A file that was written in order is read whole, however well it is compressed."""
    line = b'{"op":"fetch","begin_ms":1,"end_ms":2,"group":"g"}'
    path = written(tmp_path / "a.jsonl.gz", HEADER, *[line] * 5000)

    assert path.stat().st_size * 100 < path_size(path)
    assert sum(1 for _ in OperationsReader(path)) == 5000


def path_size(path: Path) -> int:
    """Return how large it is once it is decompressed. [bytes]"""
    return len(gzip.decompress(path.read_bytes()))
