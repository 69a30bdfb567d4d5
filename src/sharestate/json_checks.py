"""
Checks that turn a JSON value into a value of the library: for single values, and for lists and objects of them.

A check takes the value and its path, such as ``batches[3][0]``, and returns the value that the JSON stands for. It
raises MalformedInputError, whose ``field`` is the path of the wrong part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from attrs import frozen

from sharestate.input_errors import MalformedInputError
from sharestate.json_lines import Json, brief

T = TypeVar("T")

Check: TypeAlias = Callable[[Json, str], T]
"""A function of a JSON value and its path; it returns the value that the JSON stands for."""

MIN_INT64: Final = -(2**63)
"""The smallest value of a 64-bit field on the wire."""

MAX_INT64: Final = 2**63 - 1
"""The largest value of a 64-bit field on the wire."""

_SHOWN: Final = 60
"""How much is shown of the name of an unknown field. [characters]"""

COMMENT: Final = "comment"
"""The field that every object may have besides its own; its value is not looked at."""


def refuse(wanted: str, value: Json, path: str) -> NoReturn:
    """Raise the error for a *value* at *path* where *wanted* was expected."""
    message = f"expected {wanted}, got {brief(value)}"
    raise MalformedInputError(message, path)


# ---- single values


def text(value: Json, path: str) -> str:
    """Check a string."""
    return value if isinstance(value, str) else refuse("a string", value, path)


def boolean(value: Json, path: str) -> bool:
    """Check a boolean."""
    return value if isinstance(value, bool) else refuse("true or false", value, path)


def integer(low: int = MIN_INT64, high: int = MAX_INT64) -> Check[int]:
    """Return the check for an integer within *low* and *high*; true, false and 1.0 are not integers."""

    def check(value: Json, path: str) -> int:
        if type(value) is int and low <= value <= high:
            return value
        refuse(f"an integer within {low}..{high}", value, path)

    return check


def one_of(values: Mapping[str, T]) -> Check[T]:
    """Return the check for a key of *values*; it returns the key's value."""

    def check(value: Json, path: str) -> T:
        if isinstance(value, str) and value in values:
            return values[value]
        refuse(f"one of {', '.join(values)}", value, path)

    return check


# ---- values made of others


def nullable(check: Check[T]) -> Check[T | None]:
    """Return *check* for a value that may also be null."""
    return lambda value, path: None if value is None else check(value, path)


def list_of(check: Check[T]) -> Check[tuple[T, ...]]:
    """Return the check for a list of any length, each item of which *check* takes."""

    def check_all(value: Json, path: str) -> tuple[T, ...]:
        return tuple([check(item, f"{path}[{index}]") for index, item in enumerate(a_list(value, path))])

    return check_all


def row(*checks: Check[Any], make: Callable[..., T], required: int | None = None) -> Check[T]:
    """Return the check for a list with one item for each of *checks*, of which the first *required* must be there."""
    least = len(checks) if required is None else required
    placed = [(check, f"[{place}]") for place, check in enumerate(checks)]

    def check(value: Json, path: str) -> T:
        items = a_list(value, path)
        if not least <= len(items) <= len(checks):
            refuse(f"a list of {least}" + (f" to {len(checks)}" * (least < len(checks))), value, path)
        return make(*[each(item, path + place) for (each, place), item in zip(placed, items, strict=False)])

    return check


@frozen
class Field:
    """A field of a JSON object."""

    check: Check[Any]
    """The check of its value."""

    default: Any = ...
    """Its value where it is missing; a field without a default is required."""


def record(fields: Mapping[str, Field], make: Callable[..., T], *, extensible: bool = False) -> Check[T]:
    """
    Return the check for an object with *fields*, which are passed to *make* by name.

    A field that is not one of them is refused, so that a misspelt name is noticed. A COMMENT is always allowed, and any
    other field if the object is *extensible*.
    """
    allowed = {*fields, COMMENT}
    wanted = [(name, field.check, field.default) for name, field in fields.items()]

    def check(value: Json, path: str) -> T:
        members = an_object(value, path)
        if not (extensible or members.keys() <= allowed):
            refuse_unknown(next(name for name in members if name not in allowed), fields, path)
        prefix = f"{path}." if path else ""
        made: dict[str, Any] = {}
        for name, takes, default in wanted:
            if name in members:
                made[name] = takes(members[name], prefix + name)
            elif default is ...:
                refuse_missing(prefix + name)
            else:
                made[name] = default
        return make(**made)

    return check


def refuse_unknown(name: str, known: Iterable[str], path: str) -> NoReturn:
    """Raise the error for a field *name* of the object at *path* that is not one of the *known* ones, nor a comment."""
    message = f"unknown field; expected one of {', '.join((*known, COMMENT))}"
    raise MalformedInputError(message, _field_path(path, name[:_SHOWN]))


def refuse_missing(path: str) -> NoReturn:
    """Raise the error for a required field at *path* that is not there."""
    message = "missing"
    raise MalformedInputError(message, path)


def _field_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def member(members: Mapping[str, Json], name: str, field: Field, path: str) -> Any:  # noqa: ANN401 - whatever the field's check returns
    """Return the checked value of the field *name* of the object at *path*, or its default."""
    where = _field_path(path, name)
    if name in members:
        return field.check(members[name], where)
    return refuse_missing(where) if field.default is ... else field.default


def a_list(value: Json, path: str) -> list[Json]:
    """Check a list of anything."""
    return value if isinstance(value, list) else refuse("a list", value, path)


def an_object(value: Json, path: str) -> dict[str, Json]:
    """Check an object with any fields."""
    return value if isinstance(value, dict) else refuse("an object", value, path)


def version(*known: int) -> Check[int]:
    """Return the check for the version of a format; only the *known* ones can be read."""

    def check(value: Json, path: str) -> int:
        if type(value) is int and value in known:
            return value
        refuse(f"version {' or '.join(map(str, known))}", value, path)

    return check
