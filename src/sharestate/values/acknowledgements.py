"""What members say about the records that they hold."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class AcknowledgeType(IntEnum):
    """
    What became of a record on the member's side; the numbers are those of the wire.

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
    A member's acknowledgement of a range of records; checked where it is used, so cheap to make.

    >>> AcknowledgementBatch(0, 4, (AcknowledgeType.ACCEPT,))
    AcknowledgementBatch(first_offset=0, last_offset=4, types=(<AcknowledgeType.ACCEPT: 1>,))
    """

    first_offset: int
    """The first offset of the range."""

    last_offset: int
    """The last offset of the range, included."""

    types: Sequence[int]
    """One type for the whole range, or one for each offset in turn."""
