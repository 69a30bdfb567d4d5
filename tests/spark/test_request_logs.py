"""Request logs that are imported on Spark: the same events as without it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.errors import HistoryError, MalformedInputError, RequestLogError
from sharestate.history import open_history
from sharestate.spark import import_logs, read_history
from tests.support.broker_logs import RUN, lines

pytestmark = pytest.mark.spark


def test_events_are_those_of_the_import_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Of rotated and compressed files each event is the same, with file and line, and Spark reads the history."""
    own, logs = lines(), tmp_path / "logs"
    logs.mkdir()
    (logs / "request.log.1.gz").write_bytes(gzip.compress("".join(own[:2000]).encode()))
    (logs / "request.log").write_text("".join(own[2000:]))
    properties = read_properties(RUN / "server.properties")
    plain = LogImport(RequestLog(sorted(logs.iterdir())), TopicLogs(RUN / "segments"), broker=properties)
    expected = sorted(plain, key=lambda event: (event.key, event.seq))

    target = tmp_path / "history"
    imported = import_logs(spark, [str(logs)], str(target), segments=[str(RUN / "segments")], properties=properties)

    files = [list(open_history(path)) for path in sorted(target.iterdir())]
    made = [event for events in files for event in events]
    assert sorted(made, key=lambda event: (event.key, event.seq)) == expected
    assert sum(len({event.group_id for event in events}) for events in files) == 3  # each in one file
    assert imported.events == len(expected)
    assert imported.counts["lines"] == len(own)
    assert {name: imported.counts[name] for name in plain.counts} == dict(plain.counts)
    assert read_history(spark, str(target)).count() == len(expected)


def test_logs_may_be_wrapped_as_for_the_plain_import(spark: SparkSession, tmp_path: Path) -> None:
    """Lines in pieces, as a container's runtime writes them, and stamps of another zone make the same events."""
    log, target = tmp_path / "request.log", tmp_path / "history"
    pieces = [f"{time} stdout {tag} {piece}" for line in lines() for time, tag, piece in cut(line)]
    log.write_text("".join(pieces))
    later = [
        event.at_us for event in LogImport(RequestLog([RUN / "request.log.gz"]), TopicLogs(())) if event.connection
    ]

    imported = import_logs(spark, [str(log)], str(target), utc_offset_us=2 * 3_600_000_000)

    made = [event for path in target.iterdir() for event in open_history(path)]
    assert sorted(event.at_us + 2 * 3_600_000_000 for event in made if event.connection and event.at_us) == sorted(
        at_us for at_us in later if at_us
    )
    assert imported.counts["without_utc_offset"] > 0


def cut(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield the time, the tag and the text of each piece of a line."""
    text = line.rstrip("\n")
    for begin in range(0, len(text), 500):
        is_last = begin + 500 >= len(text)
        yield "2026-11-22T02:35:00.6Z", "F" if is_last else "P", f"{text[begin : begin + 500]}\n"


def test_what_has_no_request_is_no_request_log(spark: SparkSession, tmp_path: Path) -> None:
    """The error says so, and there is no history."""
    with pytest.raises(RequestLogError, match=r"server\.properties: none of \d+ lines has a request"):
        import_logs(spark, [str(RUN / "server.properties")], str(tmp_path / "history"))

    assert not (tmp_path / "history").exists()


def test_a_broken_line_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The job ends with file and line, and there is no history."""
    log = tmp_path / "request.log"
    log.write_text("".join(lines()[:20]) + "2026-11-22T04:35:43.518906 Completed request:{\n")

    with pytest.raises(PythonException, match=r"RequestLogError: .*request\.log:21: the line is cut off"):
        import_logs(spark, [str(log)], str(tmp_path / "history"))

    assert not (tmp_path / "history").exists()


def test_arguments_are_judged_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """There are logs, segments are directories, and the target is new."""
    log = str(RUN / "request.log.gz")
    with pytest.raises(MalformedInputError, match="logs: expected the logs of a broker"):
        import_logs(spark, [], str(tmp_path / "history"))
    with pytest.raises(MalformedInputError, match="segments: expected directories, got 'a'"):
        import_logs(spark, [log], str(tmp_path / "history"), segments=["a"])
    with pytest.raises(HistoryError, match="is there already"):
        import_logs(spark, [log], str(tmp_path))
