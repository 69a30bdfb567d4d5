"""Records of a split batch are told one by one when they are acquired again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.acquire import TakeRecords
from sharestate.values.records import AcquiredRecords
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.acquire import Request
    from sharestate.partition.state import PartitionState

_take = TakeRecords.take


def take(self: TakeRecords, state: PartitionState, request: Request) -> list[AcquiredRecords]:
    """Lock each record for the member."""
    return [
        AcquiredRecords(offset, offset, delivery_count)
        for first, last, delivery_count in _take(self, state, request)
        for offset in range(first, last + 1)
    ]


def plant() -> None:
    """Put the old rule back."""
    put(TakeRecords, "take", take)
