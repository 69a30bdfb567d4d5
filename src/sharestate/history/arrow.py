"""
Events and the rows of a replay as Arrow record batches (extra ``parquet``).

Requests and responses are structs with the fields of all kinds. They are decoded column by column: a column of nulls
costs nothing, and nothing is checked that Arrow's type proves already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, groupby, pairwise, repeat
from operator import itemgetter
from typing import Any, Final, Literal, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from sharestate.columns import Column, ListOf, Need, Rows, Scalar, Type, union
from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history.columns import EVENT_COLUMNS, INFERRED, KINDS, LONGEST_TEXT, MAY_LACK, MOST_ITEMS, STATE_BATCHES
from sharestate.history.events import Event
from sharestate.history.outputs import OUTPUT_COLUMNS, OUTPUTS
from sharestate.history.rows import OutputRow
from sharestate.json_lines import brief
from sharestate.values.checks import brief_repr, refuse
from sharestate.values.named_tuples import new_tuple
from sharestate.values.requests import StateBatch, StateBatches, StateRun, runs_of

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

_MEMORY: Final[dict[Any, Literal["b", "h", "i", "q", "Q"]]] = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint64(): "Q",
}
"""How Python's memoryview names the types of numbers."""

_new_event = partial(new_tuple, Event)


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

_MAY_LACK: Final = frozenset(column.name for column in MAY_LACK)

OUTPUT_SCHEMA: Final = _schema(OUTPUT_COLUMNS, _fields(_OUTPUT))
"""The columns of the rows of a replay, whatever their kind."""


def expect_columns(schema: pa.Schema, file: str = "") -> None:
    """
    Check that *schema* has the columns of events, but for ``MAY_LACK``; others are ignored.

    Raises:
        HistoryError: A column is missing or has another type; ``field`` says which.
    """
    for wanted in EVENT_SCHEMA:
        index = schema.get_field_index(wanted.name)
        if index < 0:
            if wanted.name in _MAY_LACK:
                continue
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

    def decode(self, batch: pa.RecordBatch) -> Iterator[Event]:
        """
        Return the events of *batch*, in order, each made when it is its turn: few live objects keep Python quick.

        Raises:
            HistoryError: A value that has to be there is null, or not one of those that its field may have.
        """
        present = frozenset(batch.schema.names)
        columns = {}
        for column in EVENT_COLUMNS:
            array = batch.column(column.name) if column.name in present else pa.nulls(batch.num_rows)
            columns[column.name] = self._decoded(array, column.type, column.name)
            if column.need is Need.REQUIRED and array.null_count:
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
        inferred = _truths(batch.column(INFERRED.name))
        self._row += len(kinds)
        return map(_new_event, zip(*columns.values(), requests, responses, inferred, strict=True))

    def _structs(self, array: Any, side: str, rows: dict[str, list[int]]) -> list[dict[str, Any] | None]:  # noqa: ANN401 - Arrow's arrays have no types
        """Return the struct of each row as a dict of what is not null in it."""
        nulls = frozenset(_places(array.is_null())) if array.null_count else frozenset()
        names = [field.name for field in array.type]
        children = dict(zip(names, array.flatten(), strict=True))
        found: list[dict[str, Any] | None] = [None] * len(array)
        for kind, indexes in rows.items():
            columns = KINDS[kind].request if side == "request" else KINDS[kind].response
            valid = [index for index in indexes if index not in nulls] if nulls else indexes
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
        at = pa.array(indexes, pa.int64())
        full: dict[str, Sequence[Any]] = {}
        partly: dict[str, Sequence[Any]] = {}
        errors = None
        for column in columns:
            child = children[column.name]
            # What belongs to other kinds is left out before anything is made of it.
            array = child.slice(0, len(indexes)) if child.null_count == len(child) else child.take(at)
            errors = array if column.name == "error" else errors
            if column.need is not Need.OPTIONAL and array.null_count:
                self._expect_all(column, array, errors, indexes, side)
            if array.null_count == len(array):
                continue
            chosen = self._decoded(array, column.type, f"{side}.{column.name}")
            self._expect_values(column, chosen, array, indexes, f"{side}.{column.name}")
            if array.null_count:
                partly[column.name] = chosen
            else:
                full[column.name] = chosen
        rows: Iterable[tuple[Any, ...]] = zip(*full.values(), strict=True) if full else repeat((), len(indexes))
        dicts = [dict(zip(full, each, strict=True)) for each in rows]
        for name, some in partly.items():
            for fields, value in zip(dicts, some, strict=True):
                if value is not None:
                    fields[name] = value
        return dicts

    def _decoded(self, array: Any, type_: Type, path: str) -> list[Any]:  # noqa: ANN401 - Arrow's arrays have no types
        try:
            return _decoded(array, type_)
        except MalformedInputError as error:
            message = f"{error.message}, in one of {len(array)} rows"
            raise HistoryError(message, self._file, None, path) from error

    def _expect_all(
        self,
        column: Column,
        array: Any,  # noqa: ANN401 - Arrow's arrays have no types
        errors: Any,  # noqa: ANN401 - as above
        indexes: list[int],
        side: str,
    ) -> None:
        """Check that nothing is null that may not be."""
        lacking = array.is_null()
        if column.need is Need.WITHOUT_ERROR and errors is not None:
            lacking = pc.and_(lacking, errors.is_null())
        for at in _places(lacking):
            self._refuse(indexes[at], f"{side}.{column.name}", "null")

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
        inners = dict(zip((field.name for field in array.values.type), array.values.flatten(), strict=True))
        for at, each in enumerate(column.type.columns):
            inner = inners[each.name]
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


def _one_of(column: Column, value: object) -> str:
    return f"expected one of {brief(', '.join(column.values), 200)}, got {brief(value)}"


def _places(truths: Any) -> list[int]:  # noqa: ANN401 - Arrow's arrays have no types
    """Return where an array of booleans is true."""
    return _numbers(pc.indices_nonzero(truths))


def _truths(array: Any) -> list[bool]:  # noqa: ANN401 - as above
    """Return the booleans of *array*, null as false."""
    truths = [False] * len(array)
    for at in _places(array):
        truths[at] = True
    return truths


def _numbers(array: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the integers of *array* straight from its memory; where it is null, any number."""
    type_ = array.type
    size = type_.bit_width // 8
    memory = memoryview(array.buffers()[1] or b"")[array.offset * size : (array.offset + len(array)) * size]
    return memory.cast(_MEMORY[type_]).tolist()


def _values(array: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the values of an array of scalars: ``to_pylist`` makes an object of Arrow's for each of them first."""
    if array.null_count == len(array):
        return [None] * len(array)
    type_ = array.type
    if type_ in _MEMORY:
        values = _numbers(array)
    elif _is_text(type_):
        return _texts(array)
    else:
        values = _truths(array)
    return _with_nulls(values, array)


def _texts(array: Any) -> list[str | None]:  # noqa: ANN401 - as above
    """Return the strings of *array*: one object for equal ones, which nearly every column has many of."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    encoded = array.dictionary_encode()
    if (pc.max(pc.binary_length(encoded.dictionary)).as_py() or 0) > LONGEST_TEXT:
        refuse(f"a text of more than {LONGEST_TEXT} bytes", "")
    try:
        texts = [*encoded.dictionary.to_pylist(), None]
    except UnicodeDecodeError:
        refuse("not UTF-8", "")
    return list(map(texts.__getitem__, _numbers(encoded.indices.cast(pa.int64()).fill_null(-1))))


def _decoded(array: Any, type_: Type) -> list[Any]:  # noqa: ANN401 - as above
    """Return the values of *array*, in which lists are tuples and structs the rows that *type_* makes."""
    if isinstance(type_, Scalar):
        return _values(array)
    if (pc.max(pc.list_value_length(array)).as_py() or 0) > MOST_ITEMS:
        refuse(f"a list of more than {MOST_ITEMS} items", "")
    offsets, values = _numbers(array.offsets), array.values  # from 0 on, as the rows of a kind were taken
    if isinstance(type_, ListOf):
        items = tuple(_values(values))
    else:
        children = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        columns = [_decoded(children[column.name], column.type) for column in type_.columns]
        if type_ is STATE_BATCHES:
            return _with_nulls(list(map(_state_batches(columns), pairwise(offsets))), array)
        items = tuple(map(partial(new_tuple, type_.make), zip(*columns, strict=True)))
    return _with_nulls([items[begin:end] for begin, end in pairwise(offsets)], array)


def _with_nulls(values: list[Any], array: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return *values* with None where *array* is null."""
    if array.null_count:
        for at in _places(array.is_null()):
            values[at] = None
    return values


def _state_batches(columns: list[list[Any]]) -> Callable[[tuple[int, int]], Sequence[StateBatch]]:
    """Return what makes state batches of their place, as they are, column by column: each record may have one."""
    firsts, lasts, states, counts = columns

    def make(place: tuple[int, int]) -> Sequence[StateBatch]:
        begin, end = place
        if end - begin == 1:  # as most writes have
            return (new_tuple(StateBatch, (firsts[begin], lasts[begin], states[begin], counts[begin])),)
        at = slice(begin, end)
        run = new_tuple(StateRun, (firsts[at], lasts[at], states[at], counts[at]))
        return StateBatches((run,) if begin < end else ())

    return make


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
    if all(type_ is STATE_BATCHES for type_ in types):
        sizes, inner = _state_batches_array(values)
    else:
        sizes = [len(value) if value else 0 for value in values]
        items = list(chain.from_iterable(filter(None, values)))
        if isinstance(types[0], ListOf):
            inner = pa.array(items, _SCALARS[types[0].item])
        else:
            inner = _rows_array(items, [rows for rows in types if isinstance(rows, Rows)])
    offsets = pa.array(list(accumulate(sizes, initial=0)), pa.int32())
    mask = pa.array([value is None for value in values], pa.bool_()) if None in values else None
    return pa.ListArray.from_arrays(offsets, inner, mask=mask)


def _state_batches_array(values: Sequence[Any]) -> tuple[list[int], pa.StructArray]:
    """Return the sizes of lists of state batches, and all of them as structs; no batch is made for that."""
    columns = firsts, lasts, states, counts = list[int](), list[int](), list[int](), list[int]()
    sizes: list[int] = []
    for value in values:
        begin = len(firsts)
        if type(value) is tuple and len(value) == 1:  # as most writes have
            ((first, last, state, count),) = value
            firsts.append(first)
            lasts.append(last)
            states.append(state)
            counts.append(count)
        else:
            for run in runs_of(value or ()):
                for column, numbers in zip(columns, run, strict=True):
                    column.extend(numbers)
        sizes.append(len(firsts) - begin)
    arrays = [
        pa.array(numbers, _SCALARS[_scalar(column)])
        for numbers, column in zip(columns, STATE_BATCHES.columns, strict=True)
    ]
    return sizes, pa.StructArray.from_arrays(arrays, fields=_fields(union([STATE_BATCHES.columns])))


def _rows_array(items: list[Any], types: list[Rows]) -> pa.StructArray:
    """Return rows as an array of structs; with several types, each row is of one of their classes."""
    columns = union(rows.columns for rows in types)
    arrays = []
    for name, all_ in columns.items():
        get = _getter(name, types)
        arrays.append(_array(list(map(get, items)), [column.type for column in all_]))
    return pa.StructArray.from_arrays(arrays, fields=_fields(columns))


def _getter(name: str, types: list[Rows]) -> Callable[[Any], Any]:
    """Return what gets the value of a column from a row; of several types, a plain tuple does not say which it is."""
    if len(types) == 1:
        return itemgetter(*(place for place, column in enumerate(types[0].columns) if column.name == name))
    names = {rows.make: [column.name for column in rows.columns] for rows in types}
    places = {make: named.index(name) if name in named else None for make, named in names.items()}

    def get(row: Any) -> Any:  # noqa: ANN401 - a row of one of *types*
        try:
            place = places[type(row)]
        except KeyError:
            known = " or ".join(make.__name__ for make in places)
            message = f"expected a row of {known}, got {brief_repr(row)}"
            raise TypeError(message) from None
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
    size = len(rows)
    values = [row.values for row in rows]
    arrays = _key_arrays([row.key for row in rows]) | {
        "seq": pa.array([row.seq for row in rows], pa.int64()),
        "at_us": pa.array([row.at_us for row in rows], pa.int64()),
        "kind": pa.repeat(pa.scalar(kind, pa.string()), size),
    }
    for at, column in enumerate(OUTPUTS[kind].columns):
        arrays[column.name] = _array([each[at] for each in values], [column.type])
    columns = [arrays[field.name] if field.name in arrays else pa.nulls(size, field.type) for field in OUTPUT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=OUTPUT_SCHEMA)


def _key_arrays(keys: Sequence[tuple[str, str, int]]) -> dict[str, Any]:
    """Return the columns of share partitions, each of which many rows have, mostly one after the other."""
    places: dict[tuple[str, str, int], int] = {}
    at: list[int] = []
    for key, group in groupby(keys):
        at += [places.setdefault(key, len(places))] * len(list(group))
    rows = pa.array(at, pa.int64())
    columns = zip(*places, strict=True)
    return {
        column.name: pa.array(values, _SCALARS[_scalar(column)]).take(rows)
        for column, values in zip(OUTPUT_COLUMNS, columns, strict=False)
    }
