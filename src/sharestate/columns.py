"""
Columns of tables, as data: those of histories, and those that go into Spark or come out of it.

Checks of JSON, Arrow's schemas, Spark's schemas and pages of the documentation are made from them, so a column is named
once. Nothing here imports Arrow or Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from attrs import field, frozen


class Scalar(Enum):
    """The type of a single value; the values are Arrow's names of the types."""

    TEXT = "string"
    """A string."""

    BINARY = "binary"
    """Bytes."""

    BOOLEAN = "bool"
    """True or false."""

    INT8 = "int8"
    """An integer of 8 bits."""

    INT16 = "int16"
    """An integer of 16 bits."""

    INT32 = "int32"
    """An integer of 32 bits."""

    INT64 = "int64"
    """An integer of 64 bits."""

    DOUBLE = "double"
    """A floating-point number of 64 bits."""

    TIMESTAMP = "timestamp[us, UTC]"
    """An instant."""

    @property
    def bits(self) -> int:
        """The size of an integer; 0 of anything else. [bits]"""
        return int(self.value.removeprefix("int")) if self.value.startswith("int") else 0


class Need(Enum):
    """Whether a field may be missing, which is the same as null."""

    OPTIONAL = "may be null"
    """It may."""

    REQUIRED = "required"
    """It may not."""

    WITHOUT_ERROR = "required without an error"
    """It may if ``error`` is there."""


@frozen
class ListOf:
    """A list of values."""

    item: Scalar
    """The type of each."""


@frozen
class Rows:
    """A list of rows: in JSON each is a list, in Arrow and in Spark a struct."""

    make: type[Any]
    """The tuple of a row; its fields are in the order of *columns*."""

    columns: tuple[Column, ...]
    """The fields of a row. In JSON those that are required stand in it one after the other."""

    required: int = field(init=False)
    """The number of fields that are required; the others stand in an object at the end, if any of them is there."""

    @required.default
    def _count_required(self) -> int:
        return sum(column.is_required for column in self.columns)


Type: TypeAlias = Scalar | ListOf | Rows
"""The type of a column."""


@frozen
class Column:
    """
    A column of a table, or a field of a request, a response or a row; ``required`` makes one that may not be null.

    >>> required("size", Scalar.INT64, "the size of all keys and values", "bytes").comment
    'the size of all keys and values [bytes]'
    """

    name: str
    """Its name."""

    type: Type
    """Its type."""

    meaning: str
    """Its meaning, in a few words."""

    unit: str = ""
    """Its unit, as it stands in brackets in the documentation; empty without one."""

    need: Need = Need.OPTIONAL
    """Whether it may be missing."""

    values: tuple[str, ...] = ()
    """The strings that it may be; any if there are none."""

    @property
    def is_required(self) -> bool:
        """Whether it may never be null."""
        return self.need is Need.REQUIRED

    @property
    def comment(self) -> str:
        """The meaning with the unit, as Spark's ``DESCRIBE TABLE`` shows it."""
        return f"{self.meaning} [{self.unit}]" if self.unit else self.meaning


def required(name: str, type_: Type, meaning: str, unit: str = "", values: tuple[str, ...] = ()) -> Column:
    """Return a column that may not be null."""
    return Column(name, type_, meaning, unit, Need.REQUIRED, values)


class ColumnTable(NamedTuple):
    """
    A table, or one kind of rows of a table.

    Attributes:
        name: Its name.
        meaning: What a row of it is, in a few words.
        columns: Its columns.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def by_name(*tables: T) -> Mapping[str, T]:
    """Return *tables*, or other things that have names, by their names."""
    return MappingProxyType({table.name: table for table in tables})


def union(tables: Iterable[Iterable[Column]]) -> dict[str, tuple[Column, ...]]:
    """
    Return the columns of all *tables* by their names, each with those of the tables that have it, in order.

    >>> offset, lag = required("offset", Scalar.INT64, "the record"), Column("lag", Scalar.INT64, "the lag")
    >>> [(name, len(same)) for name, same in union([(offset,), (offset, lag)]).items()]
    [('offset', 2), ('lag', 1)]
    """
    columns: dict[str, tuple[Column, ...]] = {}
    for table in tables:
        for column in table:
            columns[column.name] = (*columns.get(column.name, ()), column)
    return columns
