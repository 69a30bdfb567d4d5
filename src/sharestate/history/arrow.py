"""
Events and the rows of a replay as Arrow record batches (extra ``parquet``).

Requests and responses are structs with the fields of all kinds. They are decoded column by column: a column of nulls
costs nothing, and nothing is checked that Arrow's type proves already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise, repeat
from operator import is_, itemgetter
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from sharestate.errors import HistoryError
from sharestate.history.columns import (
    EVENT_COLUMNS,
    INFERRED,
    KINDS,
    OUTPUT_COLUMNS,
    OUTPUTS,
    STATE_BATCHES,
    Column,
    ListOf,
    Need,
    Rows,
    Scalar,
    Type,
    union,
)
from sharestate.history.events import Event
from sharestate.history.rows import OutputRow
from sharestate.json_lines import brief
from sharestate.values.named_tuples import new_tuple
from sharestate.values.requests import StateBatches, StateRun

_REQUEST: Final = union(kind.request for kind in KINDS.values())
_RESPONSE: Final = union(kind.response for kind in KINDS.values())
_OUTPUT: Final = union(output.columns for output in OUTPUTS.values())

_SCALARS: Final = {
    Scalar.TEXT: pa.string(),
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.INT8: pa.int8(),
    Scalar.INT16: pa.int16(),
    Scalar.INT32: pa.int32(),
    Scalar.INT64: pa.int64(),
}


# ---- schemas


def _arrow_type(types: Sequence[Type]) -> pa.DataType:
    """Return the type of a column that has *types*: rows with the fields of all of them, or the one that they are."""
    type_ = types[0]
    match type_:
        case Scalar():
            return _SCALARS[type_]
        case ListOf(item):
            return pa.list_(_SCALARS[item])
        case Rows():
            return pa.list_(pa.struct(_fields(union(rows.columns for rows in types if isinstance(rows, Rows)))))


def _fields(columns: dict[str, tuple[Column, ...]]) -> list[pa.Field]:
    return [pa.field(name, _arrow_type([column.type for column in all_])) for name, all_ in columns.items()]


def _schema(columns: Iterable[Column], others: Iterable[pa.Field]) -> pa.Schema:
    own = [pa.field(each.name, _arrow_type([each.type]), nullable=each.need is not Need.REQUIRED) for each in columns]
    return pa.schema([*own, *others])


EVENT_SCHEMA: Final = _schema(
    EVENT_COLUMNS,
    [
        pa.field("request", pa.struct(_fields(_REQUEST))),
        pa.field("response", pa.struct(_fields(_RESPONSE))),
        pa.field(INFERRED.name, _SCALARS[Scalar.BOOLEAN]),
    ],
)
"""The columns of events."""

OUTPUT_SCHEMA: Final = _schema(OUTPUT_COLUMNS, _fields(_OUTPUT))
"""The columns of the rows of a replay, whatever their kind."""


def expect_columns(schema: pa.Schema, file: str = "") -> None:
    """
    Check that *schema* has the columns of events; others are passed over.

    Raises:
        HistoryError: A column is missing or has another type; ``field`` says which.
    """
    for wanted in EVENT_SCHEMA:
        index = schema.get_field_index(wanted.name)
        if index < 0:
            missing = "the column is missing"
            raise HistoryError(missing, file, None, wanted.name)
        _expect_type(schema.field(index).type, wanted.type, wanted.name, file)


def _expect_type(actual: pa.DataType, wanted: pa.DataType, path: str, file: str) -> None:
    if pa.types.is_struct(wanted) and pa.types.is_struct(actual):
        for field in wanted:
            index = actual.get_field_index(field.name)
            if index < 0:
                missing = "the column is missing"
                raise HistoryError(missing, file, None, f"{path}.{field.name}")
            _expect_type(actual.field(index).type, field.type, f"{path}.{field.name}", file)
    elif pa.types.is_list(wanted) and (pa.types.is_list(actual) or pa.types.is_large_list(actual)):
        _expect_type(actual.value_type, wanted.value_type, f"{path}[]", file)
    elif actual != wanted and not (pa.types.is_string(wanted) and _is_text(actual)):
        mismatch = f"expected {wanted}, got {actual}"
        raise HistoryError(mismatch, file, None, path)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


# ---- record batches to events


class EventDecoder:
    """Decodes record batches of one file, whose columns were checked by ``expect_columns``."""

    def __init__(self, file: str = "") -> None:
        """Start at the first row of *file*, which errors name."""
        self._file = file
        self._row = 1

    def decode(self, batch: pa.RecordBatch) -> list[Event]:
        """
        Return the events of *batch*, in order.

        Raises:
            HistoryError: A value that has to be there is null, or is none of those that its field may have.
        """
        names = [column.name for column in EVENT_COLUMNS]
        columns = dict(zip(names, map(_values, map(batch.column, names)), strict=True))
        for column in EVENT_COLUMNS:
            if column.need is Need.REQUIRED and None in columns[column.name]:
                self._refuse(columns[column.name].index(None), column.name, "null")
        kinds = columns["kind"]
        rows: dict[str, list[int]] = {kind: [] for kind in dict.fromkeys(kinds)}
        for index, kind in enumerate(kinds):
            rows[kind].append(index)
        for kind, indexes in rows.items():
            if kind not in KINDS:
                self._refuse(indexes[0], "kind", f"expected one of {', '.join(KINDS)}, got {brief(kind)}")
        requests = self._structs(batch.column("request"), "request", rows)
        responses = self._structs(batch.column("response"), "response", rows)
        inferred = list(map(bool, _values(batch.column(INFERRED.name))))
        self._row += len(kinds)
        return list(map(Event._make, zip(*columns.values(), requests, responses, inferred, strict=True)))

    def _structs(self, array: Any, side: str, rows: dict[str, list[int]]) -> list[dict[str, Any] | None]:  # noqa: ANN401 - Arrow's arrays have no types
        """Return the struct of each row as a dict of what is not null in it."""
        is_valid = array.is_valid().to_pylist() if array.null_count else None
        names = [field.name for field in array.type]
        children = dict(zip(names, array.flatten(), strict=True))
        found: list[dict[str, Any] | None] = [None] * len(array)
        for kind, indexes in rows.items():
            columns = KINDS[kind].request if side == "request" else KINDS[kind].response
            valid = indexes if is_valid is None else [index for index in indexes if is_valid[index]]
            for index, fields in zip(valid, self._dicts(columns, children, valid, side), strict=True):
                found[index] = fields
            needs = side == "request" and any(column.need is Need.REQUIRED for column in columns)
            if needs and len(valid) < len(indexes):
                self._refuse(next(iter(set(indexes) - set(valid))), side, "null")
        return found

    def _dicts(
        self, columns: tuple[Column, ...], children: dict[str, Any], indexes: list[int], side: str
    ) -> list[dict[str, Any]]:
        """Return the fields of each of the rows *indexes*, which are of one kind."""
        if not indexes:
            return []
        present: list[str] = []
        values: list[Sequence[Any]] = []
        has_nulls = False
        errors = None
        for column in columns:
            child = children[column.name]
            chosen = _chosen(_decoded(child, column.type), indexes) if child.null_count < len(child) else None
            lacks_some = chosen is not None and _has_null(chosen)
            if lacks_some and chosen is not None and all(each is None for each in chosen):
                chosen = None
            errors = chosen if column.name == "error" else errors
            if column.need is not Need.OPTIONAL and (chosen is None or lacks_some):
                self._expect_all(column, chosen, errors, indexes, side)
            if chosen is not None:
                self._expect_values(column, chosen, child, indexes, f"{side}.{column.name}")
                has_nulls = has_nulls or lacks_some
                present.append(column.name)
                values.append(chosen)
        if not present:
            return [{} for _ in indexes]
        dicts = [dict(zip(present, each, strict=True)) for each in zip(*values, strict=True)]
        if has_nulls:
            dicts = [_without_nulls(each) if None in each.values() else each for each in dicts]
        return dicts

    def _expect_all(
        self,
        column: Column,
        chosen: Sequence[Any] | None,
        errors: Sequence[Any] | None,
        indexes: list[int],
        side: str,
    ) -> None:
        """Check that nothing is null that may not be."""
        for at, index in enumerate(indexes):
            is_excused = column.need is Need.WITHOUT_ERROR and errors is not None and errors[at] is not None
            if (chosen is None or chosen[at] is None) and not is_excused:
                self._refuse(index, f"{side}.{column.name}", "null")

    def _expect_values(
        self,
        column: Column,
        chosen: Sequence[Any],
        array: Any,  # noqa: ANN401 - Arrow's arrays have no types
        indexes: list[int],
        path: str,
    ) -> None:
        """Check what Arrow's type does not prove: names, and nulls in rows."""
        if column.values:
            for value in set(chosen).difference(column.values, (None,)):
                self._refuse(indexes[list(chosen).index(value)], path, _one_of(column, value))
        if not isinstance(column.type, Rows):
            return
        for at, each in enumerate(column.type.columns):
            inner = array.values.field(each.name)
            if each.need is Need.REQUIRED and inner.null_count:
                self._expect_no_null(at, chosen, indexes, f"{path}[].{each.name}")
            if each.values and inner.null_count < len(inner):
                self._expect_names(at, each, chosen, indexes, path)

    def _expect_no_null(self, at: int, chosen: Sequence[Any], indexes: list[int], path: str) -> None:
        for index, rows in zip(indexes, chosen, strict=True):
            if rows is not None and any(row[at] is None for row in rows):
                self._refuse(index, path, "null")

    def _expect_names(self, at: int, column: Column, chosen: Sequence[Any], indexes: list[int], path: str) -> None:
        for index, rows in zip(indexes, chosen, strict=True):
            for value in {row[at] for row in rows or ()}.difference(column.values, (None,)):
                self._refuse(index, f"{path}[].{column.name}", _one_of(column, value))

    def _refuse(self, index: int, field: str, problem: str) -> NoReturn:
        raise HistoryError(problem, self._file, self._row + index, field)


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _one_of(column: Column, value: object) -> str:
    return f"expected one of {brief(', '.join(column.values), 200)}, got {brief(value)}"


def _has_null(values: Sequence[Any]) -> bool:
    return any(map(is_, values, repeat(None)))  # `in` would compare, and make each state batch for that


def _chosen(values: list[Any], indexes: list[int]) -> Sequence[Any]:
    if len(indexes) == len(values):
        return values
    return itemgetter(*indexes)(values) if len(indexes) > 1 else [values[indexes[0]]]


def _values(array: Any) -> list[Any]:  # noqa: ANN401 - Arrow's arrays have no types
    """Return the values of an array of scalars."""
    if array.null_count == len(array):
        return [None] * len(array)
    values: list[Any] = array.to_pylist()
    return values


def _decoded(array: Any, type_: Type) -> list[Any]:  # noqa: ANN401 - Arrow's arrays have no types
    """Return the values of *array*, in which lists are tuples and structs the rows that *type_* makes."""
    if isinstance(type_, Scalar):
        return _values(array)
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    values = array.values.slice(first, offsets[-1] - first)
    if isinstance(type_, ListOf):
        items = _values(values)
    else:
        children = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        columns = [_decoded(children[column.name], column.type) for column in type_.columns]
        if type_ is STATE_BATCHES:
            return _state_batches(columns, offsets, array)
        items = list(map(partial(new_tuple, type_.make), zip(*columns, strict=True)))
    lists: list[Any] = [tuple(items[begin - first : end - first]) for begin, end in pairwise(offsets)]
    if array.null_count:
        lists = [each if is_valid else None for each, is_valid in zip(lists, array.is_valid().to_pylist(), strict=True)]
    return lists


def _state_batches(columns: list[list[Any]], offsets: list[int], array: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the state batches of each row as they are, column by column: there may be one for each record."""
    start = offsets[0]
    is_valid = array.is_valid().to_pylist() if array.null_count else [True] * len(array)
    firsts, lasts, states, counts = columns
    found: list[Any] = []
    for (begin, end), valid in zip(pairwise(offsets), is_valid, strict=True):
        if not valid:
            found.append(None)
            continue
        at = slice(begin - start, end - start)
        run = new_tuple(StateRun, (firsts[at], lasts[at], states[at], counts[at]))
        found.append(StateBatches((run,) if begin < end else ()))
    return found


# ---- events to record batches


def encode_events(events: Sequence[Event]) -> pa.RecordBatch:
    """Return *events* as a record batch."""
    columns = list(zip(*events, strict=True)) or [()] * len(Event._fields)
    named = dict(zip(Event._fields, columns, strict=True))
    arrays = [pa.array(named[column.name], _SCALARS[_scalar(column)]) for column in EVENT_COLUMNS]
    arrays.append(_struct(named["request"], _REQUEST))
    arrays.append(_struct(named["response"], _RESPONSE))
    arrays.append(pa.array(named[INFERRED.name], pa.bool_()))
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)


def _scalar(column: Column) -> Scalar:
    if not isinstance(column.type, Scalar):
        raise TypeError(column.name)
    return column.type


def _struct(dicts: Sequence[dict[str, Any] | None], columns: dict[str, tuple[Column, ...]]) -> pa.StructArray:
    names = set(chain.from_iterable(filter(None, dicts)))
    arrays = [
        _array([None if each is None else each.get(name) for each in dicts], [column.type for column in all_])
        if name in names
        else pa.nulls(len(dicts), _arrow_type([column.type for column in all_]))
        for name, all_ in columns.items()
    ]
    is_null = pa.array([each is None for each in dicts], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=_fields(columns), mask=is_null)


def _array(values: Sequence[Any], types: Sequence[Type]) -> Any:  # noqa: ANN401 - Arrow's arrays have no types
    """Return *values* as an array; a list of rows may be of any of *types*."""
    if isinstance(types[0], Scalar):
        return pa.array(values, _SCALARS[types[0]])
    sizes = [len(value) if value else 0 for value in values]
    offsets = pa.array(list(accumulate(sizes, initial=0)), pa.int32())
    items = list(chain.from_iterable(filter(None, values)))
    if isinstance(types[0], ListOf):
        inner = pa.array(items, _SCALARS[types[0].item])
    else:
        inner = _rows_array(items, [rows for rows in types if isinstance(rows, Rows)])
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, inner, mask=mask)


def _rows_array(items: list[Any], types: list[Rows]) -> pa.StructArray:
    """Return rows as an array of structs; with several types, each row is of one of their classes."""
    columns = union(rows.columns for rows in types)
    arrays = []
    for name, all_ in columns.items():
        get = _getter(name, types)
        arrays.append(_array(list(map(get, items)), [column.type for column in all_]))
    return pa.StructArray.from_arrays(arrays, fields=_fields(columns))


def _getter(name: str, types: list[Rows]) -> Callable[[Any], Any]:
    places = {rows.make: place for rows in types for place, column in enumerate(rows.columns) if column.name == name}
    if len(types) == 1:
        return itemgetter(*places.values())

    def get(row: Any) -> Any:  # noqa: ANN401 - a row of one of *types*
        place = places.get(type(row))
        return None if place is None else row[place]

    return get


def moved(batch: pa.RecordBatch, key: tuple[str, str, int], later_us: int) -> pa.RecordBatch:
    """Return the events of *batch* as those of the share partition *key*, *later_us* later. [µs]"""
    columns = dict(zip(EVENT_SCHEMA.names, batch.columns, strict=True))
    for column, value in zip(EVENT_COLUMNS, key, strict=False):
        columns[column.name] = pa.repeat(pa.scalar(value, _SCALARS[_scalar(column)]), batch.num_rows)
    columns["at_us"] = pc.add(columns["at_us"], later_us)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=EVENT_SCHEMA)


# ---- the rows of a replay to record batches


def encode_rows(rows: Iterable[OutputRow]) -> Iterator[pa.RecordBatch]:
    """Yield *rows* as record batches, one for each of their kinds."""
    by_kind: dict[str, list[OutputRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    for kind, chosen in by_kind.items():
        yield _encode_kind(kind, chosen)


def _encode_kind(kind: str, rows: list[OutputRow]) -> pa.RecordBatch:
    keys, seqs, times, _, values = zip(*rows, strict=True)
    groups, topics, partitions = zip(*keys, strict=True)
    size = len(rows)
    arrays = {
        "group_id": pa.array(groups, pa.string()),
        "topic_id": pa.array(topics, pa.string()),
        "partition": pa.array(partitions, pa.int32()),
        "seq": pa.array(seqs, pa.int64()),
        "at_us": pa.array(times, pa.int64()),
        "kind": pa.array([kind] * size, pa.string()),
    }
    for column, each in zip(OUTPUTS[kind].columns, zip(*values, strict=True), strict=True):
        arrays[column.name] = _array(each, [column.type])
    columns = [arrays[field.name] if field.name in arrays else pa.nulls(size, field.type) for field in OUTPUT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=OUTPUT_SCHEMA)
