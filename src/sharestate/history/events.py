"""Events of a history: as values, and as the JSON of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.columns import Column, ListOf, Need, Rows, Scalar, Type
from sharestate.errors import HistoryOrderError, MalformedInputError
from sharestate.history.columns import EVENT_COLUMNS, INFERRED, KINDS, LONGEST_TEXT
from sharestate.json_checks import (
    COMMENT,
    Check,
    Field,
    a_list,
    an_object,
    boolean,
    integer,
    list_of,
    nullable,
    one_of,
    record,
    refuse,
    refuse_unknown,
    text,
)
from sharestate.json_lines import Json


class Event(NamedTuple):
    """
    Something that happened to a share partition.

    Attributes:
        group_id: The share group.
        topic_id: The topic's id.
        partition: The partition's index.
        seq: Its place among the events of the share partition: 0, 1, 2 ... without holes.
        at_us: When it arrived; None if not known, like the other times. [µs since 1970]
        taken_us: When a handler took it. [µs since 1970]
        handled_us: When the handler was done. [µs since 1970]
        done_us: When its answer was ready. [µs since 1970]
        effect_us: When it took effect, as the check of a broker's log found it. [µs since 1970]
        connection: Its connection, within which the order is binding; None if not known.
        request_no: The number of its request in that connection; None if not known.
        kind: One of ``KINDS``.
        member_id: The member; None without one.
        client_id: The name that the member's client gives itself; None if it is not known.
        source_file: The file that it was read from, such as a request log; None if it was not read from a file.
        source_line: The line of that file, from 1 on.
        request: The fields of the request, without those that are null; None without a request.
        response: The fields of the response, without those that are null; None if it was not observed.
        inferred: Whether it was not observed, but follows from something else.
    """

    group_id: str
    topic_id: str
    partition: int
    seq: int
    at_us: int | None
    taken_us: int | None
    handled_us: int | None
    done_us: int | None
    effect_us: int | None
    connection: str | None
    request_no: int | None
    kind: str
    member_id: str | None
    client_id: str | None
    source_file: str | None
    source_line: int | None
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    inferred: bool

    @property
    def key(self) -> tuple[str, str, int]:
        """The share partition: group id, topic id and partition."""
        return self[:3]

    @property
    def time_us(self) -> int | None:
        """When it happened, as far as is known: when it took effect, was taken, or arrived. [µs since 1970]"""
        if self.effect_us is not None:
            return self.effect_us
        return self.at_us if self.taken_us is None else self.taken_us

    @property
    def source(self) -> str | None:
        """The file and the line that it was read from, as in ``request.log:7``; None if it was not read from a file."""
        return None if self.source_file is None else f"{self.source_file}:{self.source_line}"

    @classmethod
    def of(  # noqa: PLR0913 - the columns that events of programs have
        cls,
        key: tuple[str, str, int],
        seq: int,
        kind: str,
        *,
        at_us: int | None = None,
        member_id: str | None = None,
        request: Mapping[str, Any] | None = None,
        response: Mapping[str, Any] | None = None,
    ) -> Event:
        """Make an event of which nothing is known but the arguments; fields that are None are left out."""
        return cls(
            *key,
            seq,
            at_us,
            None,
            None,
            None,
            None,
            None,
            None,
            kind,
            member_id,
            None,
            None,
            None,
            None if request is None else _without_nulls(request),
            None if response is None else _without_nulls(response),
            False,  # noqa: FBT003 - the columns in order
        )


def _without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class SequenceCheck:
    """A check that each share partition's events come one after the other, from 0 on."""

    def __init__(self) -> None:
        """Start before the first event."""
        self._next: dict[tuple[str, str, int], int] = {}

    def expect(self, event: Event) -> None:
        """
        Check that *event* is the next one of its share partition.

        Raises:
            HistoryOrderError: An event is missing, or was there already.
        """
        key = event[:3]
        expected = self._next.get(key, 0)
        if event.seq != expected:
            raise order_error(key, event.seq, expected)
        self._next[key] = expected + 1


class PartSequenceCheck(SequenceCheck):
    """The same for a part of a history, in which a share partition's events may begin with any number."""

    def expect(self, event: Event) -> None:
        """Check that *event* is the next one of its share partition, or its first one here."""
        self._next.setdefault(event[:3], event.seq)
        super().expect(event)


def order_error(key: tuple[str, str, int], seq: int, expected: int) -> HistoryOrderError:
    """Return the error for an event *seq* of *key* where *expected* has to come."""
    if seq < expected:
        what = f"event {seq} comes again, or too late"
    elif expected == 0:
        what = f"the first event is {seq}: the beginning is missing, or was given to another replay"
    else:
        what = f"event {expected} is missing: {seq} comes after {expected - 1}"
    where = "{}-{}-{}".format(*key)
    return HistoryOrderError(f"{what} ({where})", "seq", key=key, seq=seq, expected=expected)


# ---- JSON, by the tables


def check_of(type_: Type) -> Check[Any]:
    """Return the check for a JSON value of *type_*."""
    match type_:
        case Scalar.TEXT:
            return _utf8
        case Scalar.BOOLEAN:
            return boolean
        case Scalar():
            return integer(-(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1)
        case ListOf(item):
            return list_of(check_of(item))
        case Rows():
            return list_of(_row_check(type_))


def _utf8(value: Json, path: str) -> str:
    """Check a string that UTF-8 can write: JSON has escapes for others, and neither Kafka nor Parquet has them."""
    found = text(value, path)
    if len(found) <= LONGEST_TEXT and found.isascii():  # nearly always
        return found
    try:
        size = len(found.encode())
    except UnicodeEncodeError:
        refuse("text that UTF-8 can write", value, path)
    return found if size <= LONGEST_TEXT else refuse(f"a text of {LONGEST_TEXT} bytes at most", value, path)


def _row_check(rows: Rows) -> Check[Any]:
    """Return the check for one of *rows*: a list of its required fields, and an object of the others if any."""
    checks = [_column_check(column) for column in rows.columns if column.need is Need.REQUIRED]
    required = [(each, f"[{place}]") for place, each in enumerate(checks)]
    others = {column.name: column for column in rows.columns if column.need is not Need.REQUIRED}
    check_others = _fields_check(tuple(others.values()))
    sizes = (len(required), len(required) + bool(others))

    def check(value: Json, path: str) -> Any:  # noqa: ANN401 - a row of *rows*
        items = a_list(value, path)
        if len(items) not in sizes:
            refuse(f"a list of {' or '.join(map(str, dict.fromkeys(sizes)))}", value, path)
        values = [each(item, path + place) for (each, place), item in zip(required, items, strict=False)]
        optional = check_others(items[-1], f"{path}[{len(items) - 1}]") if len(items) > len(required) else {}
        return rows.make(*values, **optional)

    return check


def _column_check(column: Column) -> Check[Any]:
    return one_of({name: name for name in column.values}) if column.values else check_of(column.type)


def _fields_check(columns: tuple[Column, ...]) -> Check[dict[str, Any]]:
    """Return the check for an object with *columns*; nulls are left out of what it returns."""
    # Events share the names of the table: those that were read are new strings each time.
    checks = {column.name: (column.name, _column_check(column)) for column in columns}
    needs = [column for column in columns if column.need is not Need.OPTIONAL]

    def check(value: Json, path: str) -> dict[str, Any]:
        members = an_object(value, path)
        fields = {}
        for name, member in members.items():
            if name not in checks:
                if name == COMMENT:
                    continue
                refuse_unknown(name, checks, path)
            if member is not None:
                shared, check_column = checks[name]
                fields[shared] = check_column(member, f"{path}.{name}")
        for column in needs:
            if column.name not in fields and (column.need is Need.REQUIRED or "error" not in fields):
                missing = "missing"
                raise MalformedInputError(missing, f"{path}.{column.name}")
        return fields

    return check


def _shared_text(value: Json, path: str) -> str:
    """Check a text that many events have, such as a member; they share one string."""
    return intern(_utf8(value, path))


def _top(column: Column) -> Field:
    check = _shared_text if column.type is Scalar.TEXT and not column.values else _column_check(column)
    return Field(check) if column.need is Need.REQUIRED else Field(nullable(check), None)


def _inferred(value: Json, path: str) -> bool:
    return value is not None and boolean(value, path)


_TOP: Final[Mapping[str, Field]] = MappingProxyType(
    {column.name: _top(column) for column in EVENT_COLUMNS}
    | {name: Field(nullable(an_object), None) for name in ("request", "response")}
    | {INFERRED.name: Field(_inferred, default=False)}
)
_check_top: Final[Check[Event]] = record(_TOP, Event)
_REQUESTS: Final = {kind.name: _fields_check(kind.request) for kind in KINDS.values()}
_RESPONSES: Final = {kind.name: _fields_check(kind.response) for kind in KINDS.values()}


def read_event(value: Json, path: str = "") -> Event:
    """
    Return the event that a JSON *value* stands for.

    Raises:
        MalformedInputError: A field is missing, unknown or not what it has to be; ``field`` says which.
    """
    event = _check_top(value, path)
    return complete(event, _REQUESTS[event.kind], _RESPONSES[event.kind])


def complete(event: Event, check_request: Check[Any], check_response: Check[Any]) -> Event:
    """Return *event* with its request and response checked."""
    request, response = event.request, event.response
    if request is not None or any(each.need is Need.REQUIRED for each in KINDS[event.kind].request):
        request = check_request({} if request is None else request, "request")
    if response is not None:
        response = check_response(response, "response")
    return event._replace(request=request, response=response)


def write_event(event: Event) -> Json:
    """Return *event* as JSON: what is null or false is left out."""
    value = {
        name: member
        for name, member in zip(event._fields, event, strict=True)
        if member is not None and member is not False
    }
    if event.request is not None:
        value["request"] = _fields_json(_REQUEST_ROWS[event.kind], event.request)
    if event.response is not None:
        value["response"] = _fields_json(_RESPONSE_ROWS[event.kind], event.response)
    return value


def _not_scalar(columns: Iterable[Column]) -> tuple[tuple[str, Type], ...]:
    return tuple((column.name, column.type) for column in columns if not isinstance(column.type, Scalar))


_REQUEST_ROWS: Final = {kind.name: _not_scalar(kind.request) for kind in KINDS.values()}
_RESPONSE_ROWS: Final = {kind.name: _not_scalar(kind.response) for kind in KINDS.values()}


def _fields_json(rows: Iterable[tuple[str, Type]], fields: Mapping[str, Any]) -> Json:
    """Return *fields* as JSON, of which *rows* are not the same there."""
    value = _without_nulls(fields) if None in fields.values() else dict(fields)
    for name, type_ in rows:
        if name in value:
            value[name] = json_of(type_, value[name])
    return value


def json_of(type_: Type, value: Any) -> Json:  # noqa: ANN401 - a value of that type
    """Return a *value* of *type_* as JSON."""
    if isinstance(type_, Scalar):
        return value
    return list(value) if isinstance(type_, ListOf) else _rows_json(type_, value)


def _rows_json(rows: Rows, value: Any) -> Json:  # noqa: ANN401 - a sequence of rows
    required = rows.required
    if required == len(rows.columns):
        return list(value)  # in JSON a tuple is a list
    names = [column.name for column in rows.columns[required:]]
    return [_row_json(row, required, names) for row in value]


def _row_json(row: tuple[Any, ...], required: int, names: list[str]) -> Json:
    others = {name: value for name, value in zip(names, row[required:], strict=True) if value is not None}
    return [*row[:required], others] if others else list(row[:required])
