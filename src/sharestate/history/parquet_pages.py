"""
What the pages of a Parquet file hold, by their own headers, before any of them is decoded.

Arrow makes room for what the header of a page says, decompresses it, and makes of it as many values as it says there
are: a few kilobytes may stand for gigabytes. What the end of a file says of its row groups is nothing that Arrow holds
their pages to. So the headers are read here first, and the end of the file as well: Arrow ends the process if somebody
asks it for a column whose statistics are damaged.

Source:
    parquet.thrift (parquet-format 2.11.0); SerializedPageReader, RowGroupMetaData (Arrow 21).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, NoReturn

from sharestate.errors import HistoryError
from sharestate.history.columns import MOST_ITEMS
from sharestate.history.thrift_compact import Struct, read_struct

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

MOST_BYTES: Final = 2**26
BYTES_OF_BYTE: Final = 64
"""How large a row group may be once it is decompressed: so much, and so much for each of its bytes. [bytes]

Histories of brokers and synthetic ones are 1.5 to 4 times as large; columns that are constant, and written out all the
same, 1,000 times."""

ITEMS_OF_BYTE: Final = 32
"""The most items that all lists of a column have in a row group, beyond MOST_ITEMS, for each byte of the row group: in
histories there are one or two, and twenty if each acknowledgement has 500 types. [items]"""

_HEADER_BYTES: Final = 2**17
"""The largest header of a page; those that Arrow writes have bounds of 4 KiB each for the least and largest value."""

_END: Final = 8
"""The bytes after the description of a file: its size, and PAR1. [bytes]"""

# The numbers of fields and of their values, as parquet.thrift has them.
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _REPETITION, _NAME, _CHILDREN = 1, 3, 4, 5
_REPEATED: Final = 2
_COLUMNS: Final = 1
_COLUMN: Final = 3
_NUM_VALUES, _SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 5, 7, 9, 11
_PAGE_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_DETAILS: Final = {_DATA_PAGE: (5, 2), _DICTIONARY_PAGE: (7, 2), _DATA_PAGE_V2: (8, 4)}
"""Of each type of page, the field with the details, and which of these is the encoding."""
_VALUES: Final = 1
_DELTA_BYTE_ARRAY: Final = 7
"""An encoding in which each text may have as much in common with the one before as that is long, and take no byte."""


class Page(NamedTuple):
    """
    What the header of a page says.

    Attributes:
        values: The number of its values, nulls included; 0 if it is a dictionary.
        encoding: The number of their encoding.
        compressed: Its size in the file. [bytes]
        uncompressed: Its size once it is decompressed. [bytes]
    """

    values: int
    encoding: int
    compressed: int
    uncompressed: int


class Chunk(NamedTuple):
    """
    A column of a row group.

    Attributes:
        path: Its name, with those of the structs and lists that it is in.
        is_repeated: Whether it is in a list.
        begin: Where its first page begins. [bytes]
        size: The size of its pages. [bytes]
    """

    path: str
    is_repeated: bool
    begin: int
    size: int

    def pages(self, stream: BinaryIO) -> Iterator[Page]:
        """
        Yield what the headers of its pages say.

        Raises:
            HistoryError: There is none where one should be.
        """
        at, end = self.begin, self.begin + self.size
        while at < end:
            stream.seek(at)
            try:
                page, size = _page(stream.read(min(_HEADER_BYTES, end - at)))
            except (AttributeError, KeyError, TypeError, ValueError):
                _refuse(f"no header of a page at byte {at}", self.path)
            yield page
            at += size + page.compressed


class GroupPages(NamedTuple):
    """
    What the pages of a row group hold.

    Attributes:
        rows: The number of its rows.
        items: The most items that the lists of one of its columns have, all together.
    """

    rows: int
    items: int


def row_groups(stream: BinaryIO, columns: Container[str]) -> list[list[Chunk]]:
    """
    Return of each row group of a file what is read of it if these *columns* are.

    Raises:
        HistoryError: The end of the file does not describe it.
    """
    try:
        size = stream.seek(-_END, 2)
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(size - length)
        description, _ = read_struct(stream.read(length))
        leaves = list(_leaves(description[_SCHEMA]))
        return [
            [
                _chunk(path, is_repeated, column[_COLUMN])
                for (path, is_repeated), column in zip(leaves, group[_COLUMNS], strict=True)
                if path.partition(".")[0] in columns
            ]
            for group in description[_ROW_GROUPS]
        ]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        _refuse("the end of the file does not describe it", "")


def check_row_group(stream: BinaryIO, chunks: list[Chunk]) -> GroupPages:
    """
    Check that a row group is not much more than what it takes in the file.

    Args:
        stream: The file.
        chunks: What is read of the row group.

    Raises:
        HistoryError: It is, or a page has no header; ``field`` says of which column.
        OSError: The file cannot be read.
    """
    size = sum(chunk.size for chunk in chunks)
    rows = items = decompressed = 0
    for chunk in chunks:
        values = 0
        for page in chunk.pages(stream):
            decompressed += page.uncompressed
            if decompressed > MOST_BYTES + BYTES_OF_BYTE * size:
                _refuse(f"{size} bytes of a row group would be {decompressed} and more", chunk.path)
            if page.encoding == _DELTA_BYTE_ARRAY:
                _refuse("encoded as DELTA_BYTE_ARRAY, which has no bounds", chunk.path)
            values += page.values
        if not chunk.is_repeated:
            rows = max(rows, values)
        elif values > MOST_ITEMS + ITEMS_OF_BYTE * size:
            _refuse(f"{values} items in {size} bytes of a row group", chunk.path)
        else:
            items = max(items, values)
    return GroupPages(rows, items)


def _leaves(schema: list[Struct]) -> Iterator[tuple[str, bool]]:
    """Yield the columns that have values: their names, with those of what they are in, and whether that is a list."""
    above: list[tuple[int, str, bool]] = []
    """The groups that are under way: how many of their children are to come, their names, and whether in a list."""
    for element in schema:
        name, is_repeated = "", False
        if above:
            left, prefix, is_repeated = above.pop()
            if left > 1:
                above.append((left - 1, prefix, is_repeated))
            name = f"{prefix}{element[_NAME].decode(errors='replace')}"
            is_repeated = is_repeated or element.get(_REPETITION) == _REPEATED
        children = element.get(_CHILDREN, 0)
        if children:
            above.append((children, f"{name}." if name else "", is_repeated))
        elif _TYPE in element:
            yield name, is_repeated


def _chunk(path: str, is_repeated: bool, column: Struct) -> Chunk:  # noqa: FBT001 - a column of the schema
    """Return a column of a row group, which begins where Arrow begins to read it."""
    begin, dictionary, size = column[_DATA_OFFSET], column.get(_DICTIONARY_OFFSET, 0), column[_SIZE]
    if 0 < dictionary < begin:
        begin = dictionary
    if begin < 0 or size < 0:
        raise ValueError(begin)
    return Chunk(path, is_repeated, begin, size if column[_NUM_VALUES] else 0)  # Arrow reads no page of no values


def _page(data: bytes) -> tuple[Page, int]:
    """Return what the header with which *data* begins says, and its size."""
    fields, size = read_struct(data)
    type_ = fields[_PAGE_TYPE]
    values = encoding = 0
    if type_ in _DETAILS:  # the others are passed over
        place, encoding_place = _DETAILS[type_]
        values, encoding = fields[place][_VALUES], fields[place][encoding_place]
    page = Page(0 if type_ == _DICTIONARY_PAGE else values, encoding, fields[_COMPRESSED], fields[_UNCOMPRESSED])
    if min(page) < 0:
        raise ValueError(page)
    return page, size


def _refuse(message: str, path: str) -> NoReturn:
    raise HistoryError(message, field=path)
