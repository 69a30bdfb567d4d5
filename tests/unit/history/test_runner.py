"""Replays of many share partitions, from file to file and over Arrow record batches."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from sharestate import AcquiredRecords, MalformedInputError, StateBatch
from sharestate.history import (
    OUTPUTS,
    AppendedBatch,
    Event,
    Header,
    HistoryError,
    HistoryOrderError,
    Order,
    OutputRow,
    ReplaySettings,
    create_history,
    replay_events,
    replay_files,
)
from sharestate.history.arrow import EVENT_SCHEMA, OUTPUT_SCHEMA, encode_events, encode_rows
from sharestate.history.arrow_replay import replay_batches
from sharestate.history.files import expect_causal
from sharestate.json_lines import read_json, write_json

LATE_US = 60_000_000
EVERYTHING = ReplaySettings(outputs=frozenset(OUTPUTS))


def life(partition: int) -> list[Event]:
    """Return the history of one share partition: as many acquisitions as its number, whose locks expire."""
    key = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", partition)
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    events = [Event.of(key, 0, "initialize", at_us=0, request={"leader_epoch": 1}, response=read)]
    for number in range(partition):
        fetched = {"fetch_offset": 5 * number, "batches": (AppendedBatch(5 * number, 5 * number + 4),)}
        acquired = {"acquired": (AcquiredRecords(5 * number, 5 * number + 4, 1),)}
        events.append(Event.of(key, number + 1, "fetch", at_us=1, member_id="m", request=fetched, response=acquired))
    expired = [Event.of(key, partition + 1 + number, "expire", at_us=LATE_US) for number in range(partition)]
    return [*events, *expired, Event.of(key, 2 * partition + 1, "config", at_us=LATE_US, request={})]


SORTED = [event for partition in range(4) for event in life(partition)]
INTERLEAVED = sorted(SORTED, key=lambda event: (event.seq, event.partition))


def batches(events: list[Event], size: int) -> list[Any]:
    """Return *events* in record batches of *size*."""
    return [encode_events(events[at : at + size]) for at in range(0, len(events), size)]


def rows(made: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the rows of record batches, in the order of share partition, kind and number."""
    found = pa.Table.from_batches(made, OUTPUT_SCHEMA).to_pylist()
    return sorted(
        found, key=lambda row: (row["partition"], row["kind"], row["seq"], row["first_offset"] or 0, row["name"] or "")
    )


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_record_batches_may_end_anywhere(size: int) -> None:
    """The rows are the same wherever the record batches end, and those of the events one by one."""
    assert rows(replay_batches(batches(SORTED, size), EVERYTHING)) == rows(
        encode_rows(replay_events(INTERLEAVED, EVERYTHING))
    )


def test_rows_have_the_schema() -> None:
    """Every record batch of rows has the columns of the schema in their order: Spark matches them by position."""
    for batch in replay_batches(batches(SORTED, 5), EVERYTHING):
        assert batch.schema == OUTPUT_SCHEMA


def test_a_share_partition_that_comes_back_is_refused() -> None:
    """A share partition whose events are not together is refused."""
    with pytest.raises(HistoryOrderError):
        list(replay_batches(batches(INTERLEAVED, 100)))


def test_a_column_that_is_missing_is_refused() -> None:
    """Record batches without a column are refused by its name."""
    with pytest.raises(HistoryError) as caught:
        list(replay_batches([batch.drop_columns(["connection"]) for batch in batches(SORTED, 9)]))

    assert caught.value.field == "connection"


def test_an_event_that_is_malformed_is_named() -> None:
    """Whoever has record batches of many share partitions learns which event of which of them it was."""
    events = [*life(1), *(event._replace(at_us=-1000) for event in life(2))]

    with pytest.raises(MalformedInputError, match=r"^now_ms: event 1: .* \(g-dGhlIHRvcGljJ3MgaWQhIQ-2\)$"):
        list(replay_batches(batches(events, 100)))


def test_a_value_that_is_malformed_is_named() -> None:
    """So it is if a value is none that its field may have, wherever it is in its record batch."""
    events = [*life(3), *life(2)]
    events[-2] = events[-2]._replace(kind="fetched")

    with pytest.raises(HistoryError, match=r"^kind: event 4: expected one of .* \(g-dGhlIHRvcGljJ3MgaWQhIQ-2\)$"):
        list(replay_batches(batches(events, 4)))


def test_a_value_that_is_malformed_somewhere_is_named_with_the_first_event() -> None:
    """What Arrow decodes at once it does not find the place of: the error says where the rows begin, and how many."""
    (batch,) = batches(life(2), 100)
    text = pa.array([b"\xff"] * batch.num_rows).view(pa.string())
    damaged = batch.set_column(batch.schema.get_field_index("member_id"), "member_id", text)

    with pytest.raises(HistoryError, match=r"event 0: not UTF-8, in one of 6 rows \(g-dGhlIHRvcGljJ3MgaWQhIQ-2\)$"):
        list(replay_batches([damaged]))


@pytest.mark.parametrize(
    "columns", [[*EVENT_SCHEMA.names, "state"], ["state", *EVENT_SCHEMA.names]], ids=["state last", "state first"]
)
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_a_stream_goes_on_from_its_states(cut: int, columns: list[str]) -> None:
    """Events in two parts, the second of which opens each share partition with its state, give the rows of all."""
    first = [event for event in SORTED if event.seq <= cut]
    second = [event for event in SORTED if event.seq > cut]
    made = list(replay_batches(batches(first, 4), EVERYTHING))
    states = [row for row in rows(made) if row["kind"] == "state"]
    assert len(states) == 4

    schema = EVENT_SCHEMA.append(pa.field("state", pa.string()))
    opening = [
        {**dict.fromkeys(schema.names), **{name: row[name] for name in row if name in schema.names}} for row in states
    ]
    table = pa.Table.from_batches([encode_events(second)]).append_column("state", pa.nulls(len(second), pa.string()))
    table = pa.concat_tables([pa.Table.from_pylist(opening, schema), table], promote_options="permissive")
    table = table.append_column("first", pa.array([0] * len(states) + [1] * len(second)))
    table = table.sort_by([("partition", "ascending"), ("first", "ascending"), ("seq", "ascending")])
    later = list(replay_batches(table.select(columns).to_batches(max_chunksize=3), EVERYTHING))

    ends = {"state", "snapshot", "metric"}
    together = [row for row in rows(made) if row["kind"] not in ends] + rows(later)
    key = json.dumps
    assert sorted(together, key=key) == sorted(rows(replay_batches(batches(SORTED, 4), EVERYTHING)), key=key)


# ---- files


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_file_is_replayed_to_json_lines(tmp_path: Path, suffix: str) -> None:
    """Rows go to JSON lines after a header with the version, and are counted."""
    source = tmp_path / f"history{suffix}"
    with create_history(source) as file:
        file.write(INTERLEAVED)

    summary = replay_files(source, tmp_path / "rows.jsonl")

    header, *lines = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    assert header == {"sharestate_history_rows": 1}
    assert len(lines) == sum(summary.rows.values())
    assert summary.share_partitions == 4
    assert summary.events == len(SORTED)
    assert summary.metrics["locks_expired"] == sum(1 for line in lines if line["kind"] == "write") == 6


def test_a_file_is_replayed_to_parquet(tmp_path: Path) -> None:
    """Each kind of rows has a directory of its own, which together read as one table."""
    source = tmp_path / "history.parquet"
    with create_history(source) as file:
        file.write(SORTED)

    summary = replay_files(source, tmp_path / "rows", EVERYTHING)

    table = ds.dataset(tmp_path / "rows", partitioning="hive").to_table()
    expected = pa.Table.from_batches(encode_rows(replay_events(SORTED, EVERYTHING)))
    order = [(name, "ascending") for name in ("kind", "partition", "seq", "at_us", "first_offset", "name")]
    names = OUTPUT_SCHEMA.names
    assert table.select(names).sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
    assert summary.rows == {kind: count for kind in OUTPUTS if (count := expected["kind"].to_pylist().count(kind))}


def test_what_the_header_lacks_is_known(tmp_path: Path) -> None:
    """In a history whose header says that it lacks writes, none is left unanswered."""
    source = tmp_path / "history.jsonl"
    with create_history(source, Header(lacks=frozenset({"write"}))) as file:
        file.write(SORTED)

    assert replay_files(source, tmp_path / "rows.jsonl").metrics["writes_unanswered"] == 0


def test_a_target_that_is_there_is_not_touched(tmp_path: Path) -> None:
    """Rows are not written over anything, and a history that cannot be read leaves no rows."""
    source = tmp_path / "history.jsonl"
    target = tmp_path / "rows.jsonl"
    with pytest.raises(HistoryError):
        replay_files(source, target)
    assert not target.exists()

    with create_history(source) as file:
        file.write(SORTED)
    target.write_text("mine")
    with pytest.raises(HistoryError, match="is there already"):
        replay_files(source, target)
    assert target.read_text() == "mine"


def test_an_event_of_a_file_is_named_with_its_field(tmp_path: Path) -> None:
    """The error says the file, the number of the event in it, and which of its fields it was."""
    events = [*life(1), *(event._replace(at_us=-1000) for event in life(2))]
    source = tmp_path / "history.jsonl"
    with create_history(source) as file:
        file.write(events)

    with pytest.raises(HistoryError, match=r"history\.jsonl: now_ms: event 6: ") as caught:
        replay_files(source, tmp_path / "rows.jsonl")

    assert (caught.value.file, caught.value.field) == (str(source), "now_ms")


@pytest.mark.parametrize(
    ("kind", "values", "columns"),
    [
        (
            "transition",
            (0, 4, "m1", 1, "acquired", None, 1, None),
            {"first_offset": 0, "last_offset": 4, "member_id": "m1", "delivery_count": 1}
            | {"cause": "acquired", "to_state": 1},
        ),
        (
            "write",
            (3, 5, 2, 0, 7, (StateBatch(0, 4, 2, 1),)),
            {"number": 3, "start_offset": 5, "delivery_complete_count": 2, "state_epoch": 0, "leader_epoch": 7}
            | {"state_batches": [[0, 4, 2, 1]]},
        ),
    ],
)
def test_a_row_is_an_object_with_its_columns(kind: str, values: tuple[Any, ...], columns: dict[str, Any]) -> None:
    """Those that all rows have, and those of its kind; what is null is left out, and what is zero is not."""
    row = OutputRow(("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0), 9, None, kind, values)
    common = {"group_id": "g", "topic_id": "dGhlIHRvcGljJ3MgaWQhIQ", "partition": 0, "seq": 9, "kind": kind}

    assert read_json(write_json(row.to_json())) == common | columns
    assert read_json(write_json(row._replace(at_us=0).to_json())) == common | columns | {"at_us": 0}


@pytest.mark.parametrize("name", ["rows", "rows.jsonl", "rows.jsonl.gz"])
def test_rows_go_into_a_directory_that_is_made(tmp_path: Path, name: str) -> None:
    """With those above it; nothing but the rows is left there."""
    source, target = tmp_path / "life.jsonl", tmp_path / "later" / "today" / name
    with create_history(source) as file:
        file.write(life(1))

    assert replay_files(source, target).events == len(life(1))

    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("name", ["rows", "rows.jsonl", "rows.jsonl.gz"])
def test_a_malformed_history_leaves_nothing(tmp_path: Path, name: str) -> None:
    """Rows that were written before the error are gone, and so is every directory."""
    source = tmp_path / "life.jsonl"
    with create_history(source) as file:
        file.write(SORTED)
    with source.open("a") as text:
        text.write(source.read_text().splitlines()[-1] + "\n")

    with pytest.raises(HistoryError, match="comes again"):
        replay_files(source, tmp_path / name)

    assert list(tmp_path.iterdir()) == [source]


def test_an_unknown_output_is_refused() -> None:
    """Outputs are named by the table."""
    with pytest.raises(MalformedInputError, match="expected some of initialization"):
        ReplaySettings(outputs=frozenset({"writes"}))


def test_a_history_in_order_of_arrival_is_not_replayed(tmp_path: Path) -> None:
    """The error names the command that puts it in causal order, and nothing is written."""
    source, target = tmp_path / "history.jsonl", tmp_path / "rows.jsonl"
    create_history(source, Header(order=Order.ARRIVAL)).close()

    with pytest.raises(HistoryError, match=r"sharestate log verify .*history\.jsonl -o") as caught:
        replay_files(source, target)

    assert caught.value.field == "order"
    assert not target.exists()


def test_events_whose_order_nobody_knows_are_refused() -> None:
    """Such as those of a table: whoever has them may say it."""
    with pytest.raises(HistoryError, match=r"nothing says in which order .*: name it, as in order='causal'") as caught:
        expect_causal(None, "events")

    assert (caught.value.file, caught.value.field) == ("events", "order")
    expect_causal(Order.CAUSAL, "events")
