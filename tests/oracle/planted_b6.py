"""B6: what overlaps nothing is acquired from where it was fetched, below the start offset too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire
from sharestate.partition.new_batches import NewBatches, plan_new
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.acquisition import Acquisition
    from sharestate.partition.ledger import Ledger


def plan(ledger: Ledger, acquisition: Acquisition, _first: int, last_offset: int, limit: int) -> NewBatches:
    """Plan to acquire *limit* records of all that was fetched."""
    return plan_new(ledger, acquisition, acquisition.first_offset, last_offset, limit)


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "plan_new", plan)
