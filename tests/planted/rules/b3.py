"""B3: closing a session stops at the first record of a split batch that somebody else holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import release
from sharestate.partition.cells import NO_MEMBER
from sharestate.partition.record_machine import Input
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.partition.batches import Batch
    from sharestate.partition.state import PartitionState
    from sharestate.partition.writes import Change


def release_records(state: PartitionState, change: Change, batch: Batch, member_id: str) -> None:
    """Begin the release of what *member_id* holds of *batch*."""
    for offset in range(batch.first_offset, batch.last_offset + 1):
        cell = batch.at(offset)
        if cell.member_id not in {member_id, NO_MEMBER}:
            return
        if cell.state.name == "ACQUIRED":
            input_ = Input.BELOW_START if offset < state.start_offset else Input.SESSION_CLOSE
            change.begin(batch, offset, [cell], input_, [cell])


def plant() -> None:
    """Put the old rule back."""
    put(release, "_release_records", release_records)
