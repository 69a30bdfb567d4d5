"""
Checks that turn a value of JSON into one of ours: small ones, and those that are made of others.

A check takes the value and where it stood, as a path such as ``batches[3][0]``, and returns what the value means.
It raises MalformedInputError, whose ``field`` is the path of the part that was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from attrs import frozen

from sharestate.errors import MalformedInputError
from sharestate.json_lines import Json, brief

T = TypeVar("T")

Check: TypeAlias = Callable[[Json, str], T]
"""Returns what a value means, given the value and its path."""

MIN_INT64: Final = -(2**63)
"""The smallest number that the wire carries in a 64-bit field."""

MAX_INT64: Final = 2**63 - 1
"""The largest."""


def refuse(wanted: str, value: Json, path: str) -> NoReturn:
    """Raise the error for a *value* at *path* that is not what was *wanted*."""
    message = f"expected {wanted}, got {brief(value)}"
    raise MalformedInputError(message, path)


# ---- single values


def text(value: Json, path: str) -> str:
    """Take a string."""
    return value if isinstance(value, str) else refuse("a string", value, path)


def boolean(value: Json, path: str) -> bool:
    """Take true or false."""
    return value if isinstance(value, bool) else refuse("true or false", value, path)


def integer(low: int = MIN_INT64, high: int = MAX_INT64) -> Check[int]:
    """Return the check for an integer within *low* and *high*; true, false and 1.0 are none."""

    def check(value: Json, path: str) -> int:
        if type(value) is int and low <= value <= high:
            return value
        refuse(f"an integer within {low}..{high}", value, path)

    return check


def one_of(meanings: Mapping[str, T]) -> Check[T]:
    """Return the check for a word out of *meanings*, which it turns into what the word means."""

    def check(value: Json, path: str) -> T:
        if isinstance(value, str) and value in meanings:
            return meanings[value]
        refuse(f"one of {', '.join(meanings)}", value, path)

    return check


# ---- values made of others


def nullable(check: Check[T]) -> Check[T | None]:
    """Return *check* for a value that may also be null."""
    return lambda value, path: None if value is None else check(value, path)


def list_of(check: Check[T]) -> Check[tuple[T, ...]]:
    """Return the check for a list with any number of what *check* takes."""

    def check_all(value: Json, path: str) -> tuple[T, ...]:
        return tuple(check(item, f"{path}[{index}]") for index, item in enumerate(a_list(value, path)))

    return check_all


def row(*checks: Check[Any], make: Callable[..., T], required: int | None = None) -> Check[T]:
    """Return the check for a list with one item for each of *checks*; only the first *required* ones must be there."""
    least = len(checks) if required is None else required

    def check(value: Json, path: str) -> T:
        items = a_list(value, path)
        if not least <= len(items) <= len(checks):
            refuse(f"a list of {least}" + (f" to {len(checks)}" * (least < len(checks))), value, path)
        return make(*(each(item, f"{path}[{i}]") for i, (each, item) in enumerate(zip(checks, items, strict=False))))

    return check


@frozen
class Field:
    """A member of a JSON object."""

    check: Check[Any]
    """What its value has to be."""

    default: Any = ...
    """What it means when it is missing; it must not be missing without one."""


def record(fields: Mapping[str, Field], make: Callable[..., T]) -> Check[T]:
    """
    Return the check for an object with *fields*, handed to *make* by their names; other members are ignored.

    They may come from a later version of the protocol.
    """

    def check(value: Json, path: str) -> T:
        members = an_object(value, path)
        return make(**{name: member(members, name, field, path) for name, field in fields.items()})

    return check


def member(members: Mapping[str, Json], name: str, field: Field, path: str) -> Any:  # noqa: ANN401 - whatever the field's check returns
    """Return what the member *name* of the object at *path* means."""
    where = f"{path}.{name}" if path else name
    if name in members:
        return field.check(members[name], where)
    if field.default is ...:
        message = "missing"
        raise MalformedInputError(message, where)
    return field.default


def a_list(value: Json, path: str) -> list[Json]:
    """Take a list of anything."""
    return value if isinstance(value, list) else refuse("a list", value, path)


def an_object(value: Json, path: str) -> dict[str, Json]:
    """Take an object with any members."""
    return value if isinstance(value, dict) else refuse("an object", value, path)


def version(*known: int) -> Check[int]:
    """Return the check for the version of a format, of which only the *known* ones can be read."""

    def check(value: Json, path: str) -> int:
        if type(value) is int and value in known:
            return value
        refuse(f"version {' or '.join(map(str, known))}", value, path)

    return check
