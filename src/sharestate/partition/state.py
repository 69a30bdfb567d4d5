"""
The mutable state of one share partition, and the only methods through which its records, offsets and counts change.

Cells change by ``replace_cells``, ``put_cell(s)``, ``put_pending`` and ``put_each``, new ones come by ``add_batch``;
the SPSO changes by ``move_start``, the SPEO by ``extend_end``, both by ``pass_all``, the delivery complete count by
``count_completed``, ``put_pending`` and where the SPSO moves, ``find_next`` by ``look_again`` and ``found_none``, and
whenever a cell becomes acquirable; the gap window begins by ``begin_gap_window`` and shrinks by ``shrink_gap_window``
and ``lift_gap_window``. ``return_to`` takes moves of offsets back.

Source:
    The fields of SharePartition (Kafka 4.4.0).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from sharestate.errors import SplitLimitError
from sharestate.partition.batches import Batch, InFlight, replaced
from sharestate.partition.cells import Cell
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.locks import Locks
from sharestate.partition.record_machine import TERMINAL, Input
from sharestate.partition.recorder import TransitionRecorder
from sharestate.values.checks import MAX_INT64
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetter, DeadLetterRequest
from sharestate.values.effects import Cause
from sharestate.values.profiles import Profile
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import PersistedState, StateBatch
from sharestate.values.snapshot import KipMemoryRow


class GapWindow(NamedTuple):
    """
    The offsets that the previous leader may have fetched and never persisted (rule 4.4).

    Between batches that were read from the persister there may be records that have to be fetched again, as long as
    nothing beyond those batches has been acquired.

    Attributes:
        first_offset: Gaps from here on have to be fetched.
        last_offset: The SPEO as the state was read; the window is active while the SPEO stays there.

    Source:
        SharePartition.GapWindow (Kafka 4.3.1).
    """

    first_offset: int
    last_offset: int


# One is made for every write: neither named tuples nor frozen, which would take twice and thrice as long to make.


class PendingWrite:
    """A write without an answer whose outcome decides what becomes of the records that it carries."""

    __slots__ = ("dead_letters", "delivery_count_limit", "number", "ranges")

    def __init__(
        self,
        number: int,
        delivery_count_limit: int,
        ranges: tuple[tuple[Batch, int, int], ...],
        dead_letters: tuple[DeadLetter, ...] = (),
    ) -> None:
        """Make a write that waits for its answer."""
        self.number: Final = number
        """The number of the request."""
        self.delivery_count_limit: Final = delivery_count_limit
        """The limit in force as the change was made; a roll-back still asks for it. [deliveries]"""
        self.ranges: Final = ranges
        """The ranges (batch, first offset, last offset) that hold every record of the change, and perhaps others."""
        self.dead_letters: Final = dead_letters
        """The records that go to the dead-letter queue once the write has succeeded."""


class FinalWrite:
    """A write without an answer whose outcome decides nothing."""

    __slots__ = ("dead_letters", "wakes")

    def __init__(self, dead_letters: tuple[DeadLetter, ...] = (), wakes: bool = False) -> None:  # noqa: FBT001, FBT002
        """Make a write that waits for its answer."""
        self.dead_letters: Final = dead_letters
        """The records that go to the dead-letter queue once the write is answered."""
        self.wakes: Final = wakes
        """True if its answer wakes fetches when the SPSO advances; commands that issue the others have woken them."""


WriteContent: TypeAlias = tuple[int, Sequence[StateBatch]]
"""
The contents of one write: the start offset, -1 to leave the persisted one as it is; and the records that have changed,
with those that have to be known with them.
"""


class Writer(ABC):
    """A write policy at work in one share partition: it forms the writes, and takes note of their outcomes."""

    # No protocol, which compiled code would look up by name.

    @abstractmethod
    def on_initialized(self, state: PartitionState, persisted: PersistedState) -> WriteContent | None:
        """Take note of the persisted state; return the write that is needed because of it."""

    @abstractmethod
    def is_written(self, state: PartitionState, last_offset: int) -> bool:
        """Return whether a change of records up to *last_offset* has to be persisted."""

    @abstractmethod
    def content(self, state: PartitionState, entries: Sequence[StateBatch], *, is_final: bool) -> WriteContent:
        """
        Return the next write, which carries *entries*, some of which have to be persisted.

        *is_final* says that locks have expired: the records have changed whatever becomes of the write.
        """

    @abstractmethod
    def on_unwritten(self, first_offset: int, last_offset: int) -> None:
        """Take note that records of a range have changed, or were cached, and no write says so."""

    @abstractmethod
    def on_confirmed(self, number: int) -> None:
        """Take note that a write has succeeded."""

    @abstractmethod
    def on_failed(self, number: int) -> None:
        """Take note that a write has failed; it may have been applied all the same."""

    @abstractmethod
    def withdraw(self, number: int) -> None:
        """Forget write *number*, which is not issued; do nothing if there is none."""

    @abstractmethod
    def snapshot(self) -> KipMemoryRow | None:
        """Return the policy's memory, for a snapshot."""


class Position(NamedTuple):
    """The offsets and batches of a share partition at one instant, to return to."""

    start_offset: int
    end_offset: int
    delivery_complete_count: int
    gap_window: GapWindow | None
    batches: tuple[Batch, ...]


@dataclass(kw_only=True, eq=False, slots=True)
class PartitionState:
    """The mutable state of one share partition (rule 1)."""

    key: SharePartitionKey
    """The share partition; never changes."""

    leader_epoch: int
    """The epoch of the leader; never changes."""

    profile: Profile
    """The rules that it follows; never change."""

    writer: Writer
    """The profile's write policy at work, which forms the writes."""

    config: ShareConfig
    """The group's settings in force."""

    split_limit: int
    """The largest batch that is split; never changes. [records]"""

    lifecycle: Lifecycle = Lifecycle.EMPTY
    """The lifecycle state."""

    is_read_pending: bool = False
    """True if the persisted state was requested and has not been read."""

    state_epoch: int = 0
    """The epoch that was read with the persisted state."""

    start_offset: int = 0
    """The SPSO: the first offset that is still in flight."""

    end_offset: int = 0
    """The SPEO: the last offset that was ever acquired; the next one to fetch if nothing is cached."""

    delivery_complete_count: int = 0  # rule 20.4
    """The number of cached terminal records at or above the SPSO. [records]"""

    find_next: bool = False
    """True if a cached record may be acquirable, so that the next fetch has to look for it."""

    acquirable_from: int = 0
    """No cached record below this offset is acquirable: a bound that only spares looking, and no part of a snapshot."""

    most_delivered: int = 0
    """No acquirable record has been delivered more often: a bound like the one before it. [deliveries]"""

    gap_window: GapWindow | None = None
    """The gap window, active or not."""

    in_flight: InFlight = field(init=False)
    """The in-flight batches."""

    locks: Locks = field(default_factory=Locks)
    """The acquisition locks."""

    writes: dict[int, PendingWrite | FinalWrite] = field(default_factory=dict)
    """The writes without an answer, by number."""

    next_write: int = 0
    """The number of the next write."""

    dead_letters: dict[int, DeadLetter] = field(default_factory=dict)  # rule 21.3
    """The records that the dead-letter queue was given and has not answered, by number."""

    next_dead_letter: int = 0
    """The number of the next request to the dead-letter queue."""

    recorder: TransitionRecorder | None = None
    """Records the transitions of the running command, if the user has asked for them; no part of the state."""

    now_ms: int = 0
    """The last ``now_ms`` of a command. [ms]"""

    def __post_init__(self) -> None:
        """Begin without batches."""
        self.in_flight = InFlight(self.split_limit)

    # ---- cells

    def add_batch(self, batch: Batch) -> None:
        """Cache a new batch, of which available cells are the last ones; ``record`` it after that."""
        self.in_flight.add(batch)
        if batch.first_offset < self.end_offset:
            self.writer.on_unwritten(batch.first_offset, batch.last_offset)
        last = batch.cells[-1] if batch.is_split else batch.cell
        if last.is_acquirable:
            self._find_from(batch.first_offset, last)

    def replace_cells(  # noqa: PLR0913 - a range of a batch, and what replaces what
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        replacements: Mapping[Cell, Cell],
        why: Cause | Input,
        write: int | None = None,
    ) -> None:
        """Replace each cell of a range within *batch* that *replacements* has, and record it."""
        if self.recorder is not None:
            self.recorder.record_replaced(batch, first_offset, last_offset, replacements, why, write)
        if not batch.is_split:
            batch.cell = replacements.get(batch.cell, batch.cell)
        elif first_offset == last_offset:
            index = first_offset - batch.first_offset
            cell = batch.cells[index]
            batch.cells[index] = replacements.get(cell, cell)
        else:
            part = batch.part(first_offset, last_offset)
            start = first_offset - batch.first_offset
            batch.cells[start : start + len(part)] = replaced(part, replacements)
        for cell in replacements.values():
            if cell.is_acquirable:
                self._find_from(first_offset if batch.is_split else batch.first_offset, cell)

    def put_cell(self, batch: Batch, first_offset: int, cell: Cell) -> None:
        """Put *cell* in the place of that of one record of a split batch, or of a whole one; ``record`` it then."""
        if batch.is_split:
            batch.cells[first_offset - batch.first_offset] = cell
        else:
            batch.cell = cell
        if cell.is_acquirable:
            self._find_from(first_offset, cell)

    def put_pending(self, batch: Batch, first_offset: int, cell: Cell, records: int) -> None:
        """Put *cell*, which has a pending transition, as ``put_cell`` does; if it is terminal, *records* more count."""
        # rule 20.4
        if batch.is_split:
            batch.cells[first_offset - batch.first_offset] = cell
        else:
            batch.cell = cell
        if cell.state in TERMINAL:
            self.delivery_complete_count += records

    def put_cells(self, batch: Batch, first_offset: int, cells: Sequence[Cell]) -> None:
        """Put *cells*, none of them acquirable, in the place of as many of *batch*; ``record`` them after that."""
        if batch.is_split:
            start = first_offset - batch.first_offset
            batch.cells[start : start + len(cells)] = cells
        else:
            (batch.cell,) = cells

    def put_each(self, batch: Batch, offsets: Sequence[int], cells: Sequence[Cell]) -> None:
        """Put one of *cells* in the place of each of *offsets* of *batch*, as ``put_cells`` does."""
        base, own = batch.first_offset, batch.cells
        if isinstance(offsets, range):
            own[offsets[0] - base : offsets[-1] - base + 1 : offsets.step] = cells
        else:
            for offset, cell in zip(offsets, cells, strict=True):
                own[offset - base] = cell

    def record(
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        why: Mapping[Cell, Cause | Input],
        write: int | None = None,
    ) -> None:
        """Record the cells of a range within *batch* that *why* has, which are in place already."""
        if self.recorder is not None:
            self.recorder.record_in_place(batch, first_offset, last_offset, why, write)

    def _find_from(self, offset: int, cell: Cell) -> None:
        """Have the next fetch look for acquirable records, such as those that have *cell*, from *offset* on."""
        self.look_again()
        self.acquirable_from = min(self.acquirable_from, offset)
        self.most_delivered = max(self.most_delivered, cell.delivery_count)

    def look_again(self) -> None:
        """Have the next fetch look for acquirable records."""
        self.find_next = True

    def found_none(self) -> None:
        """Note that no cached record is acquirable: the next fetch need not look."""
        self.find_next = False

    def taken(self, first_offset: int, last_offset: int) -> None:
        """Note that no record of a range is acquirable any more."""
        if first_offset <= self.acquirable_from <= last_offset:
            self.acquirable_from = last_offset + 1

    def release_lock(self, cell: Cell, references: int) -> None:
        """Take *references* to *cell* from its lock, if it has one that has not expired."""
        if cell.lock is not None and not cell.lock_expired:
            self.locks.release(cell.lock, references)

    def hand_over(self, dead_letters: Iterable[DeadLetter]) -> tuple[DeadLetterRequest, ...]:
        """Number *dead_letters*, and keep them until the dead-letter queue answers (rule 21.3)."""
        requests = []
        for letter in dead_letters:
            requests.append(DeadLetterRequest(self.key, self.next_dead_letter, *letter))
            self.dead_letters[self.next_dead_letter] = letter
            self.next_dead_letter += 1
        return tuple(requests)

    def split_refusal(self, first_offset: int, last_offset: int) -> SplitLimitError:
        """Return the error for a batch that would have to be split and is too large (rule 24.5)."""
        message = f"the batch {first_offset}-{last_offset} is too large to be split"
        return SplitLimitError(message, first_offset, last_offset, self.split_limit)

    # ---- offsets and the complete count

    def move_start(self, offset: int, passed: int = 0) -> None:
        """Move the SPSO to *offset*; *passed* terminal records are below it now and no longer count. [records]"""
        # rule 20.4
        self.start_offset = offset
        self.delivery_complete_count -= passed

    def pass_all(self, offset: int) -> None:
        """Move the SPSO and the SPEO to *offset*, past all that is cached: the next one to fetch, and none counts."""
        # rules 1 and 20.4
        self.start_offset = self.end_offset = offset
        self.delivery_complete_count = 0

    def extend_end(self, offset: int) -> None:
        """Move the SPEO to *offset*, unless it is beyond that already."""
        if offset > self.end_offset:  # noqa: PLR1730 - a max takes as long as four calls
            self.end_offset = offset

    def count_completed(self, records: int) -> None:
        """Count *records* more terminal records; fewer if it is negative. [records]"""
        # rule 20.4
        self.delivery_complete_count += records

    def not_below_start(self, first_offset: int, last_offset: int) -> int:
        """Return how many offsets of a range lie at or above the SPSO: only those count as complete. [offsets]"""
        # rule 20.4
        if first_offset >= self.start_offset:
            return last_offset - first_offset + 1
        return max(0, last_offset - self.start_offset + 1)

    @property
    def in_flight_count(self) -> int:
        """The number of offsets from the SPSO to the SPEO, gaps and terminal records included. [offsets]"""
        # rule 6
        return 0 if self.in_flight.is_empty() else self.end_offset - self.start_offset + 1

    @property
    def lock_deadline_ms(self) -> int:
        """The deadline of a lock that is taken now; beyond 64 bits it never expires. [ms]"""
        # rule 1.6
        deadline_ms = self.now_ms + self.config.record_lock_duration_ms
        return MAX_INT64 if deadline_ms > MAX_INT64 else deadline_ms  # noqa: FURB136 - a min takes as long as four calls

    def position(self) -> Position:
        """Return what ``return_to`` takes; linear in the batches."""
        offsets = (self.start_offset, self.end_offset, self.delivery_complete_count, self.gap_window)
        return Position(*offsets, tuple(self.in_flight))

    def return_to(self, position: Position) -> None:
        """Take back moves of the offsets and the removal of batches; no cell has changed since *position*."""
        self.start_offset, self.end_offset, self.delivery_complete_count, self.gap_window, batches = position
        for batch in batches[: len(batches) - len(self.in_flight)]:
            self.in_flight.add(batch)
        if self.recorder is not None:
            self.recorder.take()

    # ---- the gap window

    @property
    def active_gap_window(self) -> GapWindow | None:
        """The gap window while it is active, else None (rule 4.4)."""
        window = self.gap_window
        return window if window is not None and window.last_offset == self.end_offset else None

    def begin_gap_window(self, offset: int) -> None:
        """Begin a gap window at *offset*, up to the SPEO as the state was read (rule 4.4)."""
        self.gap_window = GapWindow(offset, self.end_offset)

    def shrink_gap_window(self, offset: int) -> None:
        """Begin the gap window at *offset*; end it if that is past it, or if something beyond it was acquired."""
        # rule 4.4
        if self.gap_window is not None:
            window = self.active_gap_window
            is_over = window is None or offset > window.last_offset
            self.gap_window = None if is_over else self.gap_window._replace(first_offset=offset)

    def lift_gap_window(self, offset: int) -> None:
        """Begin the gap window at *offset* at the earliest, where the SPSO is or will be; past its end it is over."""
        # rule 24.1
        window = self.active_gap_window
        if window is not None:
            self.shrink_gap_window(max(window.first_offset, offset))
