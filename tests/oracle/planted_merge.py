"""Records of a split batch are told one by one when they are acquired again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.redelivery import SomeRecords
from sharestate.values.records import AcquiredRecords
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.acquisition import Acquisition
    from sharestate.partition.ledger import Ledger

_take = SomeRecords.take


def take(self: SomeRecords, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
    """Lock each record for the member."""
    return [
        AcquiredRecords(offset, offset, delivery_count)
        for first, last, delivery_count in _take(self, ledger, acquisition)
        for offset in range(first, last + 1)
    ]


def plant() -> None:
    """Put the old rule back."""
    put(SomeRecords, "take", take)
