"""What is drawn of a share partition, or of what is stored of it: runs of records, and where they start and end."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as repr_
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import frozen

from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.partition import SharePartition
from sharestate.partition.views import PartitionView
from sharestate.persister import StoredState
from sharestate.values.checks import refuse
from sharestate.values.records import RecordState
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState
from sharestate.values.snapshot import Snapshot

Shown: TypeAlias = PartitionView | Snapshot | PersistedState | StoredState
"""What can be drawn: a share partition or its snapshot, or what is stored of it, which has no SPEO."""

HALF: Final = 0.5
"""A record reaches this far to both sides of its offset. [offsets]"""


_LOADED: Final = frozenset({Lifecycle.ACTIVE, Lifecycle.FENCED})
"""Where a share partition has records, and offsets that say something."""


class Run(NamedTuple):
    """Neighbouring records of which the same is true."""

    first_offset: int
    """The first offset."""

    last_offset: int
    """The last offset, included."""

    state: RecordState
    """Their state; that of after the change while a write is in flight."""

    delivery_count: int
    """How often they have been delivered. [deliveries]"""

    member_id: str = ""
    """Who holds them; empty for nobody."""

    is_ongoing: bool = False
    """Whether a write is in flight that carries their last change."""

    has_passed: bool = False
    """Whether they lie below the SPSO."""

    @property
    def size(self) -> int:
        """How many they are. [records]"""
        return self.last_offset - self.first_offset + 1


class Mark(NamedTuple):
    """A place between two records that has a name."""

    name: str
    """SPSO or SPEO."""

    offset: int
    """The offset that bears the name."""

    at: float
    """Where it is on the axis."""


@frozen(kw_only=True)
class OffsetLine:
    """What is drawn."""

    runs: tuple[Run, ...]
    """The runs in ascending order; what is in none of them is a gap."""

    marks: tuple[Mark, ...]
    """The SPSO before the SPEO, as far as they are known."""

    @property
    def offsets(self) -> tuple[int, ...]:
        """Every offset at which something begins or ends, in no order."""
        return (*(offset for run in self.runs for offset in run[:2]), *(mark.offset for mark in self.marks))


def line_of(shown: Shown) -> OffsetLine:
    """
    Return what is drawn of *shown*.

    Raises:
        MalformedInputError: It cannot be drawn.
    """
    for kind, read in _KINDS:
        if isinstance(shown, kind):
            return read(shown)
    return refuse(f"expected a share partition, a snapshot or a stored state, got {repr_(shown)}", "shown")


def _of_partition(partition: PartitionView) -> OffsetLine:
    if partition.lifecycle not in _LOADED:
        return OffsetLine(runs=(), marks=())
    start, end = partition.start_offset, partition.end_offset
    runs = tuple(
        Run(*ends, cell.state, cell.delivery_count, cell.member_id, cell.is_ongoing, has_passed=ends[1] < start)
        for batch in partition.batches()
        for first, last, cell in batch.runs
        for ends in _cut(first, last, start)
    )
    is_empty = not runs or runs[-1].has_passed
    marks = (Mark("SPSO", start, start - HALF), Mark("SPEO", end, end - HALF if is_empty else end + HALF))
    return OffsetLine(runs=runs, marks=marks)


def _cut(first: int, last: int, start: int) -> tuple[tuple[int, int], ...]:
    """Cut a range in two where the SPSO *start* lies within it: what is below has passed."""
    return ((first, start - 1), (start, last)) if first < start <= last else ((first, last),)


def _of_stored(state: PersistedState | StoredState) -> OffsetLine:
    runs = tuple(Run(first, last, RecordState(value), count) for first, last, value, count in state.state_batches)
    start = state.start_offset
    marks = () if start == UNINITIALIZED_START_OFFSET else (Mark("SPSO", start, start - HALF),)
    return OffsetLine(runs=runs, marks=marks)


def _of_snapshot(snapshot: Snapshot) -> OffsetLine:
    return _of_partition(SharePartition.restore(snapshot, profile=snapshot.profile))


_KINDS: Final[tuple[tuple[type, Callable[[Any], OffsetLine]], ...]] = (
    (PartitionView, _of_partition),
    (Snapshot, _of_snapshot),
    (PersistedState, _of_stored),
    (StoredState, _of_stored),
)
"""How each kind of thing is read."""
