"""Request logs that are imported on Spark: the same events as without it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.errors import HistoryError, MalformedInputError
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


def test_a_broken_line_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The job ends with file and line, and there is no history."""
    log = tmp_path / "request.log"
    log.write_text("".join(lines()[:20]) + "2026-11-22T04:35:43.518906 Completed request:{\n")

    with pytest.raises(PythonException, match=r"RequestLogError: .*request\.log:21: the line is cut off"):
        import_logs(spark, [str(log)], str(tmp_path / "history"))

    assert not (tmp_path / "history").exists()


def test_arguments_are_judged_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """There are logs, as many directories of segments or none, and the target is new."""
    log = str(RUN / "request.log.gz")
    with pytest.raises(MalformedInputError, match="logs: expected the logs of a broker"):
        import_logs(spark, [], str(tmp_path / "history"))
    with pytest.raises(MalformedInputError, match="segments: expected 1"):
        import_logs(spark, [log], str(tmp_path / "history"), segments=["a", "b"])
    with pytest.raises(HistoryError, match="is there already"):
        import_logs(spark, [log], str(tmp_path))
