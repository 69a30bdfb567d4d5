"""B9a: the advance may move the start offset back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import advance
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.advance import AdvancePlan
    from sharestate.partition.state import PartitionState

_start_after = advance._start_after  # noqa: SLF001 - what is planted


def start_after(state: PartitionState, plan: AdvancePlan) -> int:
    """Return where the start offset is once *plan* is carried out."""
    start = state.start_offset
    state.start_offset = 0
    try:
        return _start_after(state, plan)
    finally:
        state.start_offset = start


def plant() -> None:
    """Put the old rule back."""
    put(advance, "_start_after", start_after)
