"""
What the outside may see of the in-flight batches: read only.

A view is made when it is asked for and does not follow later changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sharestate.partition import invariants
from sharestate.partition.cells import Cell
from sharestate.values.checks import integer

if TYPE_CHECKING:
    from sharestate.partition.batch import Batch
    from sharestate.partition.gaps import GapWindow
    from sharestate.partition.ledger import Ledger
    from sharestate.partition.lifecycle import Lifecycle
    from sharestate.values.config import ShareConfig
    from sharestate.values.keys import SharePartitionKey
    from sharestate.values.profiles import Profile


class RecordRun(NamedTuple):
    """Neighbouring records of one batch that look alike."""

    first_offset: int
    """The first offset of the run."""

    last_offset: int
    """The last offset of the run, included."""

    cell: Cell
    """What is true of them; what cannot be seen of it, such as its lock's number, is true of the first one."""


class BatchView(NamedTuple):
    """An in-flight batch as it stood when it was asked for."""

    first_offset: int
    """The batch's first offset."""

    last_offset: int
    """The batch's last offset, included."""

    is_split: bool
    """Whether it is kept record by record; if not, there is one run."""

    runs: tuple[RecordRun, ...]
    """Its records, in ascending order. Two neighbouring runs never look alike."""


def _view(batch: Batch) -> BatchView:
    """Return *batch* as it stands; linear in its records if it is split."""
    runs: list[RecordRun] = []
    for first, last, cell in batch.runs(batch.first_offset, batch.last_offset):
        if runs and runs[-1].cell.looks == cell.looks:
            runs[-1] = runs[-1]._replace(last_offset=last)
        else:
            runs.append(RecordRun(first, last, cell))
    return BatchView(batch.first_offset, batch.last_offset, batch.is_split, tuple(runs))


class PartitionView:
    """What can be seen of a share partition, without changing anything."""

    _ledger: Ledger

    @property
    def key(self) -> SharePartitionKey:
        """Which share partition it is."""
        return self._ledger.key

    @property
    def leader_epoch(self) -> int:
        """The leader's epoch."""
        return self._ledger.leader_epoch

    @property
    def profile(self) -> Profile:
        """Whose rules it follows."""
        return self._ledger.profile

    @property
    def config(self) -> ShareConfig:
        """The settings that are in force."""
        return self._ledger.config

    @property
    def lifecycle(self) -> Lifecycle:
        """How far it has come."""
        return self._ledger.lifecycle

    @property
    def state_epoch(self) -> int:
        """The epoch that was read with the persisted state."""
        return self._ledger.state_epoch

    @property
    def start_offset(self) -> int:
        """The SPSO: the first offset that is still in flight."""
        return self._ledger.start_offset

    @property
    def end_offset(self) -> int:
        """The SPEO: the last offset that was ever acquired; the next one to fetch if nothing is cached."""
        return self._ledger.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many cached records at or above the SPSO are terminal (KIP-1226). [records]"""
        return self._ledger.delivery_complete_count

    @property
    def find_next(self) -> bool:
        """Whether the next fetch has to look for something cached that may be acquirable."""
        return self._ledger.find_next

    @property
    def gap_window(self) -> GapWindow | None:
        """Where gaps between batches may hold records that the last leader fetched."""
        return self._ledger.gap_window

    def batches(self) -> tuple[BatchView, ...]:
        """Return the in-flight batches as they stand; linear in them, and in the records of split ones."""
        return tuple(map(_view, self._ledger.in_flight))

    def lock_count(self) -> int:
        """Return how many acquisition locks run: one for a whole batch, else one for each record. [locks]"""
        return self._ledger.locks.count

    def lag(self, log_end_offset: int) -> int:
        """Return how many records are still to be delivered or finished, as Kafka counts them (KIP-1226). [records]"""
        return (
            integer(log_end_offset, "log_end_offset") - self._ledger.start_offset - self._ledger.delivery_complete_count
        )

    def check(self) -> None:
        """
        Assert every invariant of the state.

        Raises:
            InvariantError: One does not hold: a defect of this library.
        """
        invariants.check(self._ledger)
