"""The page with the tables that go into Spark and come out of it, made from the schemas' own data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from generate.markdown import NOTICE, table
from sharestate.columns import Column, ListOf, Rows, Scalar, Type
from sharestate.spark.analysis_columns import ANALYSIS
from sharestate.spark.columns import TABLES
from sharestate.spark.log_verification_columns import VERIFICATION

INTRODUCTION: Final = """\
The columns of the tables of [the state topic on Spark](spark.md), of [dead-letter
topics](dead-letter-topics.md#on-spark), of
[the check of brokers' logs](spark-history.md#the-order-of-a-brokers-log), and of those that
[tell what has become of records](spark-analysis.md). Each carries its meaning as `comment` and its unit as `unit` in
its metadata."""

SPARK_TYPES: Final = {
    Scalar.TEXT: "string",
    Scalar.BINARY: "binary",
    Scalar.BOOLEAN: "boolean",
    Scalar.INT8: "byte",
    Scalar.INT16: "short",
    Scalar.INT32: "integer",
    Scalar.INT64: "long",
    Scalar.DOUBLE: "double",
    Scalar.TIMESTAMP: "timestamp",
}
"""The names that Spark has for the types."""

TITLES: Final = {
    "STATE_RECORDS": "records of the state topic, as Spark's own Kafka source has them",
    "STATES": "what `rebuild_state()` returns: the final state of every share partition",
    "RECORD_COUNTS": "what `count_records()` returns: what is in each partition of the state topic",
    "LOG_ENDS": "what `health_table()` takes to compute lags",
    "LETTERS": "what `read_letters()` and `read_letter_files()` return: the records of a dead-letter topic",
    "HEALTH": "what `health_table()` returns: what an operator asks of every share partition",
}


def page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Tables on Spark", INTRODUCTION]
    for name, columns in TABLES.items():
        parts += [f"## {name}", f"`sharestate.spark.{name}`: {TITLES[name]}.", _table(columns)]
    for name, verification in VERIFICATION.items():
        parts += [
            f"## {name}",
            f"The table `{name}` that `verify()` writes. A row is {verification.meaning}.",
            _table(verification.columns),
        ]
    for name, analysis in ANALYSIS.items():
        parts += [
            f"## {name}",
            f"What `analysis.{name}()` returns. A row is {analysis.meaning}.",
            _table(analysis.columns),
        ]
    return "\n\n".join(parts) + "\n"


def _table(columns: Iterable[Column]) -> str:
    return table(["column", "type", "null", "meaning", "unit"], _rows(columns))


def _rows(columns: Iterable[Column], prefix: str = "") -> Iterator[list[str]]:
    for column in columns:
        null = "" if column.is_required else "yes"
        yield [f"`{prefix}{column.name}`", _type(column.type), null, column.meaning, column.unit]
        if isinstance(column.type, Rows):
            yield from _rows(column.type.columns, f"{column.name}[].")


def _type(type_: Type) -> str:
    match type_:
        case Scalar():
            return SPARK_TYPES[type_]
        case ListOf(item):
            return f"array of {SPARK_TYPES[item]}"
        case Rows():
            return "array of structs"
