"""
Spec 1 and 20.4: everything about a share partition that can change, and nothing that does.

The delivery complete count (20.4) is kept here: modules that make records terminal add to it, and modules that pass
such records or undo that take from it.

Source:
    The fields of SharePartition (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import Factory, define, field

from sharestate.partition.in_flight import InFlight
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Locks
from sharestate.partition.writers import writer_for
from sharestate.values.checks import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell
    from sharestate.partition.chronicle import Chronicle
    from sharestate.partition.gaps import GapWindow
    from sharestate.partition.pending import PendingWrite
    from sharestate.partition.writing import Writer
    from sharestate.values.config import ShareConfig
    from sharestate.values.keys import SharePartitionKey
    from sharestate.values.profiles import Profile
    from sharestate.values.transitions import Cause


@define(kw_only=True, eq=False)
class Ledger:
    """The state of one share partition at one leader."""

    key: SharePartitionKey
    """Which share partition."""

    leader_epoch: int
    """The epoch of the leader; never changes."""

    profile: Profile
    """Whose rules it follows; never changes."""

    config: ShareConfig
    """The group's settings that are in force."""

    split_limit: int
    """The largest batch that is split. [records]"""

    lifecycle: Lifecycle = Lifecycle.EMPTY
    """How far it has come."""

    is_read_pending: bool = False
    """Whether the persisted state was asked for and has not come."""

    state_epoch: int = 0
    """The epoch that was read with the state."""

    start_offset: int = 0
    """The SPSO: the first offset that is still in flight."""

    end_offset: int = 0
    """The SPEO: the last offset that was ever acquired; the next one to fetch if nothing is cached."""

    delivery_complete_count: int = 0
    """How many cached records at or above the SPSO are terminal. [records]"""

    find_next: bool = False
    """Whether something cached may be acquirable, so that the next fetch has to look for it."""

    gap_window: GapWindow | None = None
    """Where gaps between batches may hold records."""

    in_flight: InFlight = field(factory=InFlight)
    """The cached batches."""

    locks: Locks = field(factory=Locks)
    """The acquisition locks."""

    writes: dict[int, PendingWrite | None] = field(factory=dict)
    """What each unanswered write carries, by its number; None for one whose change is final, whatever its outcome."""

    next_write: int = 0
    """The number of the next write."""

    writer: Writer = Factory(lambda ledger: writer_for(ledger.profile.write_policy), takes_self=True)
    """What forms the writes."""

    chronicle: Chronicle | None = None
    """What the running command has done, if somebody wants to know; not part of the state."""

    now_ms: int = 0
    """The last instant that a command was told of. [ms]"""

    @property
    def in_flight_count(self) -> int:
        """How many offsets lie from the SPSO to the SPEO, gaps and terminal records included. [offsets]"""
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    @property
    def lock_deadline_ms(self) -> int:
        """The last instant of a lock that is taken now; one that would outlast time never lapses. [ms]"""
        return min(self.now_ms + self.config.record_lock_duration_ms, MAX_INT64)

    def recast(  # noqa: PLR0913 - a range of a batch, and what becomes of it
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        become: Mapping[Cell, Cell],
        causes: Callable[[Cell], Cause],
        write: int | None = None,
    ) -> None:
        """Put other cells in place of those of a range within *batch*, and tell of it."""
        if self.chronicle is not None:
            self.chronicle.tell_cells(batch, first_offset, last_offset, become, causes, write)
        batch.recast(first_offset, last_offset, become)
