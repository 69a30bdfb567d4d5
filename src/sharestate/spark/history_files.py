"""
Histories as frames of Spark: headers are judged when a history is opened, events when they are read.

Parquet is read by Spark itself. JSON Lines are read by the reader of histories, a file by a task: their rows are short
lists, for which Spark has no type, and errors name file, line and field.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from sharestate.errors import HistoryError
from sharestate.history import open_history
from sharestate.history.files import is_parquet
from sharestate.history.json_files import JsonHistory
from sharestate.spark.history_schemas import EVENTS, LACKS, ORDER, TOPICS
from sharestate.spark.workers import use_this_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_HEADERS: Final = StructType(
    [
        StructField("path", StringType()),
        StructField("order", StringType()),
        StructField("lacks", ArrayType(StringType())),
        StructField("topics", MapType(StringType(), StringType())),
        StructField("problem", StringType()),
        StructField("line", LongType()),
        StructField("field", StringType()),
    ]
)
_ROWS_PER_BATCH: Final = 1000
"""Events that are encoded at once: few live objects keep Python's garbage collector quick. [events]"""

_LOCAL: Final = "file:"


def read_history(spark: SparkSession, path: str) -> DataFrame:
    """
    Return the events of a history: a file, or all files of a directory or a pattern.

    A share partition's events may be in several files, such as those of one leader after the other. In a file of JSON
    Lines they are in order and without holes; rows of Parquet may be in any order.

    Args:
        spark: The session.
        path: Files that every executor sees under this path, by names that end with ``.jsonl``, ``.jsonl.gz`` or
            ``.parquet``; all in one format.

    Returns:
        A frame of schema ``EVENTS``. What the headers say of the order, of what the history lacks, and of the names of
        topics, is in the metadata of the column ``kind``, where ``replay`` and ``verify`` find it.

    Raises:
        HistoryError: There is no such file, one is empty, or no history of a version that is known, or they differ in
            format, in order or in what they lack. When the frame is computed, the job fails with a ``PythonException``
            of Spark's that ends in a HistoryError with file, line and field if an event is malformed.

    Complexity:
        A task for each file of JSON Lines, which is not split; Parquet is split by Spark.
    """
    use_this_python(spark)
    files = spark.read.format("binaryFile").load(path).select("path")
    headers = sorted(files.mapInArrow(_read_headers, _HEADERS).collect(), key=attrgetter("path"))
    _expect_none_empty(files.inputFiles(), [header.path for header in headers])
    if not headers:
        message = "expected a history, got no files"
        raise HistoryError(message, path)
    for header in headers:
        if header.problem is not None:
            raise HistoryError(header.problem, header.path, header.line, header.field or "")
    first = headers[0]
    for header in headers:
        if header.order != first.order:
            message = f"in {header.order} order, but {first.path} in {first.order} order"
            raise HistoryError(message, header.path, None, "order")
        if header.lacks != first.lacks:
            found, wanted = (", ".join(each.lacks) or "nothing" for each in (header, first))
            message = f"lacks {found}, but {first.path} {wanted}"
            raise HistoryError(message, header.path, None, "lacks")
        if is_parquet(header.path) != is_parquet(first.path):
            message = f"has another format than {first.path}"
            raise HistoryError(message, header.path)
    if is_parquet(first.path):
        events = spark.read.schema(EVENTS).parquet(path)
    else:
        events = files.repartition(len(headers)).mapInArrow(_read_events, EVENTS)
    topics = {topic_id: name for header in headers for topic_id, name in (header.topics or {}).items()}
    metadata = {**EVENTS["kind"].metadata, LACKS: first.lacks, ORDER: first.order, TOPICS: topics}
    return events.withMetadata("kind", metadata)


def _expect_none_empty(listed: Iterable[str], read: Iterable[str]) -> None:
    """Refuse files without a byte, which Spark lists and then skips: there should be a header in each."""
    names = frozenset(map(_name, read))
    for file in sorted(map(unquote, listed)):
        if _name(file) not in names:
            message = "expected a history, got an empty file"
            raise HistoryError(message, file)


def _name(uri: str) -> str:
    """Return what follows the scheme of a file's URI, which may have three slashes there or one."""
    return uri.partition(":")[2].lstrip("/")


def _read_headers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the header of each file says, or what is wrong with it."""
    import pyarrow as pa  # noqa: PLC0415 - only where it runs

    from sharestate.spark.schemas import arrow_schema  # noqa: PLC0415 - as above

    schema = arrow_schema(_HEADERS)
    for batch in batches:
        yield pa.RecordBatch.from_pylist(list(map(_header, batch.column(0).to_pylist())), schema)


def _header(path: str) -> dict[str, Any]:
    try:
        with open_history(path.removeprefix(_LOCAL)) as history:
            header = history.header
            return {
                "path": path,
                "order": header.order.value,
                "lacks": sorted(header.lacks),
                "topics": [*header.topics.items()],
            }
    except HistoryError as error:
        return {"path": path, "problem": error.message, "line": error.line, "field": error.field}


def _read_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the events of each file."""
    from sharestate.history.arrow import encode_events  # noqa: PLC0415 - imports pyarrow

    for batch in batches:
        for path in batch.column(0).to_pylist():
            events = JsonHistory(path.removeprefix(_LOCAL)).part()
            yield from map(encode_events, iter(partial(_next, events), []))


def _next(events: Iterator[Any]) -> list[Any]:
    return list(islice(events, _ROWS_PER_BATCH))
