"""B3: closing a session stops at the first record of a split batch that somebody else holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import release
from sharestate.partition.cells import NOBODY
from sharestate.partition.transitions import Input
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.batch import Batch
    from sharestate.partition.pending import PendingWrite


def release_records(change: PendingWrite, batch: Batch, member_id: str) -> None:
    """Begin the release of what *member_id* holds of *batch*."""
    for offset in range(batch.first_offset, batch.last_offset + 1):
        cell = batch.at(offset)
        if cell.member_id not in {member_id, NOBODY}:
            return
        if cell.state.name == "ACQUIRED":
            input_ = Input.BELOW_START if offset < change.start_offset else Input.SESSION_CLOSE
            change.begin(batch, offset, offset, input_, [cell])


def plant() -> None:
    """Put the old rule back."""
    put(release, "_release_records", release_records)
