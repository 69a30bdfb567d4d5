"""
Spec 8.2 and 24.3: malformed input is refused before a command looks at the state.

What a broker's rules refuse is judged where those rules are.
"""

from __future__ import annotations

from reprlib import repr as repr_
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from sharestate.errors import InvalidRequestError, MalformedInputError
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import MAX_OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.values.acknowledgements import AcknowledgementBatch

T = TypeVar("T")

_MIN_OFFSET: Final = -MAX_OFFSET - 1
"""The smallest number that the wire can carry for an offset."""

_TYPES: Final = frozenset({int, AcknowledgeType})


def expect(value: object, class_: type[T], field: str) -> T:
    """
    Return *value*, which is an instance of *class_*.

    Raises:
        MalformedInputError: It is not.
    """
    return value if isinstance(value, class_) else _refuse(f"expected {class_.__name__}, got {repr_(value)}", field)


def integer(value: object, field: str, low: int = _MIN_OFFSET, high: int = MAX_OFFSET) -> int:
    """
    Return *value*, which is an integer within *low* and *high*; True and False are none.

    Raises:
        MalformedInputError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        _refuse(f"expected an integer within {low}..{high}, got {repr_(value)}", field)
    return value


def acknowledgements(batches: Iterable[AcknowledgementBatch]) -> tuple[AcknowledgementBatch, ...]:
    """
    Return *batches*, in each of which the range and the number of types make sense.

    Raises:
        MalformedInputError: They are not what they should be.
        InvalidRequestError: A range is reversed, or has neither one type nor one for each offset.
    """
    try:
        batches = tuple(batches)
    except TypeError:
        _refuse(f"expected acknowledgement batches, got {repr_(batches)}", "batches")
    for index, batch in enumerate(batches):
        _expect_acknowledgement(batch, index)
    return batches


def _expect_acknowledgement(batch: AcknowledgementBatch, index: int) -> None:
    if not _is_acknowledgement(batch):
        _refuse(f"expected two offsets and a sequence of types, got {repr_(batch)}", f"batches[{index}]")
    first, last, types = batch
    size = last - first + 1
    if size < 1:
        message = f"The range is reversed: {first}-{last}"
        raise InvalidRequestError(message, first, last)
    if not types or 1 < len(types) < size:
        message = f"{len(types)} acknowledge types for the {size} offsets {first}-{last}"
        raise InvalidRequestError(message, first, last)


def _is_acknowledgement(batch: AcknowledgementBatch) -> bool:
    try:
        first, last, types = batch
        are_types = _TYPES.issuperset(map(type, types))
    except (TypeError, ValueError):
        return False
    are_offsets = type(first) is int and type(last) is int
    return are_types and are_offsets and _MIN_OFFSET <= first <= MAX_OFFSET and _MIN_OFFSET <= last <= MAX_OFFSET


def _refuse(message: str, field: str) -> NoReturn:
    raise MalformedInputError(message, field)
