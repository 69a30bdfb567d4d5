"""Runs of records and the offsets beside them: the contents of a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import frozen

from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import SharePartition
from sharestate.persister import StoredState
from sharestate.values.checks import brief_repr, refuse
from sharestate.values.records import RecordState, unknown_state
from sharestate.values.requests import UNINITIALIZED_START_OFFSET, PersistedState
from sharestate.values.snapshot import Snapshot

Shown: TypeAlias = SharePartition | Snapshot | PersistedState | StoredState
"""A share partition, a snapshot of one, or a persisted state, which has no SPEO."""

HALF: Final = 0.5
"""Half the width of a record on the axis. [offsets]"""


_LOADED: Final = frozenset({Lifecycle.ACTIVE, Lifecycle.FENCED})
"""The lifecycle states in which a share partition has records and offsets."""


class Run(NamedTuple):
    """
    Neighboring records that are equal in all that is drawn.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
        state: The state; while a write is pending, the new one.
        delivery_count: The delivery count. [deliveries]
        member_id: The owner, or an empty string.
        has_pending_write: Whether the write of their last transition is pending.
        has_passed: Whether they lie below the SPSO.
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str = ""
    has_pending_write: bool = False
    has_passed: bool = False

    @property
    def size(self) -> int:
        """The number of records. [records]"""
        return self.last_offset - self.first_offset + 1


class Mark(NamedTuple):
    """
    A named position between two records.

    Attributes:
        name: SPSO or SPEO.
        offset: The offset with that name.
        at: The position on the axis.
    """

    name: str
    offset: int
    at: float


@frozen(kw_only=True)
class OffsetLine:
    """
    The contents of a picture.

    Attributes:
        runs: The runs in ascending order; offsets between them are gaps.
        marks: The SPSO before the SPEO, as far as they are known.
    """

    runs: tuple[Run, ...]
    marks: tuple[Mark, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first and last offset of each run, and the offset of each mark, in no order."""
        return (*(offset for run in self.runs for offset in run[:2]), *(mark.offset for mark in self.marks))


def line_of(shown: Shown) -> OffsetLine:
    """
    Return the contents of a picture of *shown*.

    Raises:
        MalformedInputError: *shown* is of another class.
    """
    for kind, read in _KINDS:
        if isinstance(shown, kind):
            return read(shown)
    return refuse(f"expected a share partition, a snapshot or a stored state, got {brief_repr(shown)}", "shown")


def _of_partition(partition: SharePartition) -> OffsetLine:
    if partition.lifecycle not in _LOADED:
        return OffsetLine(runs=(), marks=())
    start, end = partition.start_offset, partition.end_offset
    runs = tuple(
        Run(*ends, run.state, run.delivery_count, run.member_id, run.has_pending_write, has_passed=ends[1] < start)
        for batch in partition.batches()
        for run in batch.runs
        for ends in _cut(run.first_offset, run.last_offset, start)
    )
    is_empty = not runs or runs[-1].has_passed
    marks = (Mark("SPSO", start, start - HALF), Mark("SPEO", end, end - HALF if is_empty else end + HALF))
    return OffsetLine(runs=runs, marks=marks)


def _cut(first: int, last: int, start: int) -> tuple[tuple[int, int], ...]:
    """Cut a range in two at the SPSO *start*, if that lies within it."""
    return ((first, start - 1), (start, last)) if first < start <= last else ((first, last),)


def _of_stored(state: PersistedState | StoredState) -> OffsetLine:
    if (what := unknown_state(state.state_batches)) is not None:
        refuse(what, "state_batches")
    runs = tuple(Run(first, last, RecordState(value), count) for first, last, value, count in state.state_batches)
    start = state.start_offset
    marks = () if start == UNINITIALIZED_START_OFFSET else (Mark("SPSO", start, start - HALF),)
    return OffsetLine(runs=runs, marks=marks)


def _of_snapshot(snapshot: Snapshot) -> OffsetLine:
    return _of_partition(SharePartition.restore(snapshot, profile=snapshot.profile))


_KINDS: Final[tuple[tuple[type, Callable[[Any], OffsetLine]], ...]] = (
    (SharePartition, _of_partition),
    (Snapshot, _of_snapshot),
    (PersistedState, _of_stored),
    (StoredState, _of_stored),
)
"""The function for each class of `Shown`."""
