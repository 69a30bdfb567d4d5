"""
What the tasks of a check of brokers' logs do, over Arrow's record batches; nothing here needs Spark.

A share partition is checked by one task, with all of its events in memory, and no other's at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from sharestate.history import Event, Header, Order
from sharestate.history.arrow import expect_columns
from sharestate.history.arrow_replay import DECODED_ROWS, decoded
from sharestate.history.events import SequenceCheck
from sharestate.history.parquet_files import ParquetHistoryFile
from sharestate.json_lines import Json, write_json
from sharestate.log_check import Budget, PartitionCheck
from sharestate.log_check.verify import check_partition

HISTORY: Final = "history"
"""The directory of the histories."""

WRITTEN_SCHEMA: Final = pa.schema([pa.field("directory", pa.string()), pa.field("name", pa.string())])
"""The files that a task has written."""

_KEY: Final = itemgetter(0, 1, 2)


@frozen(kw_only=True)
class VerificationSettings:
    """What all tasks of a check know."""

    directory: str
    """Where they write."""

    header: Header
    """The header of the history in order of arrival."""

    schemas: Mapping[str, pa.Schema]
    """The schemas of the tables of verdicts and findings, by their names."""

    seconds: float | None = None
    """How long the check of a share partition may take; None for what its events allow. [s]"""

    def budget(self, events: int) -> Budget:
        """Return what the check of a share partition may cost that has so many events."""
        return Budget.of(events) if self.seconds is None else Budget.lasting(self.seconds, monotonic)


def verify_batches(settings: VerificationSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Check share partitions, write their events in causal order, their verdicts and findings, and yield the files.

    Args:
        settings: The settings.
        batches: The events in order of arrival, each share partition's together, in the order of ``seq``.

    Raises:
        HistoryError: A column is missing or of another type, or an event is malformed.
        HistoryOrderError: An event is missing, or comes again.

    Complexity:
        Memory for the events of the largest share partition; see ``check_partition``.
    """
    with ExitStack() as opened:
        files = _Files(settings, opened)
        for key, own in groupby(_in_sequence(batches), _KEY):
            located = [(event.seq + 1, event) for event in own]  # events of frames have no line but this
            files.write(check_partition(key, located, "", settings.header, settings.budget(len(located))))
    columns = list(zip(*files.written, strict=True)) or [(), ()]
    yield pa.RecordBatch.from_arrays([pa.array(each, pa.string()) for each in columns], schema=WRITTEN_SCHEMA)


def _in_sequence(batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    sequence = SequenceCheck()
    checked = None
    for batch in batches:
        if batch.schema != checked:
            expect_columns(batch.schema)
            checked = batch.schema
        for at in range(0, batch.num_rows, DECODED_ROWS):
            for event in decoded(batch.slice(at, DECODED_ROWS)):
                sequence.expect(event)
                yield event


class _Files:
    """The files of a task, each made when there is something to write."""

    def __init__(self, settings: VerificationSettings, opened: ExitStack) -> None:
        self._settings = settings
        self._header = evolve(settings.header, order=Order.CAUSAL)
        self._opened = opened
        self._files: dict[str, Any] = {}
        self.written: list[tuple[str, str]] = []

    def write(self, checked: PartitionCheck) -> None:
        """Write what was found out about a share partition."""
        self._file(HISTORY).write(checked.events())
        report = checked.report.to_json()
        self._rows("verdicts", [_verdict(report)])
        self._rows("findings", [_finding(report, each) for each in report["findings"]])

    def _rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._file(table).write_batch(pa.RecordBatch.from_pylist(rows, self._settings.schemas[table]))

    def _file(self, directory: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        if directory not in self._files:
            name = f"{uuid4().hex}.parquet"
            path = Path(self._settings.directory, name)
            self._files[directory] = self._opened.enter_context(
                ParquetHistoryFile(path, self._header)
                if directory == HISTORY
                else pq.ParquetWriter(str(path), self._settings.schemas[directory], compression="zstd")
            )
            self.written.append((directory, name))
        return self._files[directory]


def _verdict(report: Json) -> dict[str, Any]:
    """Return the report of a share partition as a row."""
    row = {name: value for name, value in report.items() if not isinstance(value, dict | list)}
    for name in ("observed", "explained"):
        row |= {f"{name}_{what}": count for what, count in report[name].items()}
    row |= {f"expiry_delay_{name}_ms": delay for name, delay in report["expiry_delay_ms"].items()}
    return row | {"findings": len(report["findings"])}


def _finding(report: Json, finding: Json) -> dict[str, Any]:
    """Return a finding as a row."""
    values = {name: finding[name] for name in ("observed", "computed")}
    return {
        **{name: report[name] for name in ("group_id", "topic_id", "partition", "topic")},
        **finding,
        **_place(finding),
        **{name: None if value is None else write_json(value) for name, value in values.items()},
        "other_places": [_place(each) for each in finding["other_places"]],
    }


def _place(place: Json) -> dict[str, Any]:
    """Return a place; without a file it is not in a request log."""
    return {"source_file": place["file"] or None, "source_line": place["line"] if place["file"] else None}
