"""
Schemas for Spark and Arrow, made from the tables of columns.

They are ``StructType`` values and never texts: a text is analyzed by Spark at once, which a pipeline forbids. Each
column carries its meaning as ``comment`` and its unit as ``unit`` in its metadata.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve
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

from sharestate.columns import Column, ListOf, Rows, Scalar, Type, union
from sharestate.spark import columns
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

_TYPES: Final[Mapping[Scalar, DataType]] = MappingProxyType(
    {
        Scalar.TEXT: StringType(),
        Scalar.BINARY: BinaryType(),
        Scalar.BOOLEAN: BooleanType(),
        Scalar.INT8: ByteType(),
        Scalar.INT16: ShortType(),
        Scalar.INT32: IntegerType(),
        Scalar.INT64: LongType(),
        Scalar.DOUBLE: DoubleType(),
        Scalar.TIMESTAMP: TimestampType(),
    }
)


def struct(table: Iterable[Column], *, has_open_rows: bool = False) -> StructType:
    """
    Return the schema of a table, each column with its unit and meaning in the metadata.

    Args:
        table: Its columns.
        has_open_rows: Whether everything in the rows of lists may be null, as where they are of several kinds.
    """
    return StructType([_field([each], is_nullable=not each.is_required, has_open_rows=has_open_rows) for each in table])


def struct_of_any(tables: Iterable[Iterable[Column]]) -> StructType:
    """Return the struct with the columns of all *tables*, everything in which may be null."""
    return StructType([_field(same, is_nullable=True, has_open_rows=True) for same in union(tables).values()])


def _field(same: Sequence[Column], *, is_nullable: bool, has_open_rows: bool) -> StructField:
    """Return the field for columns of one name, which says what each of them means."""
    meaning = "; ".join(dict.fromkeys(column.meaning for column in same))
    column = evolve(same[0], meaning=meaning, unit=next((each.unit for each in same if each.unit), ""))
    metadata = {"comment": column.comment}
    if column.unit:
        metadata["unit"] = column.unit
    type_ = _type([each.type for each in same], has_open_rows=has_open_rows)
    return StructField(column.name, type_, is_nullable, metadata)


def _type(types: Sequence[Type], *, has_open_rows: bool) -> DataType:
    """Return the type of a column that has *types*: the one that they are, or structs with the fields of all."""
    match types[0]:
        case Scalar() as scalar:
            return _TYPES[scalar]
        case ListOf(item):
            return ArrayType(_TYPES[item])
        case Rows(_, columns):
            if not has_open_rows:
                return ArrayType(struct(columns), containsNull=False)
            return ArrayType(struct_of_any(rows.columns for rows in types if isinstance(rows, Rows)))


def arrow_schema(schema: StructType) -> pa.Schema:
    """
    Return the schema that Arrow's batches must have for Spark to take them as *schema*.

    Spark takes the columns of a batch by position, and casts nothing.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - imports pyarrow

    return to_arrow_schema(schema, timezone="UTC")


def check_columns(frame: DataFrame, schema: StructType, name: str) -> None:
    """
    Refuse a *frame* that lacks columns of *schema*, or has them with other types; others are ignored.

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


STATE_RECORDS: Final = struct(columns.STATE_RECORDS)
STATES: Final = struct(columns.STATES)
RECORD_COUNTS: Final = struct(columns.RECORD_COUNTS)
LOG_ENDS: Final = struct(columns.LOG_ENDS)
HEALTH: Final = struct(columns.HEALTH)
LETTERS: Final = struct(columns.LETTERS)
