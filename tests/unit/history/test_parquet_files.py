"""Parquet files of histories that are damaged, or are more than they look like."""

from __future__ import annotations

import re
import resource
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharestate.history import HistoryError, open_history
from sharestate.history.arrow import EventDecoder
from sharestate.history.parquet_files import ParquetHistory
from sharestate.history.parquet_pages import Chunk, check_row_group, row_groups
from tests.support.parquet_bombs import BOMBS, in_deltas, log, log_starts, written


def refused(directory: Path, data: bytes) -> HistoryError:
    """Return the error with which reading a file of these bytes ends."""
    path = directory / "history.parquet"
    path.write_bytes(data)
    with pytest.raises(HistoryError) as caught:
        list(open_history(path))
    assert caught.value.file == str(path)
    return caught.value


@pytest.mark.parametrize(("make", "told"), BOMBS.values(), ids=list(BOMBS))
def test_a_small_file_takes_little_memory(tmp_path: Path, make: Any, told: str) -> None:  # noqa: ANN401 - a function
    """It is refused before it is decoded, however much would come of it, and whatever its end says of its pages."""
    data = make()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    error = refused(tmp_path, data)

    assert re.search(f": {told}$", str(error))
    assert len(data) < 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


def test_what_is_long_and_no_more_than_it_takes_is_read(tmp_path: Path) -> None:
    """Bounds are for what no history needs: a log of 200,000 batches is read, and texts as long as Kafka's."""
    path = tmp_path / "history.parquet"
    path.write_bytes(in_deltas(200_000))
    (event,) = open_history(path)
    assert len((event.request or {})["batches"]) == 200_000

    path.write_bytes(written(log_starts(3, group_id=pa.array(["x" * 32_767] * 3))))
    assert {len(event.group_id) for event in open_history(path)} == {32_767}


def test_text_that_is_not_utf_8_is_refused_by_its_column(tmp_path: Path) -> None:
    """Parquet does not check what writers say to be text."""
    text = pa.array([b"g\xff\xfe"]).view(pa.string())

    batch = log_starts(1, group_id=text)

    assert re.search(r": group_id: cannot be read: .* UTF8", str(refused(tmp_path, written(batch))))
    with pytest.raises(HistoryError, match="group_id: not UTF-8, in one of 1 rows"):
        list(EventDecoder().decode(batch))


def test_a_header_of_a_page_that_is_none_is_refused(tmp_path: Path) -> None:
    """What stands where a page begins is no header of one, or says that there is less than nothing."""
    data = written(log_starts(5))
    begin = pq.ParquetFile(BytesIO(data)).metadata.row_group(0).column(3).data_page_offset

    for damage in (b"\xff" * 20, b"\x15\x00\x15\x01\x15\x01", b"\x1c" * 40):
        damaged = data[:begin] + damage + data[begin + len(damage) :]
        assert f"seq: no header of a page at byte {begin}" in str(refused(tmp_path, damaged))


def test_places_outside_of_a_dictionary_are_refused(tmp_path: Path) -> None:
    """Arrow does not look at them before it reads there."""
    data = written(log_starts(20, member_id=pa.array(["m", "n"] * 10)), compression="none")
    in_turns, nine = bytes.fromhex("01 07 aa aa 0a"), bytes.fromhex("08 28 09 00 00")
    assert data.count(in_turns) == 1

    error = refused(tmp_path, data.replace(in_turns, nine))

    assert re.search(": member_id: cannot be read: .*out of bounds", str(error))


def test_a_row_group_that_cannot_be_read_is_named_by_its_first_row(tmp_path: Path) -> None:
    """What comes before it has been read."""
    damaged = bytearray(written(log_starts(20), rows=10))
    column = pq.ParquetFile(BytesIO(damaged)).metadata.row_group(1).column(0)
    damaged[column.dictionary_page_offset + column.total_compressed_size - 3] ^= 0xFF  # the width of its numbers

    error = refused(tmp_path, bytes(damaged))

    assert (error.line, (error.message or "").partition(":")[0]) == (11, "cannot be read")


def test_what_arrow_does_not_know_is_refused(tmp_path: Path) -> None:
    """Damage in the description of a file leads to several errors of Arrow, which are all errors of a history."""
    data = written(log_starts(1))
    path = tmp_path / "history.parquet"
    for place in range(len(data) - 400, len(data) - 8):
        damaged = bytearray(data)
        damaged[place] ^= 0x15
        path.write_bytes(damaged)
        try:
            list(open_history(path))
        except HistoryError:
            continue


def test_what_pages_hold_is_what_was_written() -> None:
    """As many rows as the file says; items are those of lists, and none without a list."""
    stream = BytesIO(written(log(5)))
    (chunks,) = row_groups(stream, {"seq", "request"})
    group = pq.read_metadata(stream).row_group(0)
    lists = [group.column(at) for at in range(group.num_columns) if ".list." in group.column(at).path_in_schema]

    assert check_row_group(stream, chunks) == (group.num_rows, max(column.num_values for column in lists)) == (1, 5)
    assert check_row_group(stream, [chunk for chunk in chunks if not chunk.is_repeated]) == (1, 0)


def test_few_rows_are_decoded_at_a_time_if_they_are_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that they have no more items than memory has room for."""
    monkeypatch.setattr("sharestate.history.parquet_files.BATCH_ITEMS", 10)
    path = tmp_path / "history.parquet"
    path.write_bytes(written(pa.Table.from_batches([log(5)] * 8).combine_chunks().to_batches()[0]))

    with ParquetHistory(path) as history:
        assert [batch.num_rows for batch in history.batches()] == [2] * 4


def test_the_end_of_a_file_may_be_long() -> None:
    """Whoever has written it may have had much to say."""
    batch = log(5).replace_schema_metadata({"a comment": "x" * 2**24})
    stream = BytesIO(written(batch))

    (chunks,) = row_groups(stream, {"seq"})

    assert check_row_group(stream, chunks) == (1, 0)


def test_only_pages_of_data_have_values() -> None:
    """An index page, which parquet.thrift has a number for and no writer writes, has none."""
    index_page, sizes = b"\x15\x02", b"\x15\x00\x15\x00"  # the fields 1 to 3, as the compact protocol has them

    (page,) = Chunk("seq", is_repeated=False, begin=0, size=7).pages(BytesIO(index_page + sizes + b"\x00"))

    assert page == (0, 0, 0, 0)
