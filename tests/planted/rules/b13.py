"""B13: a piece of the gap window is acquired up to the whole limit, whatever was acquired before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.acquire import AddBatches, Request
    from sharestate.partition.state import PartitionState


_plan_new = acquire.plan_new


def plan(state: PartitionState, request: Request, first_offset: int, last_offset: int, limit: int) -> AddBatches:
    """Plan to acquire a range in which nothing is cached."""
    is_gap = state.active_gap_window is not None and last_offset < request.last_offset
    return _plan_new(state, request, first_offset, last_offset, request.limit if is_gap else limit)


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "plan_new", plan)
