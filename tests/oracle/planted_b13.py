"""B13: a piece of the gap window is acquired up to the whole limit, whatever was acquired before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import redelivery
from sharestate.partition.gaps import active_window
from sharestate.partition.new_batches import NewBatches, plan_new
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.acquisition import Acquisition
    from sharestate.partition.ledger import Ledger


def plan(ledger: Ledger, acquisition: Acquisition, first_offset: int, last_offset: int, limit: int) -> NewBatches:
    """Plan to acquire a range in which nothing is cached."""
    is_gap = active_window(ledger) is not None and last_offset < acquisition.last_offset
    return plan_new(ledger, acquisition, first_offset, last_offset, acquisition.limit if is_gap else limit)


def plant() -> None:
    """Put the old rule back."""
    put(redelivery, "plan_new", plan)
