"""B6: what overlaps nothing is acquired from where it was fetched, below the start offset too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import acquire
from sharestate.partition.acquire import plan_new
from tests.planted.putting import put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.partition.acquire import Request, Step
    from sharestate.partition.state import PartitionState


_plan = acquire._plan  # noqa: SLF001 - what is planted


def plan(state: PartitionState, request: Request) -> Sequence[Step]:
    """Plan to acquire all that was fetched if nothing of it is cached, below the SPSO too."""
    base = acquire._base_offset(state, request.first_offset)  # noqa: SLF001 - as above
    first, last = min(request.first_offset, base), request.last_offset
    if first > last or state.in_flight.beginning_in(first, last):
        return _plan(state, request)
    return (plan_new(state, request, request.first_offset, last, request.limit),)


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "_plan", plan)
