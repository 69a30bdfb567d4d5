"""Acknowledgements, whose form is checked before a command looks at the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, NoReturn

from sharestate.errors import InvalidRequestError
from sharestate.values.checks import MAX_INT64, MIN_INT64, a_tuple, brief_repr, refuse

MAX_TYPES: Final = 2**20
"""Most acknowledge types in one AcknowledgementBatch: as many as a batch may have records to be split. [types]"""


class AcknowledgeType(IntEnum):
    """
    The outcome of a record's processing at a member; the numbers are those of the wire.

    Source:
        AcknowledgeType (Kafka 4.3.1); 0 has no name there.
    """

    GAP = 0
    """There is no such record."""

    ACCEPT = 1
    """It was processed."""

    RELEASE = 2
    """It was not; it may be delivered again."""

    REJECT = 3
    """It cannot be processed; it must not be delivered again."""

    RENEW = 4
    """It is still being processed: the acquisition lock starts anew (KIP-1222)."""


class AcknowledgementBatch(NamedTuple):
    """
    A member's acknowledgement of a range of records.

    Any values make one: they are checked when it is used, by ``acknowledge``.

    >>> AcknowledgementBatch(0, 4, (AcknowledgeType.ACCEPT,))
    AcknowledgementBatch(first_offset=0, last_offset=4, acknowledge_types=(<AcknowledgeType.ACCEPT: 1>,))

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        acknowledge_types: One type for the whole range, or one for each offset in turn; at most 2^20.
    """

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


_RENEW_VERSION: Final = 2
"""The version of ShareFetch and ShareAcknowledge from which on locks may be renewed (KIP-1222)."""

_TYPES: Final = frozenset({int, AcknowledgeType})
_NOTHING_YET: Final = object()
_SEQUENCES: Final = (tuple, list, Sequence)


def acknowledgements(batches: Iterable[AcknowledgementBatch]) -> tuple[AcknowledgementBatch, ...]:
    """
    Return *batches*, in each of which the range and the number of types make sense (rules 8.2 and 24.3).

    Raises:
        MalformedInputError: A part is of the wrong type, or there are more than MAX_TYPES types.
        InvalidRequestError: A range is reversed, or has neither one type nor one for each offset.
    """
    batches = tuple(batches) if type(batches) is list else a_tuple(batches, AcknowledgementBatch, "batches")
    single: object = _NOTHING_YET  # what was found to be one type: entry after entry often has the same tuple
    for batch in batches:
        try:
            first, last, types = batch
            if type(first) is type(last) is int and MIN_INT64 <= first <= last <= MAX_INT64:
                if types is single:
                    continue
                if len(types) == 1:
                    if type(types[0]) in _TYPES and isinstance(types, _SEQUENCES):
                        single = types
                        continue
                elif _are_types(types, last - first + 1):
                    continue
        except (TypeError, ValueError, LookupError, OverflowError):
            pass
        index = next(index for index, each in enumerate(batches) if each is batch)  # to count along would take long
        _refuse(batch, f"batches[{index}]")
    return batches


def is_refused_by_broker(batches: Iterable[AcknowledgementBatch], *, version: int, is_renew: bool) -> bool:
    """
    Return whether a broker refuses *batches* with INVALID_REQUEST before a share partition sees them.

    It does so if they do not ascend, a range is reversed or has neither one type nor one for each offset, a type is
    unknown in the *version* of the request, or locks are to be renewed and *is_renew* does not say so.

    Source:
        KafkaApis.validateAcknowledgementBatches (Kafka 4.3.1).
    """
    most = AcknowledgeType.RENEW if version >= _RENEW_VERSION else AcknowledgeType.REJECT
    previous = -1
    for first, last, types in batches:
        if first > last or first < previous or len(types) not in {1, last - first + 1}:
            return True
        if not 0 <= min(types) <= max(types) <= most or (AcknowledgeType.RENEW in types and not is_renew):
            return True
        previous = last
    return False


def _are_types(types: Any, size: int) -> bool:  # noqa: ANN401 - whatever the caller has passed
    """Return whether *types* are acknowledge types for each of *size* offsets; more do no harm."""
    return size <= len(types) <= MAX_TYPES and isinstance(types, _SEQUENCES) and _TYPES.issuperset(map(type, types))


def _refuse(batch: Any, where: str) -> NoReturn:  # noqa: ANN401 - whatever the caller has passed
    """Raise the error for a *batch* that does not make sense, naming the part that is wrong."""
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
