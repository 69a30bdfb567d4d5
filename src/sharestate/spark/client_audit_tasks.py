"""
What the tasks of an audit do, over Arrow's record batches; nothing here needs Spark.

A file is split by one task, and the share partitions of a topic partition are judged by one task. What tasks have found
out goes to the driver as Python's own bytes, as what they know comes from it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
from attrs import frozen

from sharestate.audit import AuditSettings, OperationLog, SharePartitionName
from sharestate.audit.clocks import ClockBounds
from sharestate.audit.importers import open_log
from sharestate.audit.judgment import Judgment, clock_orders
from sharestate.audit.log_parts import (
    CommonOperations,
    LoggedFile,
    PlacedOperation,
    TopicPartition,
    cut,
    log_of_part,
    rows_of,
)
from sharestate.audit.operations import read_operation
from sharestate.json_lines import read_json, write_json

_ROWS_PER_BATCH: Final = 1000
"""Rows that are written at once. [rows]"""


class SplitKind(IntEnum):
    """What a row of a file that was split is."""

    HEADER = 0
    """The header."""

    COMMON = 1
    """An operation that all parts have to know."""

    OWN = 2
    """What an operation has of a topic partition."""


class SplitRow(NamedTuple):
    """
    A row of a file that was split.

    Attributes:
        kind: One of ``SplitKind``.
        topic: The topic of what is of one topic partition; else empty.
        partition: The partition, likewise; else -1.
        file: The number of the file.
        number: The number of the operation in it; of a header, how many there are.
        line: The line; of a header, how many rows the operations have.
        text: The header or the operation as JSON.
    """

    kind: int
    topic: str
    partition: int
    file: int
    number: int
    line: int
    text: str


SPLIT_SCHEMA: Final = pa.schema(
    [
        pa.field("kind", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int64()),
        pa.field("file", pa.int64()),
        pa.field("number", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("text", pa.string()),
    ]
)

FOUND_SCHEMA: Final = pa.schema([pa.field("found", pa.binary())])


@frozen(kw_only=True)
class SplitTask:
    """How files are read."""

    group: str | None
    """The share group of events that name none."""

    log_format: str | None
    """The format of all files; found out for each if None."""


@frozen(kw_only=True)
class AuditTask:
    """What all tasks that judge have to know."""

    files: tuple[LoggedFile, ...]
    """All files."""

    common: tuple[PlacedOperation, ...]
    """The operations that all parts have to know."""

    rows: int
    """How many rows the whole log has."""

    settings: AuditSettings
    """What is taken for granted."""

    group: str | None
    """The only share group to judge; all if None."""

    bounds: ClockBounds | None = None
    """By how much clocks may differ; None as long as that is to be found out."""


def split_files(task: SplitTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Split files of operations.

    Args:
        task: How they are read.
        batches: The numbers and the names of the files.

    Raises:
        OperationsError: A file cannot be read.

    Complexity:
        A file is read once; memory for what all parts have to know of it.
    """
    rows = (row for batch in batches for each in batch.to_pylist() for row in _split(task, each["file"], each["name"]))
    while some := list(islice(rows, _ROWS_PER_BATCH)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SPLIT_SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SPLIT_SCHEMA)


def _split(task: SplitTask, file: int, name: str) -> Iterator[SplitRow]:
    with open_log(name, group=task.group, log_format=task.log_format) as reader:
        header = reader.header
        common, rows = CommonOperations(file, LoggedFile(name, header)), 0
        for line, operation in reader:
            common.take(line, operation)
            for (topic, partition), own in cut(operation):
                text = write_json(own.to_json())
                rows += rows_of(own)
                yield SplitRow(SplitKind.OWN, topic, partition, file, common.operations, line, text)
        for placed in common.chosen():
            yield SplitRow(SplitKind.COMMON, "", -1, *placed[:3], write_json(placed.operation.to_json()))
        yield SplitRow(SplitKind.HEADER, "", -1, file, common.operations, rows, write_json(header.to_json()))


def placed_operation(file: int, number: int, line: int, text: str) -> PlacedOperation:
    """Return the operation of a row."""
    return PlacedOperation(file, number, line, read_operation(read_json(text)))


def judge_parts(task: AuditTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Judge share partitions, or find out what their records say of clocks.

    Args:
        task: What all tasks know.
        batches: What operations have of topic partitions, by file and number.

    Complexity:
        Memory for the columns of the operations of these topic partitions.
    """
    own: set[TopicPartition] = set()
    log = log_of_part(task.files, task.common, _placed(batches, own), task.rows)
    if task.bounds is None:
        yield _found(clock_orders(log, task.settings, _keys(log, own, None)))
        return
    judgment = Judgment(log, task.settings, task.bounds)
    for key in _keys(log, own, task.group):
        yield _found(judgment.part(key))


def _placed(batches: Iterable[pa.RecordBatch], own: set[TopicPartition]) -> Iterator[PlacedOperation]:
    for batch in batches:
        for row in batch.to_pylist():
            own.add((row["topic"], row["partition"]))
            yield placed_operation(row["file"], row["number"], row["line"], row["text"])


def _keys(log: OperationLog, own: set[TopicPartition], group: str | None) -> list[SharePartitionName]:
    return [key for key in log.keys(group) if (key.topic, key.partition) in own]


def _found(what: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(what)], pa.binary())], schema=FOUND_SCHEMA)
