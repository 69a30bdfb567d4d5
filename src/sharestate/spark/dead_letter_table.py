"""
Dead letters as a table on Spark: what ``sharestate.dead_letter_topic`` reads of a dead-letter topic, row by row.

There is a row for each record of the topic, whatever it is, with the columns of ``QueuedLetter``: SQL counts the rest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sharestate.dead_letter_topic import LoggedLetter, letter_files, read_letter
from sharestate.spark.schemas import LETTERS, arrow_schema, check_columns
from sharestate.spark.workers import use_this_python
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LETTER_RECORDS: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField(
            "headers",
            ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
        ),
    ]
)
"""What has to be there of the columns of Spark's Kafka source, with its option ``includeHeaders``."""

_FILES: Final = StructType([StructField("file", StringType())])

_ROWS_PER_BATCH: Final = 10_000
"""How many rows go to Spark at once: one takes some hundred bytes. [letters]"""


def read_letters(records: DataFrame) -> DataFrame:
    """
    Return what the records of a dead-letter topic say.

    Args:
        records: Rows with the columns of Spark's Kafka source, ``LETTER_RECORDS``, in any order; others are ignored. It
            has headers with the option ``includeHeaders``.

    Returns:
        A frame of schema ``LETTERS``, computed when it is asked for: a row for each row of *records*.

    Raises:
        MalformedInputError: A column is missing or of another type.

    Complexity:
        O(1) for each record, without a shuffle.
    """
    use_this_python(records.sparkSession)
    _check_headers(records)
    check_columns(records, StructType([each for each in LETTER_RECORDS if each.name != "headers"]), "records")
    needed = records.select(
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("timestamp_ms"),
        "key",
        F.length("value").alias("value_size"),
        F.col("headers.key").alias("names"),
        F.col("headers.value").alias("values"),
    )
    return needed.mapInArrow(letters_of_rows, LETTERS)


def read_letter_files(spark: SparkSession, topic: str, paths: Sequence[str]) -> DataFrame:
    """
    Return what the records of a dead-letter topic in files say; each file is read by one task.

    Args:
        spark: The session.
        topic: The dead-letter topic.
        paths: Log segments, directories of them or a broker's, or JSON lines of kcat, which every worker sees.

    Returns:
        A frame of schema ``LETTERS``.

    Raises:
        MalformedInputError: *paths* are none.
        UnreadableFileError: A directory cannot be read, or a name does not say the partition. When the frame is
            computed, the job fails with a ``PythonException`` of Spark's that ends in one: of a file, or a line of it.
    """
    if not paths:
        refuse("expected files of a dead-letter topic, got none", "paths")
    use_this_python(spark)
    files = [(each.file,) for path in paths for each in letter_files(topic, path)]
    frame = spark.createDataFrame(files, _FILES)
    return frame.repartition(len(files), "file").mapInArrow(partial(letters_of_files, topic), LETTERS)


def letters_of_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Yield the letters of rows: what Spark runs in each task, and any other program may.

    Args:
        batches: Rows with partition, offset, timestamp in ms, key, size of the value, names and values of headers.
    """
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        yield _batch(_logged(*row) for row in rows)


def letters_of_files(topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the letters in the files whose names *batches* have."""
    for batch in batches:
        for name in batch.column(0).to_pylist():
            for file in letter_files(topic, name):
                yield from _batches(file)


def _check_headers(records: DataFrame) -> None:
    """Refuse records without headers; whether a part of them may be null is no difference."""
    found = {each.name: each.dataType.simpleString() for each in records.schema}
    if "headers" not in found:
        refuse("column missing: Spark's Kafka source has it with the option includeHeaders", "records.headers")
    if found["headers"] != LETTER_RECORDS["headers"].dataType.simpleString():
        refuse(f"a column of type {found['headers']}", "records.headers")


def _logged(*row: Any) -> LoggedLetter:  # noqa: ANN401 - the columns of a row
    partition, offset, timestamp_ms, key, size, names, values = row
    at_ms = timestamp_ms if timestamp_ms is not None and timestamp_ms >= 0 else None
    headers = tuple(zip(names or (), values or (), strict=True))
    return LoggedLetter(partition, offset, at_ms, key, size, headers)


def _batches(records: Iterable[LoggedLetter]) -> Iterator[pa.RecordBatch]:
    chosen: list[LoggedLetter] = []
    for each in records:
        chosen.append(each)
        if len(chosen) == _ROWS_PER_BATCH:
            yield _batch(chosen)
            chosen = []
    yield _batch(chosen)


def _batch(records: Iterable[LoggedLetter]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - only where it runs

    rows = [read_letter(each).row() for each in records]
    schema = arrow_schema(LETTERS)
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
