"""
Schemas for Spark and Arrow, made from the tables of ``columns``.

They are ``StructType`` values and never texts: a text is analyzed by Spark at once, which a pipeline forbids. Each
column carries its meaning as ``comment`` and its unit as ``unit`` in its metadata.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sharestate.spark import columns
from sharestate.spark.columns import Column, Columns, Scalar
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

_TYPES: Final[Mapping[Scalar, DataType]] = MappingProxyType(
    {
        "binary": BinaryType(),
        "boolean": BooleanType(),
        "byte": ByteType(),
        "short": ShortType(),
        "integer": IntegerType(),
        "long": LongType(),
        "double": DoubleType(),
        "string": StringType(),
        "timestamp": TimestampType(),
    }
)


def field(column: Column) -> StructField:
    """Return *column* as a field of a schema, its unit and meaning in the metadata."""
    metadata = {"comment": column.comment}
    if column.unit is not None:
        metadata["unit"] = column.unit
    return StructField(column.name, _type(column), column.is_nullable, metadata)


def struct(table: Columns) -> StructType:
    """Return the schema of a table."""
    return StructType([field(column) for column in table])


def arrow_schema(schema: StructType) -> pa.Schema:
    """
    Return the schema that Arrow's batches must have for Spark to take them as *schema*.

    Spark takes the columns of a batch by position, and casts nothing.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - imports pyarrow

    return to_arrow_schema(schema, timezone="UTC")


def check_columns(frame: DataFrame, schema: StructType, name: str) -> None:
    """
    Refuse a *frame* that lacks columns of *schema*, or has them with other types; others are passed over.

    Args:
        frame: The frame.
        schema: The columns that it must have.
        name: The argument, for the error.

    Raises:
        MalformedInputError: A column is missing or of another type; ``field`` names it.
    """
    present = {each.name: each.dataType for each in frame.schema}
    for wanted in schema:
        found = present.get(wanted.name)
        if found is None:
            message = f"column missing; it has {', '.join(present) or 'none'}"
        elif found != wanted.dataType:
            message = f"a column of type {found.simpleString()}, not {wanted.dataType.simpleString()}"
        else:
            continue
        refuse(message, f"{name}.{wanted.name}")


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return the columns of *schema* of *frame*, in its order, with its types and metadata."""
    return frame.select(
        *(frame[each.name].cast(each.dataType).alias(each.name, metadata=each.metadata) for each in schema)
    )


def _type(column: Column) -> DataType:
    if isinstance(column.type, tuple):
        return ArrayType(struct(column.type), containsNull=False)
    return _TYPES[column.type]


STATE_RECORDS: Final = struct(columns.STATE_RECORDS)
STATES: Final = struct(columns.STATES)
RECORD_COUNTS: Final = struct(columns.RECORD_COUNTS)
LOG_ENDS: Final = struct(columns.LOG_ENDS)
HEALTH: Final = struct(columns.HEALTH)
