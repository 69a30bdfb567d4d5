"""What the tasks of an import on Spark do, in the order in which Spark has them do it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import evolve

from sharestate.broker_log import LogImport, RequestLog, RequestLogError, TopicLogs, read_properties
from sharestate.history import Event, Header, open_history
from sharestate.log_check import Verdict
from sharestate.spark.request_log_tasks import BROKEN, FILE, ImportSettings, fold, parse_lines, write_events
from tests.support import broker_logs
from tests.support.broker_answers import brokers_of
from tests.support.broker_logs import RUN, lines, reports_of

SEGMENTS = str(RUN / "segments")


def settings(*segments: str, is_lenient: bool = False) -> ImportSettings:
    """Return the settings of an import with these segments."""
    return ImportSettings(
        segments=segments,
        properties=read_properties(RUN / "server.properties"),
        groups={},
        group_id=None,
        profile=None,
        field=None,
        utc_offset_us=0,
        redaction_key=None,
        is_lenient=is_lenient,
    )


def blocks(file: str, own: list[str], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a file in parts, as Spark reads them, the last part first."""
    for begin in reversed(range(0, len(own), size)):
        part = [line.encode().rstrip() for line in own[begin : begin + size]]
        columns: dict[str, list[Any]] = {
            "file": [file] * len(part),
            "block": [begin] * len(part),
            "value": part,
        }
        yield pa.RecordBatch.from_pydict(columns)


def imported(batches: Iterator[pa.RecordBatch], how: ImportSettings, directory: Path) -> tuple[list[Event], set[str]]:
    """Run the tasks one after the other, with what Spark sorts between them; return the events and the notes."""
    parsed = pa.Table.from_batches(list(parse_lines(how, batches)))
    parsed = parsed.sort_by([(name, "ascending") for name in parsed.column_names[:-1]])
    folded = pa.Table.from_batches(list(fold(how, parsed.to_batches(1000))))
    order = ("group_id", "topic_id", "partition", "seq")
    indices = pc.sort_indices(folded.select(order), [(name, "ascending") for name in order])
    (written,) = write_events(str(directory), Header(), folded.take(indices).to_batches(1000))
    notes = written.column("note").to_pylist()
    (file,) = [note.removeprefix(FILE) for note in notes if note.startswith(FILE)]
    return list(open_history(directory / file)), set(notes)


def plain() -> list[Event]:
    """Return the events of the run as they are imported without Spark, those of each share partition together."""
    return sorted(broker_logs.imported(), key=lambda event: (event.key, event.seq))


def test_a_broker_is_imported_as_without_spark(tmp_path: Path) -> None:
    """The events are the same, with the same lines, however the files are cut into parts."""
    own = lines()
    file = f"file://{RUN}/request.log.gz"

    events, _ = imported(blocks(file, own, 700), settings(SEGMENTS), tmp_path)

    assert events == plain()


def test_brokers_have_the_rest_of_each_others_share_partitions(tmp_path: Path) -> None:
    """What the share coordinator has logged on another broker is put into its place: all of it is explained."""
    states: list[str] = []
    rest: list[str] = []
    for line in lines():
        is_of_state = "_SHARE_GROUP_STATE" in line or '"INCREMENTAL_ALTER_CONFIGS"' in line
        (states if is_of_state else rest).append(line)
    parts = [*blocks("file:/leader.log", rest, 2000), *blocks("file:/coordinator.log", states, 500)]

    events, _ = imported(iter(parts), settings(SEGMENTS), tmp_path)

    reports = reports_of(events)
    assert [report.verdict for report in reports] == [Verdict.EXPLAINED] * 6
    assert sum(report.explained.writes for report in reports) == sum(event.kind == "write" for event in plain())
    assert {event.source_file for event in events} == {None, "/leader.log", "/coordinator.log"}


def test_several_brokers_are_imported_as_without_spark(tmp_path: Path) -> None:
    """The events of three brokers are those of the plain import, whatever the order of files and segments."""
    brokers = brokers_of("k431-three")
    directories = [broker / "segments" for broker in brokers]
    log = RequestLog([broker / "request.log.gz" for broker in brokers])
    expected = sorted(LogImport(log, TopicLogs(directories)), key=lambda event: (event.key, event.seq))
    parts: list[pa.RecordBatch] = []
    for broker in reversed(brokers):
        own = gzip.decompress((broker / "request.log.gz").read_bytes()).decode().splitlines(keepends=True)
        parts += blocks(f"file://{broker}/request.log.gz", own, 300)

    events, _ = imported(iter(parts), evolve(settings(*map(str, directories)), properties={}), tmp_path)

    assert events == expected


def test_broken_lines_are_named_or_passed_over(tmp_path: Path) -> None:
    """The error has the file and its line; a lenient import notes it."""
    own = [*lines()[:900], "2026-11-22T04:35:43.518906 Completed request:{\n", *lines()[900:]]
    with pytest.raises(RequestLogError, match=r"^/request\.log:901: the line is cut off$"):
        imported(blocks("file:///request.log", own, 400), settings(SEGMENTS), tmp_path)

    events, notes = imported(blocks("file:///request.log", own, 400), settings(SEGMENTS, is_lenient=True), tmp_path)

    assert f"{BROKEN}/request.log:901: the line is cut off" in notes
    assert len(events) == len(plain())
