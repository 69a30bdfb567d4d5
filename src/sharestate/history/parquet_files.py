"""Histories as Parquet (extra ``parquet``): the same columns, the header in the metadata of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve

from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history.arrow import (
    EVENT_SCHEMA,
    OUTPUT_SCHEMA,
    EventDecoder,
    encode_events,
    encode_rows,
    expect_columns,
    moved,
)
from sharestate.history.events import Event, SequenceCheck
from sharestate.history.header import MARK, Header, read_header
from sharestate.history.parquet_pages import Chunk, check_row_group, row_groups
from sharestate.history.rows import ROWS_MARK, ROWS_VERSION, OutputRow
from sharestate.json_lines import most_lines, read_json, write_json

_UNREADABLE: Final = (OSError, pa.ArrowException, UnicodeDecodeError)
"""What Arrow raises that cannot read a file; a name in its metadata may be none."""

BATCH_ROWS: Final = 10_000
"""The number of events in a record batch. [events]"""

BATCH_ITEMS: Final = 2**17
"""About how many items the lists of a column have in a record batch, at most, unless those of one event are more."""

GROUP_ROWS: Final = 100_000
"""The number of events in a row group of a file. [events]"""


class ParquetHistory:
    """
    A history in Parquet, opened to be read once.

    Args:
        path: The file.

    Raises:
        HistoryError: It cannot be read, is no history of a version that is known, or lacks a column.

    Attributes:
        header: Its header.
        position: How many of its events were read so far. [events]
        size: The number of its events. [events]
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file, and read its header."""
        self._path = str(path)
        self.position = 0
        with ExitStack() as opened:
            try:
                self._stream = opened.enter_context(Path(path).open("rb"))
                metadata = pq.read_metadata(self._path)
                file = pq.ParquetFile(self._path, metadata=metadata, read_dictionary=_texts(metadata))
                self._file = opened.enter_context(file)
                self.header = self._read_header()
                expect_columns(self._file.schema_arrow, self._path)
            except _UNREADABLE as error:
                raise self._unreadable(error) from error
            self._opened = opened.pop_all()
        self.size: int = metadata.num_rows

    def batches(self) -> Iterator[Any]:
        """
        Yield the record batches of events.

        Raises:
            HistoryError: The file is damaged.
        """
        present = frozenset(self._file.schema_arrow.names)
        names = [name for name in EVENT_SCHEMA.names if name in present]
        try:
            groups = row_groups(self._stream, names)
            for group, rows in enumerate(self._rows_at_a_time(groups)):
                for batch in self._file.iter_batches(rows, [group], names):
                    yield _validated(batch.select(names))
                    self.position += batch.num_rows
            self._expect_all()
        except HistoryError as error:
            raise HistoryError(error.message, self._path, None, error.field) from error
        except _UNREADABLE as error:
            raise self._unreadable(error, self.position + 1) from error

    def _rows_at_a_time(self, groups: list[list[Chunk]]) -> Iterator[int]:
        """Yield how many rows of each row group to decode at a time, once its pages are known not to be too large."""
        size, rows = Path(self._path).stat().st_size, 0
        for chunks in groups:
            pages = check_row_group(self._stream, chunks)
            rows += pages.rows
            if rows > most_lines(size):  # an event takes 17 bytes and more
                message = f"{rows} events in a file of {size} bytes"
                raise HistoryError(message)
            yield max(1, min(BATCH_ROWS, BATCH_ITEMS * pages.rows // max(1, pages.items)))

    def _expect_all(self) -> None:
        """Check that all events were read: of columns that are said to have no values Arrow reads no rows."""
        if self.position != self.size:
            message = f"{self.position} events of {self.size}"
            raise HistoryError(message)

    def _unreadable(self, error: Exception, row: int | None = None) -> HistoryError:
        return HistoryError(f"cannot be read: {error}", self._path, row)

    def __iter__(self) -> Iterator[Event]:
        """
        Yield the events, in the order of the rows.

        Raises:
            HistoryError: A row is no event, or a share partition's events are not in order; ``line`` is the row.
        """
        decoder = EventDecoder(self._path)
        sequence = SequenceCheck()
        row = 0
        with self:
            for batch in self.batches():
                for event in decoder.decode(batch):
                    row += 1
                    try:
                        sequence.expect(event)
                    except MalformedInputError as error:
                        raise HistoryError(error.message, self._path, row, error.field or "") from error
                    yield event

    def __enter__(self) -> Self:
        """Return the history."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def _read_header(self) -> Header:
        text = (self._file.metadata.metadata or {}).get(MARK.encode(), b"{}")
        try:
            return read_header(read_json(text.decode("utf-8", "surrogateescape")), "")
        except MalformedInputError as error:
            raise HistoryError(error.message, self._path, None, error.field or "") from error


def _validated(batch: Any) -> Any:  # noqa: ANN401 - Arrow's batches have no types
    """Return *batch* once it is known to be sound: Arrow takes what a file says of places in dictionaries as it is."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            message = f"cannot be read: {error}"
            raise HistoryError(message, field=name) from error
    return batch


def _texts(metadata: Any) -> list[str]:  # noqa: ANN401 - Arrow's metadata have no types
    """Return the columns of text: read as dictionaries, a text that comes again and again takes its room once."""
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


class ParquetHistoryFile:
    """Writes a history as Parquet; a context manager that closes the file."""

    def __init__(self, path: Path | str, header: Header) -> None:
        """Open the file, and write *header*."""
        metadata = {MARK: write_json(header.to_json())}
        self._file = pq.ParquetWriter(str(path), EVENT_SCHEMA.with_metadata(metadata), compression="zstd")
        self._header = header
        self._events: list[Event] = []
        self._batches: list[Any] = []
        self._rows = 0

    def write(self, events: Iterable[Event]) -> None:
        """Append *events*; they are written many at a time."""
        for event in events:
            self._events.append(event)
            if len(self._events) == BATCH_ROWS:
                self._encode()

    def write_batch(self, batch: Any) -> None:  # noqa: ANN401 - Arrow's batches have no types
        """Append the events of a record batch with the columns of events."""
        self._encode()
        self._append(batch)

    def write_moved(self, batch: Any, key: tuple[str, str, int], later_us: int) -> None:  # noqa: ANN401 - as above
        """Append the events of a record batch as events of the share partition *key*, each *later_us* µs later."""
        self.write_batch(moved(batch, key, later_us))

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Add the names of topics, by their ids, to the header."""
        self._header = evolve(self._header, topics={**self._header.topics, **names})
        self._file.add_key_value_metadata({MARK: write_json(self._header.to_json())})  # at the end of the file

    def _encode(self) -> None:
        events, self._events = self._events, []
        if events:
            self._append(encode_events(events))

    def _append(self, batch: Any) -> None:  # noqa: ANN401 - as above
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(pa.Table.from_batches(self._batches, EVENT_SCHEMA), GROUP_ROWS)
        self._batches, self._rows = [], 0

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._encode()
        self._flush()
        self._file.close()


class ParquetRows:
    """Writes the rows of a replay as Parquet, each kind of them in a directory ``kind=...`` of its own."""

    def __init__(self, directory: Path) -> None:
        """Make *directory*, which must not be there."""
        directory.mkdir()
        self._directory = directory
        self._files: dict[str, Any] = {}
        columns = [field for field in OUTPUT_SCHEMA if field.name != "kind"]  # the name of the directory says it
        self._schema = pa.schema(columns, metadata={ROWS_MARK: str(ROWS_VERSION)})

    def write_rows(self, rows: Iterable[OutputRow]) -> None:
        """Append *rows*."""
        for batch in encode_rows(rows):
            kind = batch.column("kind")[0].as_py()
            if kind not in self._files:
                path = self._directory / f"kind={kind}" / "part-0.parquet"
                path.parent.mkdir()
                self._files[kind] = pq.ParquetWriter(str(path), self._schema, compression="zstd")
            self._files[kind].write_batch(
                batch.select(self._schema.names).replace_schema_metadata(self._schema.metadata)
            )

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
