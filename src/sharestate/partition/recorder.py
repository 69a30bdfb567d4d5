"""
The transitions of the running command, recorded if the user has asked for them.

Commands record what they put in the place of what, as they do it; a change that is withdrawn is never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

from sharestate.partition.batches import Batch, is_uniform
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import Input
from sharestate.values.effects import Cause, Transition, TransitionFields, TransitionRuns, Transitions
from sharestate.values.named_tuples import new_tuple
from sharestate.values.records import RecordState

_CAUSES: Final[Mapping[Input, Cause]] = MappingProxyType(
    {
        Input.ACQUIRE: Cause.ACQUIRED,
        Input.GAP: Cause.GAP,
        Input.ACCEPT: Cause.ACCEPTED,
        Input.RELEASE: Cause.RELEASED,
        Input.REJECT: Cause.REJECTED,
        Input.RENEW: Cause.RENEWED,
        Input.LOCK_TIMEOUT: Cause.LOCK_EXPIRED,
        Input.SESSION_CLOSE: Cause.SESSION_CLOSED,
        Input.BELOW_START: Cause.BELOW_LOG_START,
        Input.COMPACTED_AWAY: Cause.COMPACTED_AWAY,
        Input.ABORTED: Cause.ABORTED,
        Input.DEAD_LETTERED: Cause.DEAD_LETTERED,
    }
)
_MAKES_AVAILABLE: Final = frozenset({Input.RELEASE, Input.LOCK_TIMEOUT, Input.SESSION_CLOSE})


def cause_of(input_: Input, after: Cell) -> Cause:
    """Return the cause of a record's being *after*, to which *input_* has led."""
    if input_ in _MAKES_AVAILABLE and after.state is not RecordState.AVAILABLE:
        return Cause.ARCHIVED_AT_LIMIT
    return _CAUSES[input_]


class TransitionRecorder:
    """The transitions of the command that runs."""

    __slots__ = ("_is_made", "_parts", "at_ms")

    def __init__(self) -> None:
        """Begin without transitions."""
        self._parts: list[Iterable[Transition]] = []
        self._is_made = True
        """Whether each part is one transition, which is made already."""
        self.at_ms = 0
        """The last ``now_ms`` of a command. [ms]"""

    def take(self) -> Sequence[Transition]:
        """Return the transitions, and begin again; of records that differ they are made when one is looked at."""
        parts, self._parts = self._parts, []
        if self._is_made:
            return tuple(chain.from_iterable(parts))
        self._is_made = True
        return Transitions(parts)

    def record_one(
        self, first_offset: int, last_offset: int, cell: Cell, why: Cause | Input, write: int | None
    ) -> None:
        """Record that all records of a range have *cell*."""
        fields = (first_offset, last_offset, *self._fields(cell, why, write))
        self._parts.append((new_tuple(Transition, fields),))

    def record_replaced(  # noqa: PLR0913 - a range of a batch, and what to record of it
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        replacements: Mapping[Cell, Cell],
        why: Cause | Input,
        write: int | None = None,
    ) -> None:
        """Record each run of a range within *batch* whose cell is about to be replaced."""
        fields = {cell: self._fields(after, why, write) for cell, after in replacements.items()}
        self._record(batch, first_offset, last_offset, fields)

    def record_in_place(
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        why: Mapping[Cell, Cause | Input],
        write: int | None = None,
    ) -> None:
        """Record each run of a range within *batch* whose cell *why* has, as it stands."""
        # A command may have many ranges, whose cells all differ: each costs what it has of them.
        if len(why) > 1 and (not batch.is_split or last_offset - first_offset + 1 < len(why)):
            why = {cell: why[cell] for cell in batch.part(first_offset, last_offset) if cell in why}
        fields = {cell: self._fields(cell, cause, write) for cell, cause in why.items()}
        self._record(batch, first_offset, last_offset, fields)

    def record_all(self, batch: Batch, cause: Cause) -> None:
        """Record all of *batch* as it stands."""
        self.record_in_place(batch, batch.first_offset, batch.last_offset, dict.fromkeys(batch.distinct(), cause))

    def _fields(self, cell: Cell, why: Cause | Input, write: int | None) -> TransitionFields:
        return (
            cause_of(why, cell) if isinstance(why, Input) else why,
            cell.state,
            cell.delivery_count,
            cell.member_id,
            cell.lock_deadline_ms,
            cell.write is not None,
            self.at_ms,
            write,
        )

    def _record(
        self, batch: Batch, first_offset: int, last_offset: int, fields: Mapping[Cell, TransitionFields]
    ) -> None:
        """Record the runs of a range within *batch* of which *fields* says the same; nothing of other cells."""
        cells = batch.part(first_offset, last_offset)
        if not batch.is_split or is_uniform(cells):
            if cells[0] in fields:
                self._parts.append((new_tuple(Transition, (first_offset, last_offset, *fields[cells[0]])),))
        elif not fields.keys().isdisjoint(cells):
            self._parts.append(TransitionRuns(first_offset, cells, fields))
            self._is_made = False
