"""Parquet files of histories: row groups, and files that are damaged, or are more than they look like."""

from __future__ import annotations

import re
import resource
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharestate.history import Header, HistoryError, create_history, open_history
from sharestate.history.arrow import EVENT_SCHEMA, EventDecoder
from sharestate.history.header import MARK
from sharestate.history.parquet_files import ParquetHistory
from sharestate.history.synthetic import life
from sharestate.json_lines import write_json
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


def test_a_file_that_has_fewer_events_than_it_says_is_refused(tmp_path: Path) -> None:
    """Arrow reads no row where the end of the file says that a column has no values, and finds nothing wrong."""
    data = written(log_starts(50))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fifty, none = b"\x08group_id\x15\x0c\x16\x64", b"\x08group_id\x15\x0c\x16\x00"  # its name, zstd, and how many
    assert data[footer:].count(fifty) == 1

    error = refused(tmp_path, data[:footer] + data[footer:].replace(fifty, none))

    assert error.message == "0 events of 50"


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


@pytest.mark.parametrize(("most", "sizes"), [(10, [2] * 4), (3, [1] * 8)], ids=["two at a time", "one at a time"])
def test_few_rows_are_decoded_at_a_time_if_they_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, sizes: list[int]
) -> None:
    """So many that they have no more items than memory has room for, but one in any case."""
    monkeypatch.setattr("sharestate.history.parquet_files.BATCH_ITEMS", most)
    path = tmp_path / "history.parquet"
    path.write_bytes(written(pa.Table.from_batches([log(5)] * 8).combine_chunks().to_batches()[0]))

    with ParquetHistory(path) as history:
        assert [batch.num_rows for batch in history.batches()] == sizes


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_table_without_rows_is_a_history_without_events(tmp_path: Path, *, use_dictionary: bool) -> None:
    """Arrow writes a row group of it, whose columns have no pages of data, and says that they begin at byte 0."""
    path = tmp_path / "history.parquet"
    with pq.ParquetWriter(path, EVENT_SCHEMA, use_dictionary=use_dictionary) as writer:
        writer.write_table(EVENT_SCHEMA.empty_table())
        writer.add_key_value_metadata({MARK: write_json(Header().to_json())})
    assert pq.read_metadata(path).num_row_groups == 1

    assert [*open_history(path)] == []


# ---- writing


@pytest.fixture
def ten_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten events are encoded at a time, and twenty are a row group."""
    monkeypatch.setattr("sharestate.history.parquet_files.BATCH_ROWS", 10)
    monkeypatch.setattr("sharestate.history.parquet_files.GROUP_ROWS", 20)


@pytest.mark.usefixtures("ten_at_a_time")
@pytest.mark.parametrize(
    ("events", "groups"), [(0, []), (19, [19]), (35, [20, 15]), (40, [20, 20]), (55, [20, 20, 15])]
)
def test_events_are_written_in_row_groups_of_one_size(tmp_path: Path, events: int, groups: list[int]) -> None:
    """All but the last one have as many as a row group may have, and none is empty."""
    path = tmp_path / "history.parquet"
    with create_history(path) as file:
        file.write(life(0, events))

    metadata = pq.read_metadata(path)
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == groups
    assert [*open_history(path)] == life(0, events)


@pytest.mark.usefixtures("ten_at_a_time")
def test_a_row_group_is_written_once_it_is_there(tmp_path: Path) -> None:
    """Memory has room for one, however many events follow."""
    path, events = tmp_path / "history.parquet", life(0, 25)
    with create_history(path) as file:
        file.write(events[:19])
        before = path.stat().st_size
        file.write(events[19:])
        assert path.stat().st_size > before + 1_000
