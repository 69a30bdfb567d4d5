"""Acknowledgements, and what of them a broker refuses before a share partition sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple


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
    """It is still being processed: the acquisition lock starts again (KIP-1222)."""


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


def is_refused_by_broker(batches: Iterable[AcknowledgementBatch], *, version: int, is_renew: bool) -> bool:
    """
    Return whether a broker refuses *batches* with INVALID_REQUEST before a share partition sees them (rule 8.2).

    It does so if they do not ascend, a range is reversed or has neither one type nor one for each offset, a type is
    unknown in the *version* of the request, or locks are to be renewed and *is_renew* does not say so.

    Source:
        KafkaApis.validateAcknowledgementBatches (Kafka 4.3.1).
    """
    most = AcknowledgeType.RENEW if version >= _RENEW_VERSION else AcknowledgeType.REJECT
    previous = -1
    single: object = None  # one type that was let pass: batch after batch often has the same tuple
    for first, last, types in batches:
        if first > last or first < previous:
            return True
        previous = last
        if types is single:
            continue
        if len(types) not in {1, last - first + 1}:
            return True
        kinds = set(types)
        if not 0 <= min(kinds) <= max(kinds) <= most or (AcknowledgeType.RENEW in kinds and not is_renew):
            return True
        if len(types) == 1:
            single = types
    return False
