"""What clients of share groups wrote down, judged on Spark: the same as ``sharestate.audit.audit`` finds out."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from sharestate.audit import Audit, AuditSettings
from sharestate.audit.audit_parts import sum_of_parts
from sharestate.audit.clocks import ClockOrders
from sharestate.audit.judgment import Judgment, bounds_of
from sharestate.audit.log_parts import LoggedFile, log_of_part
from sharestate.audit.operation_log import expect_each_once
from sharestate.audit.operations import read_operations_header
from sharestate.json_lines import read_json
from sharestate.spark.workers import tasks, use_this_python
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sharestate.spark.client_audit_tasks import AuditTask, SplitTask

_FILES: Final = StructType([StructField("file", LongType()), StructField("name", StringType())])
_SPLIT: Final = StructType(
    [
        StructField("kind", IntegerType()),
        StructField("topic", StringType()),
        StructField("partition", LongType()),
        StructField("file", LongType()),
        StructField("number", LongType()),
        StructField("line", LongType()),
        StructField("text", StringType()),
    ]
)
_FOUND: Final = StructType([StructField("found", BinaryType())])


def audit_logs(  # noqa: PLR0913 - the settings of an audit, by name
    spark: SparkSession,
    logs: Sequence[str],
    settings: AuditSettings | None = None,
    *,
    group: str | None = None,
    log_format: str | None = None,
    partitions: int | None = None,
) -> Audit:
    """
    Judge what clients of share groups wrote down.

    Args:
        spark: The session.
        logs: Files of operations, which every worker sees under these paths.
        settings: What is taken for granted; the defaults if None.
        group: The only share group to judge, and that of events that name none; all if None.
        log_format: The format of all files, as ``sharestate.audit.audit`` takes it.
        partitions: The number of tasks; None for ``spark.sql.shuffle.partitions``. Each topic partition
            is judged by one of them. [tasks]

    Returns:
        What ``sharestate.audit.audit`` returns for the same files.

    Raises:
        MalformedInputError: An argument is wrong.
        PythonException: One of Spark's, which ends in an OperationsError with file and line if a file cannot be read.

    Complexity:
        One shuffle. A file is read by one task, a topic partition judged by another one, with its operations in memory,
        70 bytes each. What all have to know is in the memory of each task: settings, ends of transactions, faults, and
        what was not answered.
    """
    from sharestate.spark.client_audit_tasks import AuditTask, SplitKind, SplitTask, placed_operation  # noqa: PLC0415 - imports pyarrow

    if not logs:
        refuse("expected files of operations, got none", "logs")
    expect_each_once(logs)
    settings = AuditSettings() if settings is None else settings
    use_this_python(spark)
    files = spark.createDataFrame(list(enumerate(map(str, logs))), _FILES)
    count = tasks(files, partitions)
    reading = SplitTask(group=group, log_format=log_format)
    split = files.repartition(min(count, len(logs))).mapInArrow(partial(_split, reading), _SPLIT).persist()
    try:
        rows = split.where(split.kind != int(SplitKind.OWN)).collect()
        heads = sorted((row.file, row.text, row.number, row.line) for row in rows if row.kind == SplitKind.HEADER)
        common = (row for row in rows if row.kind == SplitKind.COMMON)
        task = AuditTask(
            files=tuple(
                LoggedFile(str(logs[file]), read_operations_header(read_json(text))) for file, text, *_ in heads
            ),
            rows=sum(rows for *_, rows in heads),
            common=tuple(placed_operation(row.file, row.number, row.line, row.text) for row in common),
            settings=settings,
            group=group,
        )
        own = split.where(split.kind == int(SplitKind.OWN)).repartition(count, "topic", "partition")
        return _judged(task, own.sortWithinPartitions("file", "number"), sum(operations for *_, operations, _ in heads))
    finally:
        split.unpersist()


def _judged(task: AuditTask, own: DataFrame, operations: int) -> Audit:
    """Return what is found out about all parts."""
    log = log_of_part(task.files, task.common, ())
    orders = ClockOrders(log.clocks)
    if len(log.clocks) > 1:
        for each in _found(task, own):
            orders.add(each)
    bounds, notes = bounds_of(log.clocks, orders, task.settings)
    return sum_of_parts(
        sorted(_found(evolve(task, bounds=bounds), own), key=lambda part: part.key),
        Judgment(log, task.settings, bounds).no_duplicates(),
        operations=operations,
        clients=len(log.clients),
        clocks=tuple(bounds.lines()),
        notes=notes,
    )


def _found(task: AuditTask, own: DataFrame) -> list[Any]:
    rows = own.mapInArrow(partial(_judge, task), _FOUND).collect()
    return [pickle.loads(row.found) for row in rows]  # noqa: S301 - made by the tasks of this session


def _split(task: SplitTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.client_audit_tasks import split_files  # noqa: PLC0415 - imports pyarrow

    return split_files(task, batches)


def _judge(task: AuditTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.client_audit_tasks import judge_parts  # noqa: PLC0415 - imports pyarrow

    return judge_parts(task, batches)
