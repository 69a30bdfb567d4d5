"""Records whose lock expires at the delivery count limit stay ARCHIVING if that cannot be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition import commit
from sharestate.partition.state import FinalWrite
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.state import PartitionState
    from sharestate.values.effects import Effects

RELEASE: Final = "4.4.0"

_write_failed = commit.write_failed


def write_failed(state: PartitionState, number: int) -> Effects:
    """Roll back a write; a final one hands nothing over."""
    pending = state.writes.get(number)
    if isinstance(pending, FinalWrite):
        state.writes[number] = FinalWrite(wakes=pending.wakes)
    return _write_failed(state, number)


def plant() -> None:
    """Leave out that they go to the dead-letter queue whatever becomes of the write."""
    put(commit, "write_failed", write_failed)
