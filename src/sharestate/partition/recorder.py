"""
The transitions of the running command, recorded if the user has asked for them.

Commands record what they put in the place of what, as they do it; a change that is withdrawn is never recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, repeat
from operator import add, is_not
from types import MappingProxyType
from typing import Final, TypeAlias

from sharestate.partition.batches import Batch, is_uniform
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import Input
from sharestate.values.effects import Cause, Transition
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
_Change: TypeAlias = tuple[Cause, RecordState, int, str, int | None, bool, int, int | None]
"""What a transition says beside its range."""

_MAKES_AVAILABLE: Final = frozenset({Input.RELEASE, Input.LOCK_TIMEOUT, Input.SESSION_CLOSE})


def cause_of(input_: Input, after: Cell) -> Cause:
    """Return the cause of a record's being *after*, to which *input_* has led."""
    if input_ in _MAKES_AVAILABLE and after.state is not RecordState.AVAILABLE:
        return Cause.ARCHIVED_AT_LIMIT
    return _CAUSES[input_]


class TransitionRecorder:
    """The transitions of the command that runs."""

    __slots__ = ("_transitions", "at_ms")

    def __init__(self) -> None:
        """Begin without transitions."""
        self._transitions: list[Transition] = []
        self.at_ms = 0
        """The last ``now_ms`` of a command. [ms]"""

    def take(self) -> tuple[Transition, ...]:
        """Return the transitions, and begin again."""
        transitions = tuple(self._transitions)
        self._transitions.clear()
        return transitions

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
        changes = {cell: self._change(after, why, write) for cell, after in replacements.items()}
        self._record(batch, first_offset, last_offset, changes)

    def record_in_place(
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        why: Mapping[Cell, Cause | Input],
        write: int | None = None,
    ) -> None:
        """Record each run of a range within *batch* whose cell *why* has, as it stands."""
        changes = {cell: self._change(cell, cause, write) for cell, cause in why.items()}
        self._record(batch, first_offset, last_offset, changes)

    def record_all(self, batch: Batch, cause: Cause) -> None:
        """Record all of *batch* as it stands."""
        self.record_in_place(batch, batch.first_offset, batch.last_offset, dict.fromkeys(batch.distinct(), cause))

    def _change(self, cell: Cell, why: Cause | Input, write: int | None) -> _Change:
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

    def _record(self, batch: Batch, first_offset: int, last_offset: int, changes: Mapping[Cell, _Change]) -> None:
        """Record the runs of a range within *batch* of which *changes* says the same; nothing of other cells."""
        cells = batch.part(first_offset, last_offset)
        if not batch.is_split or is_uniform(cells):
            if cells[0] in changes:
                self._transitions.append(new_tuple(Transition, (first_offset, last_offset, *changes[cells[0]])))
            return
        # C code goes through them, for neighbors may all differ. Equal changes become one object, and are told by that.
        same = dict(zip(changes.values(), changes.values(), strict=True))
        each = [*map({cell: same[change] for cell, change in changes.items()}.get, cells)]
        ends = [*map(is_not, each, each[1:])]
        firsts = (first_offset, *compress(range(first_offset + 1, last_offset + 1), ends))
        lasts = (*compress(range(first_offset, last_offset), ends), last_offset)
        runs = each[0], *compress(each[1:], ends)
        ranges = compress(zip(firsts, lasts, strict=True), runs)
        self._transitions += map(new_tuple, repeat(Transition), map(add, ranges, filter(None, runs)))
