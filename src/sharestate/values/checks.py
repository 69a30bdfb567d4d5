"""Checks of arguments: their types and bounds, before a command looks at the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from reprlib import Repr
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from attrs import Attribute

from sharestate import json_checks
from sharestate.input_errors import MalformedInputError

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., object])

Validator: TypeAlias = Callable[[object, "Attribute[Any]", Any], None]
"""Refuses a field's value: what attrs calls with the instance, the attribute and the value."""

MIN_INT64: Final = json_checks.MIN_INT64
"""The smallest number that the wire can carry in 64 bits."""

MAX_INT64: Final = json_checks.MAX_INT64
"""The largest."""


class _Repr(Repr):
    """Texts of arguments in messages: short, and made without an error of their own."""

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write integers of more than 4,300 digits.
        return super().repr_int(x, level) if x.bit_length() < 2**10 else f"an integer of {x.bit_length()} bits"

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ANN401 - an argument of any type
        # Part by part, so that a long part hides no other one.
        return type(x).__name__ + self.repr_tuple(x, level) if isinstance(x, tuple) else super().repr_instance(x, level)


_REPR: Final = _Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


def brief_repr(value: object) -> str:
    """
    Return *value* as a message shows it: at most some hundred characters, whatever it is.

    >>> brief_repr("earliest"), brief_repr(10**5000), brief_repr(range(2**62))
    ("'earliest'", 'an integer of 16610 bits', 'range(0, 4611686018427387904)')
    """
    try:
        return _REPR.repr(value)
    except Exception:  # noqa: BLE001 - an argument of any type, which may raise anything when looked at
        return f"an instance of {type(value).__name__}"


def refuse(message: str, field: str) -> NoReturn:
    """Raise the error for an argument *field* that is not what it has to be."""
    raise MalformedInputError(message, field)


def expect(value: object, class_: type[T], field: str, *, such_as: str = "") -> T:
    """
    Return *value*, which is an instance of *class_*.

    Args:
        value: The argument.
        class_: Its class.
        field: Its name.
        such_as: Valid values, for the message: of a class that users may not know by name.

    Raises:
        MalformedInputError: It is not.
    """
    if isinstance(value, class_):
        return value
    refuse(f"expected {class_.__name__}{such_as and f', such as {such_as}'}, got {brief_repr(value)}", field)


def a_callable(value: C, field: str) -> C:
    """
    Return *value*, which can be called.

    Raises:
        MalformedInputError: It cannot.
    """
    anything: object = value
    return value if callable(anything) else refuse(f"expected a callable, got {brief_repr(value)}", field)


def integer(value: object, field: str, low: int = MIN_INT64, high: int = MAX_INT64) -> int:
    """
    Return *value*, which is an integer within *low* and *high*; True and False are not.

    Raises:
        MalformedInputError: It is not.
    """
    if type(value) is int and low <= value <= high:  # nearly always, so it comes first
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        refuse(f"expected an integer within {low}..{high}, got {brief_repr(value)}", field)
    return value


def text(value: object, field: str) -> str:
    """
    Return *value*, which is a string, as one that nobody has overridden the methods of.

    Raises:
        MalformedInputError: It is no string.
    """
    return value if type(value) is str else str.__str__(expect(value, str, field))


def instance(class_: type[T], *, such_as: str = "") -> Validator:
    """Return what has attrs refuse a field that is no instance of *class_*; *such_as* as for ``expect``."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if not isinstance(value, class_):  # nearly never, and a call for each field would be felt
            expect(value, class_, attribute.name, such_as=such_as)

    return validate


def number(low: int, high: int = MAX_INT64) -> Validator:
    """Return what has attrs refuse a field that is no integer within *low* and *high*."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if type(value) is not int or not low <= value <= high:  # nearly never, as above
            integer(value, attribute.name, low, high)

    return validate


def set_of(class_: type[T], *members: T) -> Validator:
    """Return what has attrs refuse a field that is no frozenset of instances of *class_*, or of just some of them."""

    def validate(_instance: object, attribute: Attribute[Any], value: object) -> None:
        for member in expect(value, frozenset, attribute.name):
            expect(member, class_, attribute.name)
            if members and member not in members:
                known = ", ".join(sorted(map(str, members)))
                refuse(f"expected some of {known}, got {brief_repr(member)}", attribute.name)

    return validate


def a_tuple(values: Iterable[T], class_: type[T], field: str) -> tuple[T, ...]:
    """
    Return *values*, which should be instances of *class_*, as a tuple; nobody has looked at them yet.

    Raises:
        MalformedInputError: They cannot be iterated over, are too many, or are a single one without its list.
    """
    if type(values) is tuple:  # nearly always
        return values
    if isinstance(values, class_):  # a named tuple, whose fields would be taken for values
        refuse(f"expected a list of {class_.__name__}, got one without a list: {brief_repr(values)}", field)
    try:
        return tuple(values)
    except (TypeError, OverflowError, MemoryError):
        refuse(f"expected a list of {class_.__name__}, got {brief_repr(values)}", field)


def rows(values: Iterable[T], class_: type[T], field: str) -> tuple[T, ...]:
    """
    Return *values*, each of which is an instance of *class_*, as a tuple.

    Raises:
        MalformedInputError: They are no list, or one of them is something else.
    """
    if type(values) is not tuple:  # nearly never
        values = a_tuple(values, class_, field)
    if not values:
        return values
    size = len(getattr(class_, "_fields", ())) if issubclass(class_, tuple) else 0
    if {class_}.issuperset(map(type, values)) and (not size or {size}.issuperset(map(len, values))):
        return values  # nearly always, and faster than one by one
    for index, value in enumerate(values):
        # A named tuple that was made as a plain one may lack fields.
        if not isinstance(value, class_) or (size and isinstance(value, tuple) and len(value) != size):
            refuse(f"expected {class_.__name__}, got {brief_repr(value)}", f"{field}[{index}]")
    return values
