"""The format of histories: JSON Lines and Parquet hold the same, and what is malformed is refused at its place."""

from __future__ import annotations

import gc
import gzip
import json
import os
import re
import resource
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharestate import AcquiredRecords
from sharestate.columns import Column, ListOf, Need, Rows, Scalar, Type
from sharestate.errors import MalformedInputError
from sharestate.history import (
    KINDS,
    Event,
    Header,
    HistoryError,
    OutputRow,
    create_history,
    open_history,
)
from sharestate.history.arrow import EventDecoder, encode_events
from sharestate.history.columns import EVENT_COLUMNS
from sharestate.history.events import read_event, write_event
from sharestate.history.files import parquet_files
from sharestate.history.json_files import JsonHistory
from sharestate.history.parquet_files import ParquetRows
from sharestate.json_lines import Json
from tests.support.history_files import HEADER, KEY, LINE, refused

FORMATS = [".jsonl", ".jsonl.gz", ".parquet"]


# ---- any events, by the tables


def values(column: Column) -> st.SearchStrategy[Any]:
    """Return the values of a field."""
    return st.sampled_from(column.values) if column.values else of_type(column.type)


def of_type(type_: Type) -> st.SearchStrategy[Any]:
    """Return the values of a type."""
    match type_:
        case Scalar.TEXT:
            return st.text(st.characters(codec="utf-8"), max_size=5)
        case Scalar.BOOLEAN:
            return st.booleans()
        case Scalar():
            return st.integers(-(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1)
        case ListOf(item):
            return st.lists(of_type(item), max_size=3).map(tuple)
        case Rows():
            fields = [
                values(each) if each.need is Need.REQUIRED else st.none() | values(each) for each in type_.columns
            ]
            return st.lists(st.builds(type_.make, *fields), max_size=3).map(tuple)


def structs(columns: tuple[Column, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the requests or responses with *columns*."""
    needed = {each.name: values(each) for each in columns if each.need is not Need.OPTIONAL}
    return st.fixed_dictionaries(
        needed, optional={each.name: values(each) for each in columns if each.need is Need.OPTIONAL}
    )


REQUESTS = {name: structs(kind.request) for name, kind in KINDS.items()}
RESPONSES = {name: structs(kind.response) for name, kind in KINDS.items()}
TOPS = {
    column.name: values(column) for column in EVENT_COLUMNS if column.need is Need.OPTIONAL and column.name != "kind"
}
"""The strategies of each kind and column, made once: to make one takes longer than to draw from it."""


OUTLINES = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 2 ** (4 + len(TOPS)) - 1)), max_size=12)
"""Kinds of events, and the bits of a number for what they have, as to draw a bit takes as long as a value."""


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Return events of two share partitions."""
    made = []
    numbers = [0, 0]
    for kind_name, present in draw(OUTLINES):
        kind = KINDS[kind_name]
        partition, has_request, has_response, inferred, *has = (present >> bit & 1 for bit in range(4 + len(TOPS)))
        top = {name: draw(each) if there else None for (name, each), there in zip(TOPS.items(), has, strict=True)}
        needs = any(column.need is Need.REQUIRED for column in kind.request)
        request = draw(REQUESTS[kind_name]) if needs or has_request else None
        response = draw(RESPONSES[kind_name]) if has_response else None
        made.append(
            Event(
                group_id="g",
                topic_id="t",
                partition=partition,
                seq=numbers[partition],
                kind=kind_name,
                request=request,
                response=response,
                inferred=bool(inferred),
                **top,
            )
        )
        numbers[partition] += 1
    return made


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The first example makes the strategies of all kinds, which takes seconds where other processes have the CPU."""


@PATIENT
@given(made=events())
def test_json_holds_every_event(made: list[Event]) -> None:
    """An event that is written as JSON and read again is the same."""
    assert [read_event(json.loads(json.dumps(write_event(event)))) for event in made] == made


@PATIENT
@given(made=events())
def test_arrow_holds_every_event(made: list[Event]) -> None:
    """Events that are written as a record batch and read again are the same."""
    assert list(EventDecoder().decode(encode_events(made))) == made


@PATIENT
@given(made=events(), cut=st.integers(0, 12))
def test_a_slice_of_a_record_batch_is_decoded_alone(made: list[Event], cut: int) -> None:
    """A slice of a record batch, whose columns share the memory of the whole, has the events of the slice."""
    assert list(EventDecoder().decode(encode_events(made).slice(cut))) == made[cut:]


@settings(PATIENT, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=20)
@given(made=events())
def test_files_hold_the_same(tmp_path: Path, made: list[Event]) -> None:
    """JSON Lines, compressed or not, and Parquet give back the events and the header."""
    header = Header(source="a test", created_ms=7, lacks=frozenset({"write", "log"}), topics={"an id": "orders"})
    for suffix in FORMATS:
        path = tmp_path / f"history{suffix}"
        with create_history(path, header) as file:
            file.write(made)

        history = open_history(path)

        assert history.header == header
        assert list(history) == made


def test_json_has_only_what_is_there() -> None:
    """What is null or false is left out, of requests and responses too."""
    event = read_event(LINE)
    assert write_event(event) == LINE

    request, response = {"max_records": 5, "batches": None}, {"acquired": (), "lock_ms": None}
    fetch = event._replace(kind="fetch", request=request, response=response)

    assert write_event(fetch) == {**LINE, "kind": "fetch", "request": {"max_records": 5}, "response": {"acquired": []}}


def test_what_was_read_from_arrow_is_written_as_json() -> None:
    """So are lists of state batches, of which no batch is made before it is looked at."""
    state = {"state_epoch": 1, "start_offset": 0, "state_batches": [[0, 4, 2, 1], [5, 9, 0, 1]]}
    line = {**LINE, "kind": "initialize", "request": {"leader_epoch": 0}, "response": state}

    (event,) = EventDecoder().decode(encode_events([read_event(line)]))

    assert json.loads(json.dumps(write_event(event))) == line


@pytest.mark.parametrize("suffix", FORMATS)
def test_ranges_may_be_plain_tuples(tmp_path: Path, suffix: str) -> None:
    """A program that has them so need not make rows of them to write them."""
    path = tmp_path / f"history{suffix}"
    with create_history(path) as file:
        file.write([Event.of(KEY, 0, "fetch", request={}, response={"acquired": ((0, 4, 1), (7, 9, 2))})])

    (event,) = open_history(path)

    assert event.response == {"acquired": (AcquiredRecords(0, 4, 1), AcquiredRecords(7, 9, 2))}


def test_a_plain_tuple_that_may_be_of_several_classes_is_refused(tmp_path: Path) -> None:
    """Batches of the log and acknowledgements share a column of Parquet: nothing is written in the place of either."""
    with pytest.raises(TypeError, match=r"got \(0, 4\)$"), create_history(tmp_path / "history.parquet") as file:
        file.write([Event.of(KEY, 0, "log", request={"batches": ((0, 4),)})])


# ---- refusals


@pytest.mark.parametrize("suffix", FORMATS)
def test_topics_may_be_named_when_events_are_written(tmp_path: Path, suffix: str) -> None:
    """The header of the file has the names that were added, and those that it had."""
    path = tmp_path / f"history{suffix}"
    with create_history(path, Header(topics={"an id": "orders"})) as file:
        file.write([read_event(LINE)])
        file.name_topics({"another id": "payments"})

    history = open_history(path)
    assert dict(history.header.topics) == {"an id": "orders", "another id": "payments"}
    assert list(history) == [read_event(LINE)]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_says_how_much_of_it_was_read(tmp_path: Path, suffix: str) -> None:
    """In the end all: a small file of JSON lines at once."""
    path = tmp_path / f"history{suffix}"
    with create_history(path) as file:
        file.write([read_event({**LINE, "seq": seq}) for seq in range(3)])
    history = open_history(path)

    assert len(list(history)) == 3
    assert history.position == history.size > 0


def lines(tmp_path: Path, *values: Json) -> Path:
    """Write *values* as JSON lines."""
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "fetched"}, "kind"),
        ({"seq": "0"}, "seq"),
        ({"seq": True}, "seq"),
        ({"at_us": 1.5}, "at_us"),
        ({"group_id": "\ud800"}, "group_id"),
        ({"partition": 2**31}, "partition"),
        ({"member": "m1"}, "member"),
        ({"request": None}, "request.offset"),
        ({"request": {"offset": "3"}}, "request.offset"),
        ({"request": {"offset": 3, "ofset": 3}}, "request.ofset"),
        ({"kind": "acknowledge", "request": {"batches": [[0, 1, [1]], [2, 3]]}}, "request.batches[1]"),
        ({"kind": "acknowledge", "request": {"batches": [[0, 1, [300]]]}}, "request.batches[0][2][0]"),
        ({"kind": "log", "request": {"batches": [[0, 1, {"size": 3}]]}}, "request.batches[0][2].size"),
        ({"kind": "fetch", "request": {}, "response": {}}, "response.acquired"),
        ({"kind": "fetch", "request": {}, "response": {"error": "none"}}, "response.error"),
    ],
)
def test_a_malformed_event_is_refused_at_its_place(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    """An event with a wrong, unknown or missing field is refused with file, line and field."""
    path = lines(tmp_path, HEADER, LINE, {**LINE, "seq": 1, **changes})

    error = refused(path)

    assert (error.file, error.line, error.field) == (str(path), 3, field)


def test_an_answer_with_an_error_may_lack_what_others_have() -> None:
    """A fetch that was refused has acquired nothing, and a read that failed knows no state."""
    response = {"error": "not_leader_or_follower"}
    for kind in ("fetch", "initialize"):
        event = read_event({**LINE, "kind": kind, "request": {}, "response": response})

        assert event.response == response


def test_an_event_says_whether_it_was_observed() -> None:
    """It was, unless it says that it follows from something else."""
    assert [read_event({**LINE, "inferred": each}).inferred for each in (None, False, True)] == [False, False, True]
    assert not read_event(LINE).inferred
    with pytest.raises(MalformedInputError, match="inferred"):
        read_event({**LINE, "inferred": "yes"})


def test_a_comment_may_stand_anywhere() -> None:
    """In an event, its request and its response, before other fields and after them: none of these is passed over."""
    comment = {"comment": "a reason"}
    request, response = {"max_records": 5, "max_bytes": 7}, {"acquired": [], "lock_ms": 9}
    event = {**LINE, "kind": "fetch", "request": request, "response": response}
    commented = {**event, "request": {**comment, **request}, "response": {"acquired": [], **comment, "lock_ms": 9}}

    assert read_event({**comment, **commented}) == read_event(event)
    assert (read_event(commented).request, read_event(commented).response) == (request, {"acquired": (), "lock_ms": 9})


@pytest.mark.parametrize("name", ["group_id", "topic_id", "partition", "seq", "kind"])
def test_a_column_that_is_needed_is_missed(tmp_path: Path, name: str) -> None:
    """A line without a column that is required, and a Parquet file without any column, are refused by its name."""
    path = lines(tmp_path, HEADER, {each: value for each, value in LINE.items() if each != name})
    assert refused(path).field == name

    whole = tmp_path / "history.parquet"
    with create_history(whole) as file:
        file.write([read_event(LINE)])
    table = pq.read_table(whole)
    pq.write_table(table.drop_columns([name]), whole)

    assert refused(whole).field == name


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("numbers", "line", "problem"),
    [
        ([0, 1, 3], 3, "event 2 is missing: 3 comes after 1"),
        ([0, 1, 1], 3, "event 1 comes again, or too late"),
        ([1], 1, "the first event is 1: the beginning is missing, or was given to another replay"),
    ],
)
def test_a_hole_or_a_repetition_is_noticed(
    tmp_path: Path, suffix: str, numbers: list[int], line: int, problem: str
) -> None:
    """An event that is missing, comes twice or begins late is an error at its line, or its row in Parquet."""
    path = tmp_path / f"history{suffix}"
    with create_history(path) as file:
        file.write([read_event({**LINE, "seq": number}) for number in numbers])

    error = refused(path)

    assert (error.field, error.message) == ("seq", f"{problem} ({'{}-{}-{}'.format(*KEY)})")
    assert error.line == line + (suffix != ".parquet")


def test_a_part_may_begin_with_any_number(tmp_path: Path) -> None:
    """The events of a share partition that began in another file are read, and a hole among them is noticed."""
    path = lines(
        tmp_path, HEADER, {**LINE, "seq": 7}, {**LINE, "partition": 1}, {**LINE, "seq": 8}, {**LINE, "seq": 10}
    )

    with pytest.raises(HistoryError, match="event 9 is missing") as caught:
        list(JsonHistory(path).part())

    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 5, "seq")
    assert [event.seq for event in islice(JsonHistory(path).part(), 3)] == [7, 0, 8]


@pytest.mark.parametrize(
    "header", [{"sharestate_history": 1}, {"sharestate_history": 3}, {"sharestate_history": True}, {}, LINE]
)
def test_an_unknown_version_is_refused(tmp_path: Path, header: Json) -> None:
    """A file of another version, or that is no history, is refused in both formats before any event."""
    path = lines(tmp_path, header, LINE)
    assert refused(path).line == 1

    other = tmp_path / "history.parquet"
    table = pa.Table.from_batches([encode_events([read_event(LINE)])])
    pq.write_table(table.replace_schema_metadata({"sharestate_history": json.dumps(header)}), other)

    assert "sharestate_history" in refused(other).field or header == LINE


def test_rows_can_be_read_once_their_files_are_closed(tmp_path: Path) -> None:
    """Whoever has written them may still be there."""
    file = ParquetRows(tmp_path / "rows")
    file.write_rows([OutputRow(KEY, 1, 2, "metric", ("locks_expired", 5))])

    file.close()

    (row,) = pq.read_table(tmp_path / "rows" / "kind=metric" / "part-0.parquet").to_pylist()
    assert (row["seq"], row["at_us"], row["name"], row["value"]) == (1, 2, "locks_expired", 5)


def test_without_the_extra_there_is_no_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said, with what to install; another module that is missing is named itself."""

    def imported(missing: str) -> Callable[[str], NoReturn]:
        def fail(_: str) -> NoReturn:
            raise ModuleNotFoundError(name=missing)

        return fail

    monkeypatch.setattr("sharestate.history.files.import_module", imported("pyarrow"))
    with pytest.raises(ModuleNotFoundError, match="Parquet needs the extra 'parquet'") as caught:
        parquet_files()
    assert caught.value.name == "pyarrow"
    monkeypatch.setattr("sharestate.history.files.import_module", imported("another"))
    with pytest.raises(ModuleNotFoundError, match=r"^$"):
        parquet_files()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """A compressed file that is cut off, a Parquet file that is none, and a missing file are refused by name."""
    path = tmp_path / "history.jsonl.gz"
    whole = gzip.compress("".join(f"{json.dumps(each)}\n" for each in (HEADER, LINE)).encode())
    path.write_bytes(whole[:-9])
    assert refused(path).file == str(path)

    other = tmp_path / "history.parquet"
    other.write_bytes(b"PAR1")
    assert refused(other).file == str(other)
    assert refused(tmp_path / "none.jsonl").message == "No such file or directory"
    assert "ends with" in (refused(tmp_path / "history.csv").message or "")


def left_open(read: Callable[[], object]) -> list[str]:
    """Return what Python says of files that *read* leaves open."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read()
        gc.collect()
    return [str(each.message) for each in told]


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize(("suffix", "text"), [("", ""), ("", "{}\n"), (".gz", "{}\n")])
def test_a_file_that_is_no_history_is_closed(tmp_path: Path, suffix: str, text: str) -> None:
    """It is refused at its first line: it is empty, has no header, or is not compressed as its name says."""
    path = tmp_path / f"history.jsonl{suffix}"
    path.write_text(text)

    def read() -> None:
        error = refused(path)
        assert (error.file, error.line) == (str(path), 1)

    assert left_open(read) == []


@pytest.mark.usefixtures("quick_collections")
def test_a_history_need_not_be_read_to_its_end(tmp_path: Path) -> None:
    """It is closed by who has opened it."""
    path = lines(tmp_path, HEADER, LINE)

    def read() -> None:
        with open_history(path) as history:
            assert history.header == Header()

    assert left_open(read) == []


def test_pipes_are_refused_before_they_are_opened(tmp_path: Path) -> None:
    """Opening one waits for its other end, which may never come."""
    path = tmp_path / "history.jsonl"
    os.mkfifo(path)

    assert "no regular file" in (refused(path).message or "")


def test_lines_may_begin_with_a_mark_of_their_encoding(tmp_path: Path) -> None:
    """Some programs put the byte order mark of UTF-8 before what they write."""
    path = tmp_path / "history.jsonl"
    path.write_bytes("".join(f"{json.dumps(each)}\n" for each in (HEADER, LINE)).encode("utf-8-sig"))

    assert [event.kind for event in open_history(path)] == ["log_start"]


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_text_is_no_longer_than_kafkas(tmp_path: Path, letter: str) -> None:
    """Nor is it shown whole where it is refused."""
    longest = letter * (32_767 // len(letter.encode()))

    assert [event.group_id for event in open_history(lines(tmp_path, HEADER, LINE | {"group_id": longest}))] == [
        longest
    ]
    exact = longest + "x" * (32_767 - len(longest.encode()))
    assert [event.group_id for event in open_history(lines(tmp_path, HEADER, LINE | {"group_id": exact}))] == [exact]
    error = refused(lines(tmp_path, HEADER, LINE | {"group_id": longest + letter}))
    assert "group_id: expected a text of 32767 bytes at most, got" in str(error)
    assert len(str(error)) < 500
    assert len(str(refused(lines(tmp_path, HEADER, LINE | {"x" * 100_000: 1})))) < 1000
    assert len(str(refused(lines(tmp_path, HEADER, LINE | {"request": {"x" * 100_000: 1}})))) < 1000


@pytest.mark.parametrize("item", ["[]", "{}", '"ab"', "[0,0]"])
def test_a_line_has_no_more_values_than_memory_has_room_for(tmp_path: Path, item: str) -> None:
    """A line of a length that is read may stand for fifty times as much memory; it is refused before it is decoded."""
    count = (2**24 - 300) // (len(item) + 1)
    text = json.dumps(LINE | {"kind": "log", "request": {"batches": 0}}).replace(
        "0}}", f"[{','.join([item] * count)}]}}}}"
    )
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(HEADER)}\n{text}\n".encode(), 1))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    error = refused(path)

    assert (error.line, error.message) == (2, "more than 1048576 values")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


def test_compressed_lines_are_no_more_than_what_they_take(tmp_path: Path) -> None:
    """There is one for eight bytes, and 10,000 more."""
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(HEADER)}\n".encode() + b"\n" * 100_000))

    error = refused(path)
    told = re.fullmatch(r"more than (\d+) lines in \d\d\d bytes", error.message or "")
    assert told is not None
    assert error.line == int(told[1]) + 1
    events = "".join(f"{json.dumps(LINE | {'seq': seq})}\n" for seq in range(10_000))
    path.write_bytes(gzip.compress(f"{json.dumps(HEADER)}\n{events}".encode()))
    assert sum(1 for _ in open_history(path)) == 10_000


# ---- where events were read from


def test_a_history_without_sources_is_read(tmp_path: Path) -> None:
    """Parquet may lack the columns for the file and the line that an event was read from: they are not known."""
    wanted = [read_event(LINE)]
    assert wanted[0].source is None
    path = tmp_path / "history.parquet"
    table = pa.Table.from_batches([encode_events(wanted)]).drop_columns(["source_file", "source_line"])
    pq.write_table(table.replace_schema_metadata({"sharestate_history": json.dumps(HEADER)}), path)

    assert list(open_history(path)) == wanted


@pytest.mark.parametrize("name", ["request", "inferred"])
def test_a_history_without_sources_has_all_else(tmp_path: Path, name: str) -> None:
    """What comes after the columns that Parquet may lack is needed as what comes before them."""
    path = tmp_path / "history.parquet"
    with create_history(path) as file:
        file.write([read_event(LINE)])
    pq.write_table(pq.read_table(path).drop_columns(["source_file", "source_line", name]), path)

    assert refused(path).field == name
