"""
Spec 8.2 and 24.3: malformed input is refused before a command looks at the state.

What a broker's rules refuse is judged where those rules are.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as repr_
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sharestate.errors import InvalidRequestError
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import MAX_INT64, MIN_INT64, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.values.acknowledgements import AcknowledgementBatch

_TYPES: Final = frozenset({int, AcknowledgeType})
_SEQUENCES: Final = (tuple, list, Sequence)


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
        refuse(f"expected acknowledgement batches, got {repr_(batches)}", "batches")
    for index, batch in enumerate(batches):
        if not _makes_sense(batch):
            _refuse(batch, index)
    return batches


def _makes_sense(batch: Any) -> bool:  # noqa: ANN401 - whatever the caller has passed
    try:
        first, last, types = batch
        if type(first) is not int or type(last) is not int or not MIN_INT64 <= first <= last <= MAX_INT64:
            return False
        count = len(types)
        if count == 1:
            return type(types[0]) in _TYPES and isinstance(types, _SEQUENCES)
        return last - first < count and isinstance(types, _SEQUENCES) and _TYPES.issuperset(map(type, types))
    except (TypeError, ValueError, LookupError):
        return False


def _refuse(batch: AcknowledgementBatch, index: int) -> NoReturn:
    if not _is_acknowledgement(batch):
        refuse(f"expected two offsets and a sequence of types, got {repr_(batch)}", f"batches[{index}]")
    first, last, types = batch
    size = last - first + 1
    if size < 1:
        message = f"The range is reversed: {first}-{last}"
        raise InvalidRequestError(message, first, last)
    message = f"{len(types)} acknowledge types for the {size} offsets {first}-{last}"
    raise InvalidRequestError(message, first, last)


def _is_acknowledgement(batch: Any) -> bool:  # noqa: ANN401 - whatever the caller has passed
    try:
        first, last, types = batch
        are_types = isinstance(types, Sequence) and _TYPES.issuperset(map(type, types))
    except (TypeError, ValueError):
        return False
    are_offsets = type(first) is int and type(last) is int
    return are_types and are_offsets and MIN_INT64 <= first <= MAX_INT64 and MIN_INT64 <= last <= MAX_INT64
