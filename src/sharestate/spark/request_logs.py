"""Request logs of many brokers, imported on Spark to a history: the same events as the plain import makes."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, frozen
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from sharestate.errors import HistoryError, RequestLogError
from sharestate.history import Header, Order, create_history
from sharestate.spark.history_schemas import EVENTS, SHARE_PARTITION
from sharestate.spark.workers import tasks, use_this_python
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sharestate.spark.request_log_tasks import ImportSettings

_PARSED: Final = StructType(
    [
        StructField("what", IntegerType()),
        StructField("taken_us", LongType()),
        StructField("connection", StringType()),
        StructField("number", LongType()),
        StructField("file", StringType()),
        StructField("block", LongType()),
        StructField("line", LongType()),
        StructField("text", BinaryType()),
    ]
)
_FOLDED: Final = StructType(
    [
        *(StructField(field.name, field.dataType) for field in EVENTS),
        StructField("note", StringType()),
        StructField("count", LongType()),
    ]
)
_WRITTEN: Final = StructType([StructField("note", StringType()), StructField("count", LongType())])
_WHILE_WRITTEN: Final = "_temporary"


@frozen(kw_only=True)
class ImportedLogs:
    """What an import of request logs has made."""

    events: int
    """The events."""

    counts: Counter[str] = Factory(Counter)
    """What was counted: see ``LogImport.counts``; ``broken_lines`` and ``late`` besides."""

    broken: tuple[str, ...] = ()
    """The first broken lines, and what is wrong with them."""

    assumed: Mapping[str, tuple[str, ...]] = Factory(dict)
    """The settings of each group that nothing says: Kafka's defaults are assumed."""

    clock_offsets: tuple[str, ...] = ()
    """The brokers whose clocks disagree, and by how much."""

    clock_changes: tuple[str, ...] = ()
    """Where the clock of a broker was put forward, as for summer time."""


def import_logs(  # noqa: PLR0913 - the settings of an import, by name
    spark: SparkSession,
    logs: Sequence[str],
    target: str,
    *,
    segments: Sequence[str] = (),
    properties: Mapping[str, Any] | None = None,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str | None = None,
    profile: str | None = None,
    field: str | None = None,
    utc_offset_us: int = 0,
    redaction_key: bytes | None = None,
    is_lenient: bool = False,
    partitions: int | None = None,
) -> ImportedLogs:
    """
    Import the request logs of brokers, and write a history that ``read_history`` and ``open_history`` take.

    Args:
        spark: The session.
        logs: The logs of all brokers: files, directories or patterns, as Spark takes them, also compressed.
        target: The new directory of the history's files, which every worker sees under this path.
        segments: The directories of log segments of brokers, likewise, in any order.
        properties: The settings of the brokers, as ``read_all_properties`` returns them.
        groups: The settings of groups when the logs begin, as ``read_group_configs`` returns them.
        group_id: The only group to import; all if None.
        profile: The name of the rules that the brokers follow; by their releases if None.
        field: Where JSON has the line, as in ``_source.message``; it is looked for in the usual fields, too.
        utc_offset_us: The offset from UTC of stamps that do not say their own. [µs]
        redaction_key: The key with which names are replaced with hashes: see ``LogImport``.
        is_lenient: Whether broken lines are skipped.
        partitions: The number of tasks after each shuffle; None for ``spark.sql.shuffle.partitions``. [tasks]

    Returns:
        What was imported.

    Raises:
        MalformedInputError: An argument is wrong.
        HistoryError: *target* is there already.
        RequestLogError: There is no request in any file.
        AnalysisException: A log cannot be found.
        PythonException: One of Spark's, which ends in a RequestLogError with file and line if a line is broken, or in a
            SegmentError if segments cannot be read; nothing is left of what was written.

    Complexity:
        Two shuffles. Lines are parsed where they are read; the requests of a cluster are folded by one task, in memory
        for those of ten seconds; the events of a group are written by one task.
    """
    from sharestate.broker_log import TopicLogs  # noqa: PLC0415 - needs an extra
    from sharestate.spark.request_log_tasks import ImportSettings  # noqa: PLC0415 - imports pyarrow

    if not logs:
        refuse("expected the logs of a broker, got none", "logs")
    for each in segments:
        if not Path(each).is_dir():
            refuse(f"expected directories, got {each!r}", "segments")
    settings = ImportSettings(
        segments=tuple(segments),
        properties=dict(properties or {}),
        groups=dict(groups or {}),
        group_id=group_id,
        profile=profile,
        field=field,
        utc_offset_us=utc_offset_us,
        redaction_key=redaction_key,
        is_lenient=is_lenient,
    )
    directory = Path(target)
    if directory.exists():
        exists = "is there already"
        raise HistoryError(exists, target)
    header = Header(
        source="request logs of brokers" if redaction_key is not None else ", ".join(logs),
        order=Order.ARRIVAL,
        lacks=() if segments else ("log",),
        topics={} if redaction_key is not None else TopicLogs(map(Path, segments)).topic_names(),
    )
    use_this_python(spark)
    lines = _lines(spark, logs)
    folded = _folded(lines, settings)
    try:
        (directory / _WHILE_WRITTEN).mkdir(parents=True)
        notes = _write(folded, directory, header, tasks(lines, partitions))
        _expect_requests(notes.counts, logs)
    except BaseException:
        rmtree(directory, ignore_errors=True)
        raise
    return notes


def _expect_requests(counts: Mapping[str, int], logs: Sequence[str]) -> None:
    if counts["requests"]:
        return
    message = (
        f"none of {counts['lines']:,} lines has a request that says anything of share groups: is this a request log, of"
        " the logger kafka.request.logger at DEBUG? What is compressed with gzip has to have a name that ends with .gz"
    )
    raise RequestLogError(message, ", ".join(logs))


def _lines(spark: SparkSession, logs: Sequence[str]) -> DataFrame:
    """Return the lines of all files, each with its file and the part of it that a task reads."""
    frames = [
        spark.read.option("lineSep", "\n")
        .text(path)
        .select(
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.col("value"),
        )
        for path in logs
    ]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionAll(frame)
    return lines


def _folded(lines: DataFrame, settings: ImportSettings) -> DataFrame:
    parsed = lines.mapInArrow(partial(_parse, settings), _PARSED)
    # By one task: the log of each broker says something that the others need.
    in_order = parsed.repartition(1).sortWithinPartitions(*_PARSED.names[:-1])
    return in_order.mapInArrow(partial(_fold, settings), _FOLDED)


def _write(folded: DataFrame, directory: Path, header: Header, partitions: int) -> ImportedLogs:
    """Write the events, and give files their names once all of them are written."""
    from sharestate.spark.request_log_tasks import ASSUMED, BROKEN, CLOCK, FILE, OFFSET  # noqa: PLC0415 - imports pyarrow

    order = (*SHARE_PARTITION, "seq")
    # A file has whole groups, as what a request has acquired of one share partition bears on the others.
    in_order = folded.repartition(partitions, SHARE_PARTITION[0]).sortWithinPartitions(*order)
    scratch = directory / _WHILE_WRITTEN
    rows = in_order.mapInArrow(partial(_number, str(scratch), header), _WRITTEN).collect()
    files = sorted(row.note.removeprefix(FILE) for row in rows if row.note.startswith(FILE))
    if not files:
        with create_history(directory / "part-00000.parquet", header):
            pass
    for number, name in enumerate(files):
        (scratch / name).rename(directory / f"part-{number:05}.parquet")
    rmtree(scratch)
    counts: Counter[str] = Counter()
    said: dict[str, list[str]] = {ASSUMED: [], BROKEN: [], CLOCK: [], FILE: [], OFFSET: []}
    for row in rows:
        kind = next((kind for kind in said if row.note.startswith(kind)), None)
        if kind is None:
            counts[row.note] += row["count"]
        else:
            said[kind].append(row.note.removeprefix(kind))
    return ImportedLogs(
        events=sum(row["count"] for row in rows if row.note.startswith(FILE)),
        counts=counts,
        broken=tuple(said[BROKEN]),
        assumed={group_id: tuple(names) for group_id, names in map(json.loads, said[ASSUMED])},
        clock_offsets=tuple(said[OFFSET]),
        clock_changes=tuple(said[CLOCK]),
    )


# ---- in the workers


def _parse(settings: ImportSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.request_log_tasks import parse_lines  # noqa: PLC0415 - imports pyarrow

    return parse_lines(settings, batches)


def _fold(settings: ImportSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.request_log_tasks import fold  # noqa: PLC0415 - as above

    return fold(settings, batches)


def _number(directory: str, header: Header, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.request_log_tasks import write_events  # noqa: PLC0415 - as above

    return write_events(directory, header, batches)
