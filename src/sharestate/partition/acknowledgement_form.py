"""The form of acknowledgements, which is checked before a command looks at the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sharestate.errors import InvalidRequestError
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.checks import MAX_INT64, MIN_INT64, a_tuple, brief_repr, refuse

MAX_TYPES: Final = 2**20
"""Most acknowledge types in one AcknowledgementBatch: as many as a batch may have records to be split. [types]"""


_HIGH: Final = MAX_INT64  # a name of this module: compiled code looks up those of others each time
_TYPES: Final = frozenset({int, AcknowledgeType})
_NOTHING_YET: Final = object()
_SEQUENCES: Final = (tuple, list, Sequence)


def acknowledgements(batches: Iterable[AcknowledgementBatch]) -> tuple[AcknowledgementBatch, ...]:
    """
    Return *batches*, in each of which the range and the number of types make sense (rules 8.2 and 24.3).

    Raises:
        MalformedInputError: A part is of the wrong type, or there are more than MAX_TYPES types.
        InvalidRequestError: A range is reversed, or has no type, or several but not one for each offset.
    """
    batches = tuple(batches) if type(batches) is list else a_tuple(batches, AcknowledgementBatch, "batches")
    single: object = _NOTHING_YET  # what was found to be one type: entry after entry often has the same tuple
    # Whatever the caller has put into them, which compiled code would otherwise take for what is annotated.
    first: Any
    last: Any
    types: Any
    try:
        for batch in batches:
            first, last, types = batch
            if type(first) is not int or type(last) is not int or not 0 <= first <= last <= _HIGH:
                break  # what is negative is let pass at a closer look: only small numbers are compared quickly
            if types is single:
                continue
            if len(types) == 1:
                if type(types[0]) not in _TYPES or not isinstance(types, _SEQUENCES):
                    break
                single = types
            elif not _are_types(types, last - first + 1):
                break
        else:
            return batches
    except (TypeError, ValueError, LookupError, OverflowError):  # an entry is no triple, or its types have no length
        pass
    _refuse_first(batches)
    return batches


def _are_types(types: Any, size: int) -> bool:  # noqa: ANN401 - whatever the caller has passed
    """Return whether *types* are acknowledge types for each of *size* offsets; more do no harm."""
    return size <= len(types) <= MAX_TYPES and isinstance(types, _SEQUENCES) and _TYPES.issuperset(map(type, types))


def _refuse_first(batches: Iterable[Any]) -> None:
    """Raise the error for the first of *batches* that does not make sense; none if they do at a closer look."""
    for index, batch in enumerate(batches):
        _expect_form(batch, f"batches[{index}]")


def _expect_form(batch: Any, where: str) -> None:  # noqa: ANN401 - whatever the caller has passed
    """Refuse a *batch* that does not make sense, naming the part that is wrong."""
    try:
        first, last, types = batch
    except (TypeError, ValueError):
        refuse(f"expected an AcknowledgementBatch, got {brief_repr(batch)}", where)
    for offset, name in ((first, "first_offset"), (last, "last_offset")):
        if type(offset) is not int or not MIN_INT64 <= offset <= MAX_INT64:
            refuse(f"expected an integer within {MIN_INT64}..{MAX_INT64}, got {brief_repr(offset)}", f"{where}.{name}")
    count = _expect_types(types, f"{where}.acknowledge_types")
    size = last - first + 1
    if size < 1:
        message = f"The range is reversed: {first}-{last}"
        raise InvalidRequestError(message, first, last)
    if count == 1 or count >= size:
        return
    message = f"{count} acknowledge types for the {size} offsets {first}-{last}"
    raise InvalidRequestError(message, first, last)


def _expect_types(types: Any, where: str) -> int:  # noqa: ANN401 - whatever the caller has passed
    """Return how many *types* there are, or refuse them."""
    if not isinstance(types, _SEQUENCES):
        refuse(
            f"expected a sequence of types, such as (AcknowledgeType.ACCEPT,), got {brief_repr(types)}",
            where,
        )
    try:
        count = len(types)
    except OverflowError:  # a range may be longer than a length may be
        count = MAX_TYPES + 1
    if count > MAX_TYPES:  # before the types are looked at: a range of any length costs nothing to make
        refuse(f"expected at most {MAX_TYPES} acknowledge types, got {brief_repr(types)}", where)
    for index, type_ in enumerate(types):
        if type(type_) not in _TYPES:
            refuse(f"expected an acknowledge type, got {brief_repr(type_)}", f"{where}[{index}]")
    return count
