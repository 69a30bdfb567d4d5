"""The rows that a snapshot is made of: plain tuples, which refer to each other by number."""

from __future__ import annotations

from typing import NamedTuple

from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch


class CellRow(NamedTuple):
    """What is true of some records; rows are referred to by their position."""

    state: RecordState
    """The state; that of after the change while a write is in flight."""

    delivery_count: int
    """How often they have been delivered. [deliveries]"""

    member_id: str
    """Who holds them; empty for nobody."""

    lock: int | None
    """The creation number of their acquisition lock."""

    write: int | None
    """The number of the write in flight that carries their last change."""

    before: int | None
    """The row that they go back to if that write fails; None if they were archived meanwhile."""

    has_fired: bool
    """Whether the lock ran out during the write in flight."""


class RunRow(NamedTuple):
    """Neighbouring records that share a cell."""

    size: int
    """How many; 1 for a whole batch. [cells]"""

    cell: int
    """The position of their cell's row."""


class BatchRow(NamedTuple):
    """An in-flight batch."""

    first_offset: int
    """Its first offset."""

    last_offset: int
    """Its last offset, included."""

    is_split: bool
    """Whether it is kept record by record."""

    runs: tuple[RunRow, ...]
    """Its cells, in the order of their offsets."""


class LockRow(NamedTuple):
    """An acquisition lock."""

    creation: int
    """Its number: locks with equal deadlines lapse in this order."""

    deadline_ms: int
    """The last instant at which it holds. [ms]"""


class RangeRow(NamedTuple):
    """A range of a batch that a write carries, perhaps with others between."""

    first_offset: int
    """The first offset."""

    last_offset: int
    """The last offset, included."""


class WriteRow(NamedTuple):
    """A write that was not answered yet."""

    number: int
    """Its number."""

    delivery_count_limit: int | None
    """The limit in force as its change began; None if the change is final, whatever the outcome. [deliveries]"""

    ranges: tuple[RangeRow, ...]
    """The records that wait for it."""


class KipWriteRow(NamedTuple):
    """What the KIP's write policy remembers of an unanswered write."""

    number: int
    """The write's number."""

    start_offset: int
    """Its start offset; -1 if it leaves the persisted one as it is."""

    end_offset: int
    """Once it is confirmed, what it says lies before this offset."""

    lapsed: tuple[StateBatch, ...]
    """What the records were of which it says that their locks ran out, in ascending order."""


class KipMemoryRow(NamedTuple):
    """What the KIP's write policy remembers."""

    stored_start: int
    """The start offset that is persisted for sure; -1 if none is."""

    durable_end: int
    """Nothing at or after this offset is persisted for sure."""

    unanswered: tuple[KipWriteRow, ...]
    """The writes that were not answered yet, by number."""
