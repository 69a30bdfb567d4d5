"""What the end of a Parquet file and the headers of its pages say, from files of Arrow and from bytes made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from sharestate.history import HistoryError
from sharestate.history.arrow import EVENT_SCHEMA
from sharestate.history.columns import MOST_ITEMS
from sharestate.history.parquet_pages import (
    BYTES_OF_BYTE,
    ITEMS_OF_BYTE,
    MOST_BYTES,
    Chunk,
    check_row_group,
    row_groups,
)
from tests.support.parquet_bombs import log, written


def varint(number: int) -> bytes:
    """Return a number that is not negative as the compact protocol has it: the lowest seven bits first."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def coded(value: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a number, bytes, a list or a struct
    """Return the type of a value in the compact protocol, and its bytes; a struct has its fields by their numbers."""
    match value:
        case int():
            return 6, varint(2 * value if value >= 0 else -2 * value - 1)
        case bytes():
            return 8, varint(len(value)) + value
        case list():
            items = [coded(item) for item in value]
            return 9, bytes([len(items) << 4 | items[0][0]]) + b"".join(data for _, data in items)
        case _:
            before, fields = 0, b""
            for number, field in value.items():
                type_, data = coded(field)
                fields, before = fields + bytes([number - before << 4 | type_]) + data, number
            return 12, fields + b"\x00"


def ends_with(description: Mapping[int, Any]) -> BytesIO:
    """Return a file that *description* describes, as parquet.thrift has it."""
    _, data = coded(description)
    return BytesIO(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")


SEQ: Final = {1: 2, 4: b"seq"}
"""A column of the schema: its type and its name."""


def described(column: Mapping[int, Any], *others: Mapping[int, Any]) -> dict[int, Any]:
    """Return the description of a file with a column in its schema, and one row group that has these."""
    return {2: [{4: b"schema", 5: 1}, SEQ], 4: [{1: [{3: each} for each in (column, *others)]}]}


COLUMN: Final = {5: 3, 7: 10, 9: 4}
"""A column of a row group: the number of its values, the size of its pages, and where the first of data begins."""

SEQ_CHUNK: Final = Chunk("seq", is_repeated=False, begin=4, size=10)


def data_page(values: int, uncompressed: int) -> bytes:
    """Return a page without bytes whose header says that it has so many values, in so many bytes."""
    _, header = coded({1: 0, 2: uncompressed, 3: 0, 5: {1: values, 2: 0}})
    return header


# ---- the end of a file


def test_columns_are_read_where_arrow_reads_them() -> None:
    """Names, places and sizes are those that Arrow finds in the same file, and what is in a list is known."""
    stream = BytesIO(written(log(5)))
    group = pq.read_metadata(stream).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]

    (chunks,) = row_groups(stream, EVENT_SCHEMA.names)

    assert [(chunk.path, chunk.begin, chunk.size) for chunk in chunks] == [
        (each.path_in_schema, each.dictionary_page_offset or each.data_page_offset, each.total_compressed_size)
        for each in columns
    ]
    assert {chunk.path for chunk in chunks if chunk.is_repeated} == {
        each.path_in_schema for each in columns if ".list." in each.path_in_schema
    }


def test_a_dictionary_comes_before_the_data() -> None:
    """What is said of one behind it is not heeded, as by Arrow; a column without values has no pages, wherever."""
    assert row_groups(ends_with(described(COLUMN)), {"seq"}) == [[SEQ_CHUNK]]
    assert row_groups(ends_with(described(COLUMN)), {"kind"}) == [[]]
    for data, dictionary, begin in ((40, 30, 30), (30, 40, 30), (30, 0, 30)):
        ((chunk,),) = row_groups(ends_with(described({**COLUMN, 9: data, 11: dictionary})), {"seq"})
        assert chunk.begin == begin
    ((empty,),) = row_groups(ends_with(described({5: 0, 7: 23, 9: 0, 11: 4})), {"seq"})
    assert (empty.size, [*empty.pages(BytesIO(b"PAR1" * 10))]) == (0, [])


@pytest.mark.parametrize(
    "description",
    [
        pytest.param({2: [{4: b"schema", 5: 1}, SEQ]}, id="no row groups"),
        pytest.param({**described(COLUMN), 4: [7]}, id="numbers in the place of row groups"),
        pytest.param({**described(COLUMN), 4: [b"g"]}, id="texts in the place of row groups"),
        pytest.param({**described(COLUMN), 2: [{4: b"schema", 5: 1}, {1: 2, 4: 7}]}, id="a number for a name"),
        pytest.param(described(COLUMN, COLUMN), id="more columns than the schema has"),
        pytest.param({**described(COLUMN), 2: [{4: b"schema", 5: 2}, SEQ, SEQ]}, id="fewer columns"),
        pytest.param(described({**COLUMN, 9: -1}), id="pages before the file begins"),
        pytest.param(described({**COLUMN, 7: -1}), id="pages of less than no bytes"),
    ],
)
def test_an_end_that_does_not_describe_the_file_is_refused(description: Mapping[int, Any]) -> None:
    """As damaged as it may be, this is an error of the history."""
    with pytest.raises(HistoryError, match=r"^the end of the file does not describe it$"):
        row_groups(ends_with(description), {"seq"})


def test_the_end_of_a_file_may_be_long() -> None:
    """Whoever has written it may have had much to say."""
    comment = {1: b"a comment", 2: b"x" * 2**24}

    assert row_groups(ends_with({**described(COLUMN), 5: [comment]}), {"seq"}) == [[SEQ_CHUNK]]


# ---- pages


def test_what_pages_hold_is_what_was_written() -> None:
    """As many rows as the file says; items are those of lists, and none without a list."""
    stream = BytesIO(written(log(5)))
    (chunks,) = row_groups(stream, {"seq", "request"})
    group = pq.read_metadata(stream).row_group(0)
    lists = [group.column(at) for at in range(group.num_columns) if ".list." in group.column(at).path_in_schema]

    assert check_row_group(stream, chunks) == (group.num_rows, max(column.num_values for column in lists)) == (1, 5)
    assert check_row_group(stream, [chunk for chunk in chunks if not chunk.is_repeated]) == (1, 0)


def test_only_pages_of_data_have_values() -> None:
    """An index page, which parquet.thrift has a number for and no writer writes, has none."""
    index_page, sizes = b"\x15\x02", b"\x15\x00\x15\x00"  # the fields 1 to 3, as the compact protocol has them

    (page,) = Chunk("seq", is_repeated=False, begin=0, size=7).pages(BytesIO(index_page + sizes + b"\x00"))

    assert page == (0, 0, 0, 0)


def test_a_header_ends_where_its_column_does() -> None:
    """What follows belongs to another column."""
    header = data_page(1, 8)
    stream = BytesIO(header * 2)

    (page,) = Chunk("seq", is_repeated=False, begin=len(header), size=len(header)).pages(stream)
    assert page == (1, 0, 0, 8)
    with pytest.raises(HistoryError, match=f"seq: no header of a page at byte {len(header)}$"):
        [*Chunk("seq", is_repeated=False, begin=len(header), size=len(header) - 1).pages(stream)]


def test_a_row_group_may_be_so_much_larger_once_it_is_decompressed() -> None:
    """So much in any case, and so much for each of its bytes; one more is refused."""
    size = len(data_page(1, MOST_BYTES))
    chunk, most = Chunk("seq", is_repeated=False, begin=0, size=size), MOST_BYTES + BYTES_OF_BYTE * size

    assert check_row_group(BytesIO(data_page(1, most)), [chunk]) == (1, 0)
    with pytest.raises(HistoryError, match=f"^seq: {size} bytes of a row group would be {most + 1} and more$"):
        check_row_group(BytesIO(data_page(1, most + 1)), [chunk])


def test_lists_may_have_so_many_items_for_the_bytes_of_a_row_group() -> None:
    """So many in any case, and so many for each of its bytes; one more is refused."""
    size = len(data_page(MOST_ITEMS, 0))
    chunk, most = Chunk("request.list", is_repeated=True, begin=0, size=size), MOST_ITEMS + ITEMS_OF_BYTE * size

    assert check_row_group(BytesIO(data_page(most, 0)), [chunk]) == (0, most)
    with pytest.raises(HistoryError, match=f"^request.list: {most + 1} items in {size} bytes of a row group$"):
        check_row_group(BytesIO(data_page(most + 1, 0)), [chunk])
