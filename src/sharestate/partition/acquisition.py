"""
Spec 7 and 7.11: what a member asks for when it fetches, and the steps in which it gets it.

An acquisition is planned first: the steps say what would be taken, and an acquisition that cannot be is refused before
anything has changed. Then the steps are taken in order.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import AcquiredRecords, AcquireMode, RecordBatch


class Acquisition(NamedTuple):
    """What one member wants of one fetch."""

    member_id: str
    """Who acquires."""

    log: Sequence[RecordBatch]
    """The record batches that were fetched, in ascending order; at least one."""

    last_offset: int
    """The last offset that may be acquired."""

    limit: int
    """How many records are wanted, as far as there is room for them. [records]"""

    batch_size: int
    """New batches are cut at batches of the log as soon as they have as many records. [records]"""

    mode: AcquireMode
    """How strictly the limit is taken."""

    @property
    def first_offset(self) -> int:
        """The first offset that was fetched."""
        return self.log[0].first_offset

    def log_index(self, offset: int) -> int:
        """Return the index of the last batch of the log that begins at or before *offset*; -1 if there is none."""
        return bisect_right(self.log, offset, key=itemgetter(0)) - 1


class Step(Protocol):
    """A part of an acquisition, planned and not taken yet."""

    @property
    def count(self) -> int:
        """How many records it takes. [records]"""

    def take(self, ledger: Ledger, acquisition: Acquisition) -> list[AcquiredRecords]:
        """Take them, and return what the member is told."""
