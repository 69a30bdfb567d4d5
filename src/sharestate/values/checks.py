"""What every argument has to be before anybody looks at what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from reprlib import repr as repr_
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from attrs import Attribute

from sharestate.errors import MalformedInputError

T = TypeVar("T")

Validator: TypeAlias = Callable[[object, "Attribute[Any]", Any], None]
"""Refuses a field's value: what attrs calls with the instance, the attribute and the value."""

MIN_INT64: Final = -(2**63)
"""The smallest number that the wire can carry in 64 bits."""

MAX_INT64: Final = 2**63 - 1
"""The largest."""


def refuse(message: str, field: str) -> NoReturn:
    """Raise the error for an argument *field* that is not what it has to be."""
    raise MalformedInputError(message, field)


def expect(value: object, class_: type[T], field: str) -> T:
    """
    Return *value*, which is an instance of *class_*.

    Raises:
        MalformedInputError: It is not.
    """
    return value if isinstance(value, class_) else refuse(f"expected {class_.__name__}, got {repr_(value)}", field)


def integer(value: object, field: str, low: int = MIN_INT64, high: int = MAX_INT64) -> int:
    """
    Return *value*, which is an integer within *low* and *high*; True and False are none.

    Raises:
        MalformedInputError: It is not.
    """
    if type(value) is int and low <= value <= high:  # nearly always, so it comes first
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        refuse(f"expected an integer within {low}..{high}, got {repr_(value)}", field)
    return value


def instance(class_: type[T]) -> Validator:
    """Return what has attrs refuse a field that is no instance of *class_*."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        expect(value, class_, attribute.name)

    return validate


def number(low: int, high: int = MAX_INT64) -> Validator:
    """Return what has attrs refuse a field that is no integer within *low* and *high*."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        integer(value, attribute.name, low, high)

    return validate


def set_of(class_: type[T], *members: T) -> Validator:
    """Return what has attrs refuse a field that is no frozenset of instances of *class_*, or of just some of them."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        for member in expect(value, frozenset, attribute.name):
            expect(member, class_, attribute.name)
            if members and member not in members:
                refuse(f"expected some of {', '.join(sorted(map(str, members)))}, got {repr_(member)}", attribute.name)

    return validate


def rows(values: Iterable[T], class_: type[T], field: str) -> tuple[T, ...]:
    """
    Return *values*, each of which is an instance of *class_*.

    Raises:
        MalformedInputError: They cannot be gone through, or one of them is something else.
    """
    try:
        values = tuple(values)
    except TypeError:
        refuse(f"expected values of {class_.__name__}, got {repr_(values)}", field)
    for index, value in enumerate(values):
        if not isinstance(value, class_):
            refuse(f"expected {class_.__name__}, got {repr_(value)}", f"{field}[{index}]")
    return values
