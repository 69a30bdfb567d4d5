"""Histories in Parquet: columns that are missed or of another type, and malformed rows, are refused at their place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharestate import AcknowledgementBatch, StateBatch
from sharestate.history import (
    Event,
    Header,
    HistoryError,
    create_history,
    open_history,
)
from sharestate.history.arrow import EVENT_SCHEMA, EventDecoder, encode_events, expect_columns
from sharestate.history.columns import MAY_LACK
from sharestate.history.events import read_event
from sharestate.history.parquet_files import ParquetHistoryFile
from tests.support.history_files import HEADER, KEY, LINE, refused


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    """A Parquet file with a column of another type is refused with its name."""
    path = tmp_path / "history.parquet"
    with create_history(path) as file:
        file.write([read_event(LINE)])
    table = pq.read_table(path)
    index = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(index, "seq", table["seq"].cast(pa.int32())), path)

    error = refused(path)

    assert (error.field, error.message) == ("seq", "expected int64, got int32")


@pytest.mark.parametrize("type_", [pa.int64(), pa.list_(pa.string())])
def test_text_is_text_of_any_width(type_: pa.DataType) -> None:
    """Whatever else stands in its place is refused, and so is what is no list where one has to be."""
    at = EVENT_SCHEMA.get_field_index("member_id")
    for text in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        expect_columns(EVENT_SCHEMA.set(at, pa.field("member_id", text)))
    with pytest.raises(HistoryError) as caught:
        expect_columns(EVENT_SCHEMA.set(at, pa.field("member_id", type_)))
    assert (caught.value.field, caught.value.message) == ("member_id", f"expected string, got {type_}")

    at = EVENT_SCHEMA.get_field_index("request")
    request = EVENT_SCHEMA.field(at).type
    fields = [pa.field(field.name, pa.int64() if field.name == "batches" else field.type) for field in request]
    with pytest.raises(HistoryError, match=r"request\.batches: expected list<.*, got int64"):
        expect_columns(EVENT_SCHEMA.set(at, pa.field("request", pa.struct(fields))))


def test_lists_are_lists_of_any_length() -> None:
    """Arrow has two types for them, of which other writers choose the one with 64 bits."""
    batch = encode_events([read_event({**LINE, "kind": "log", "request": {"batches": [[0, 4], [5, 9]]}})])
    request = batch.column("request")
    fields = [
        pa.field(each.name, pa.large_list(each.type.value_type) if pa.types.is_list(each.type) else each.type)
        for each in request.type
    ]
    large = pa.RecordBatch.from_arrays(
        [request.cast(pa.struct(fields)) if name == "request" else batch.column(name) for name in batch.schema.names],
        names=batch.schema.names,
    )

    expect_columns(large.schema)

    assert list(EventDecoder().decode(large)) == list(EventDecoder().decode(batch))


def test_of_what_a_file_may_lack_and_may_not_the_latter_is_missed() -> None:
    """Columns that came to the format later may be missing; the others may not, wherever they stand."""
    lacking = pa.schema([field for field in EVENT_SCHEMA if field.name not in {each.name for each in MAY_LACK}])
    expect_columns(lacking)

    for name in lacking.names:
        with pytest.raises(HistoryError) as caught:
            expect_columns(pa.schema([field for field in lacking if field.name != name]))

        assert (caught.value.field, caught.value.message) == (name, "the column is missing")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([], "the column is missing"),
        ([pa.field("offset", pa.int32())], "expected int64, got int32"),
        ([pa.field("offset", pa.string())], "expected int64, got string"),
        ([pa.field("offset", pa.list_(pa.int64()))], "expected int64, got list<item: int64>"),
    ],
)
def test_a_field_of_a_struct_is_missed(fields: list[pa.Field], problem: str) -> None:
    """So is one of another type: by its name, with that of the struct."""
    at = EVENT_SCHEMA.get_field_index("request")
    others = [field for field in EVENT_SCHEMA.field(at).type if field.name != "offset"]

    with pytest.raises(HistoryError) as caught:
        expect_columns(EVENT_SCHEMA.set(at, pa.field("request", pa.struct([*others, *fields]))))

    assert (caught.value.field, caught.value.message) == ("request.offset", problem)


def rows_of(**types: pa.DataType) -> pa.DataType:
    """Return the type of requests whose batches have other *types*."""
    request = EVENT_SCHEMA.field("request").type
    rows = [pa.field(each.name, types.get(each.name, each.type)) for each in request.field("batches").type.value_type]
    return pa.struct(
        [pa.field(each.name, pa.list_(pa.struct(rows)) if each.name == "batches" else each.type) for each in request]
    )


@pytest.mark.parametrize(
    ("name", "type_", "field", "problem"),
    [
        ("seq", pa.struct([("number", pa.int64())]), "seq", r"expected int64, got struct<number: int64>"),
        ("request", pa.int64(), "request", r"expected struct<.*, got int64"),
        ("request", rows_of(bytes=pa.int64()), "request.batches[].bytes", r"expected int32, got int64"),
        ("request", rows_of(control=pa.int8()), "request.batches[].control", r"expected string, got int8"),
    ],
)
def test_what_is_of_another_shape_is_refused(name: str, type_: pa.DataType, field: str, problem: str) -> None:
    """A struct where a number has to be, a number where a struct has to be, and rows with another column."""
    at = EVENT_SCHEMA.get_field_index(name)

    with pytest.raises(HistoryError) as caught:
        expect_columns(EVENT_SCHEMA.set(at, pa.field(name, type_)))

    assert caught.value.field == field
    assert re.fullmatch(problem, caught.value.message or "")


@pytest.mark.parametrize("name", ["group_id", "topic_id", "partition", "seq", "kind"])
def test_a_null_where_none_may_be_is_refused_at_its_place(name: str) -> None:
    """The first of several is named."""
    good = encode_events([read_event({**LINE, "seq": seq}) for seq in range(3)])
    column = good.column(name)
    lacking = pa.array([column[0].as_py(), None, None], column.type)

    with pytest.raises(HistoryError) as caught:
        EventDecoder().decode(good.set_column(good.schema.get_field_index(name), pa.field(name, column.type), lacking))

    assert (caught.value.line, caught.value.field, caught.value.message) == (2, name, "null")


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (Event.of(KEY, 0, "log_start", request={}), "request.offset"),
        (Event.of(KEY, 0, "fetch", request={}, response={"lock_ms": 5}), "response.acquired"),
    ],
)
def test_what_the_only_event_lacks_is_missed(event: Event, field: str) -> None:
    """As it is among others."""
    with pytest.raises(HistoryError) as caught:
        EventDecoder().decode(encode_events([event]))

    assert (caught.value.line, caught.value.field, caught.value.message) == (1, field, "null")


def test_no_events_are_a_record_batch_without_rows() -> None:
    """It has the columns of any other."""
    batch = encode_events([])

    assert (batch.num_rows, batch.schema) == (0, EVENT_SCHEMA)
    assert list(EventDecoder().decode(batch)) == []


def test_the_longest_list_is_read() -> None:
    """One has 262,144 items, and is refused with one more."""
    types = (1,) * 262_144
    longest = Event.of(KEY, 0, "acknowledge", request={"batches": (AcknowledgementBatch(0, 262_143, types),)})
    longer = Event.of(KEY, 0, "acknowledge", request={"batches": (AcknowledgementBatch(0, 262_144, (*types, 1)),)})

    assert list(EventDecoder().decode(encode_events([longest]))) == [longest]
    with pytest.raises(HistoryError, match="a list of more than 262144 items") as caught:
        EventDecoder().decode(encode_events([longer]))
    assert caught.value.field == "request.batches"


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"kind": "log_start", "request": {"offset": None}}, "request.offset"),
        ({"kind": "log_start", "request": None}, "request"),
        ({"kind": "close", "request": {}, "response": {"error": "oops"}}, "response.error"),
        ({"kind": "fetch", "request": {}, "response": {"lock_ms": 5}}, "response.acquired"),
        ({"kind": "nothing", "request": None}, "kind"),
    ],
)
def test_a_malformed_row_is_refused_at_its_place(tmp_path: Path, event: dict[str, Any], field: str) -> None:
    """A row of Parquet with a wrong name or a null where there may be none is refused with its number."""
    good = encode_events([read_event(LINE)]).to_pylist()[0]
    rows = [good, {**good, "seq": 1, **event}]
    path = tmp_path / "history.parquet"
    table = pa.Table.from_pylist(rows, schema=EVENT_SCHEMA.with_metadata({"sharestate_history": json.dumps(HEADER)}))
    pq.write_table(table, path)

    error = refused(path)

    assert (error.line, error.field) == (2, field)


def test_rows_are_counted_across_record_batches() -> None:
    """A row of a later batch has the number that it has in the file; the first of several is named."""
    good = encode_events([read_event({**LINE, "seq": seq}) for seq in range(3)])
    kinds = pa.array(["log_start", "nothing", "nothing"])
    decoder = EventDecoder("a file")
    assert len(list(decoder.decode(good))) == 3

    with pytest.raises(HistoryError) as caught:
        list(decoder.decode(good.set_column(good.schema.get_field_index("kind"), "kind", kinds)))

    assert (caught.value.line, caught.value.field) == (5, "kind")


def test_a_record_batch_follows_the_events_before_it(tmp_path: Path) -> None:
    """A file has events and record batches in the order in which they were written."""
    path = tmp_path / "history.parquet"
    first, second, third = (read_event({**LINE, "seq": seq}) for seq in range(3))
    with ParquetHistoryFile(path, Header()) as file:
        file.write([first])
        file.write_batch(encode_events([second]))
        file.write([third])

    assert list(open_history(path)) == [first, second, third]


def test_a_null_in_a_list_is_refused_at_its_place(tmp_path: Path) -> None:
    """Rows that have none, and events without the list, are no reason to refuse what comes before it."""
    good = encode_events([read_event(LINE)]).to_pylist()[0]
    fetch = {**good, "kind": "fetch", "request": {}}
    ranges = [{"first_offset": 0, "last_offset": last, "delivery_count": 1} for last in (4, None)]
    responses = [{"acquired": ranges[:1]}, {"error": "unknown_server_error"}, {"acquired": ranges}]
    rows = [good, *({**fetch, "seq": seq, "response": response} for seq, response in enumerate(responses, 1))]
    path = tmp_path / "history.parquet"
    table = pa.Table.from_pylist(rows, schema=EVENT_SCHEMA.with_metadata({"sharestate_history": json.dumps(HEADER)}))
    pq.write_table(table, path)

    error = refused(path)

    assert (error.line, error.field, error.message) == (4, "response.acquired[].last_offset", "null")


def test_a_wrong_name_in_a_list_is_refused_at_its_place(tmp_path: Path) -> None:
    """A list that is null, empty or has no names does not hide the one after it that has a wrong one."""
    good = encode_events([read_event(LINE)]).to_pylist()[0]
    batch = {"first_offset": 0, "last_offset": 0}
    requests = [{"batches": []}, {"batches": [batch]}, {"batches": [batch, {**batch, "control": "begin"}]}]
    rows = [good, *({**good, "kind": "fetch", "seq": seq, "request": each} for seq, each in enumerate(requests, 1))]
    path = tmp_path / "history.parquet"
    table = pa.Table.from_pylist(rows, schema=EVENT_SCHEMA.with_metadata({"sharestate_history": json.dumps(HEADER)}))
    pq.write_table(table, path)

    error = refused(path)

    assert (error.line, error.field) == (4, "request.batches[].control")
    assert re.search("abort, commit.*begin", error.message or "")


def test_state_batches_are_those_of_their_writes() -> None:
    """Also in a part of a record batch, whose columns share the memory of the whole."""
    batches = [StateBatch(at, at, 2, 1) for at in range(9)]
    head = {"start_offset": 0, "delivery_complete_count": 0, "state_epoch": 0, "leader_epoch": 0}
    written = [
        Event.of(KEY, seq, "write", request={**head, "state_batches": tuple(batches[3 * seq : 3 * seq + 3])})
        for seq in range(3)
    ]

    assert [*EventDecoder().decode(encode_events(written).slice(1))] == written[1:]
