"""Files of histories, by their suffix: ``.jsonl``, ``.jsonl.gz`` or ``.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Protocol, Self

from sharestate.errors import HistoryError
from sharestate.history.events import Event
from sharestate.history.header import Header, Order
from sharestate.history.json_files import JsonHistory, JsonHistoryFile


class HistoryReader(Protocol):
    """A history that is being read: its header, its events, and how far reading is."""

    header: Header
    """Its header."""

    @property
    def size(self) -> int:
        """The size: bytes of JSON Lines, events of Parquet."""

    @property
    def position(self) -> int:
        """How much of that was read so far."""

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, and close the file."""

    def __enter__(self) -> Self:
        """Return the history."""

    def __exit__(self, *_error: object) -> None:
        """Close the file."""

    def close(self) -> None:
        """Close the file."""


class HistoryFile(Protocol):
    """A history that is being written."""

    def write(self, events: Iterable[Event], /) -> None:
        """Append events."""

    def name_topics(self, names: Mapping[str, str], /) -> None:
        """Add the names of topics, by their ids, to the header."""

    def close(self) -> None:
        """Write what is left, and close the file."""

    def __enter__(self) -> Self:
        """Return the writer."""

    def __exit__(self, *_error: object) -> None:
        """Close the file."""


def is_parquet(path: Path | str) -> bool:
    """
    Return whether *path* is named like Parquet; if not, it is named like JSON Lines.

    Raises:
        HistoryError: It is named like neither.
    """
    name = str(path)
    if name.endswith(".parquet"):
        return True
    if name.endswith((".jsonl", ".jsonl.gz")):
        return False
    message = "expected a name that ends with .jsonl, .jsonl.gz or .parquet"
    raise HistoryError(message, name)


def open_history(path: Path | str) -> HistoryReader:
    """
    Open a history to read it: its ``header``, then, by iterating, its events.

    Raises:
        HistoryError: It cannot be read, is no history, or is of a version that is not known.
    """
    if not is_parquet(path):
        return JsonHistory(path)
    reader: HistoryReader = parquet_files().ParquetHistory(path)
    return reader


def create_history(path: Path | str, header: Header | None = None) -> HistoryFile:
    """
    Open a history to write it: a context manager whose ``write`` takes events.

    Raises:
        HistoryError: The name says no format.
        OSError: It cannot be written.
    """
    header = Header() if header is None else header
    if not is_parquet(path):
        return JsonHistoryFile(path, header)
    writer: HistoryFile = parquet_files().ParquetHistoryFile(path, header)
    return writer


def expect_causal(order: Order | None, source: Path | str) -> None:
    """
    Check that a history is in causal order, from which alone something can be computed.

    Args:
        order: What its header says; None if it has none.
        source: The history, for the message.

    Raises:
        HistoryError: It is in order of arrival, or does not say.
    """
    if order is Order.ARRIVAL:
        message = (
            "its events are in order of arrival, from which nothing can be computed; put them in causal order with:"
            f" sharestate log verify {source} -o ORDERED"
        )
        raise HistoryError(message, str(source), None, "order")
    if order is None:
        message = "nothing says in which order the events are: name it, as in order='causal'"
        raise HistoryError(message, str(source), None, "order")


@contextmanager
def named_at_last(target: Path) -> Iterator[Path]:
    """Yield where to write what becomes *target* once all of it is written; if that fails, nothing is left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as directory:
        path = Path(directory, target.name)
        yield path
        path.replace(target)


def parquet_files() -> ModuleType:
    """
    Return the module for Parquet.

    Raises:
        ModuleNotFoundError: The extra ``parquet`` is not installed.
    """
    try:
        return import_module("sharestate.history.parquet_files")
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        message = "Parquet needs the extra 'parquet': pip install 'sharestate[parquet]'"
        raise ModuleNotFoundError(message, name=error.name) from error
