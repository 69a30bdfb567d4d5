"""Dead letters on Spark: the rows are those that are read without it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows

from sharestate.dead_letter_topic import LoggedLetter, letter_files, read_letter
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.spark import LETTERS, read_letter_files, read_letters
from sharestate.spark.dead_letter_table import LETTER_RECORDS
from tests.support.dead_letter_topics import BROKER, RECORDED, Planted, headers_of

pytestmark = pytest.mark.spark


def plain(topic: str, path: Path) -> list[tuple[object, ...]]:
    """Return the rows that are read without Spark, in order."""
    return sorted(read_letter(each).row() for file in letter_files(topic, path) for each in file)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """Return the rows of a frame in order, with bytes as bytes."""
    return sorted(
        tuple(bytes(each) if isinstance(each, bytearray) else each for each in row) for row in frame.collect()
    )


def as_kafka(records: list[LoggedLetter]) -> list[tuple[object, ...]]:
    """Return records as Spark's Kafka source has them."""
    return [
        (
            *(each.key, None if each.value_size is None else bytes(each.value_size), each.partition, each.offset),
            None if each.timestamp_ms is None else datetime.fromtimestamp(each.timestamp_ms / 1000, UTC),
            list(each.headers) or None,
        )
        for each in records
    ]


@pytest.mark.parametrize(("topic", "path"), [("dlq.two", BROKER), ("dlq.sorters", RECORDED / "kcat.jsonl.gz")])
def test_files_have_the_same_rows(spark: SparkSession, topic: str, path: Path) -> None:
    """Segments of a broker, and what kcat printed."""
    frame = read_letter_files(spark, topic, [str(path)])

    assert frame.schema == LETTERS
    assert rows(frame) == plain(topic, path) != []


def test_rows_of_kafkas_source_have_the_same_letters(spark: SparkSession) -> None:
    """Those of a broker, and what is none; whatever else a row has is ignored."""
    (file,) = letter_files("dlq.sorters", RECORDED / "kcat.jsonl.gz")
    odd = [LoggedLetter(1, 0, None, None, 3, ()), LoggedLetter(1, 1, 5, None, None, headers_of(Planted(1))[::-1])]
    records = [*file, *odd]
    frame = spark.createDataFrame(as_kafka(records), LETTER_RECORDS).withColumn("topic", F.lit("t"))

    assert rows(read_letters(frame)) == sorted(read_letter(each).row() for each in records)


def test_what_cannot_be_read_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """A source without headers, no files, and a file with a broken line."""
    (tmp_path / "f").write_text("{}\n")
    frame = spark.createDataFrame(as_kafka([]), LETTER_RECORDS)

    with pytest.raises(MalformedInputError, match="includeHeaders"):
        read_letters(frame.drop("headers"))
    with pytest.raises(MalformedInputError, match="partition: column missing"):
        read_letters(frame.drop("partition"))
    with pytest.raises(MalformedInputError, match="expected files"):
        read_letter_files(spark, "q", [])
    with pytest.raises(UnreadableFileError, match=r"no log segments of dlq\.none"):
        read_letter_files(spark, "dlq.none", [str(BROKER)])
    with pytest.raises(PythonException, match=r"UnreadableFileError: .*f:1: partition"):
        read_letter_files(spark, "q", [str(tmp_path / "f")]).collect()
