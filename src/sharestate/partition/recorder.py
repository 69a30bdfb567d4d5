"""
The transitions of the running command, recorded if the user has asked for them.

Commands record what they put in the place of what, as they do it; a change that is withdrawn is never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import Input
from sharestate.values.effects import Cause, Transition
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
        runs = (
            self._transition(first, last, replacements[cell], why, write)
            for first, last, cell in batch.runs(first_offset, last_offset)
            if cell in replacements
        )
        self._transitions += _merged(runs)

    def record_in_place(
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        why: Mapping[Cell, Cause | Input],
        write: int | None = None,
    ) -> None:
        """Record each run of a range within *batch* whose cell *why* has, as it stands."""
        runs = (
            self._transition(first, last, cell, why[cell], write)
            for first, last, cell in batch.runs(first_offset, last_offset)
            if cell in why
        )
        self._transitions += _merged(runs)

    def record_all(self, batch: Batch, cause: Cause) -> None:
        """Record all of *batch* as it stands."""
        self.record_in_place(batch, batch.first_offset, batch.last_offset, dict.fromkeys(batch.distinct(), cause))

    def _transition(
        self, first_offset: int, last_offset: int, cell: Cell, why: Cause | Input, write: int | None
    ) -> Transition:
        return Transition(
            first_offset,
            last_offset,
            cause_of(why, cell) if isinstance(why, Input) else why,
            cell.state,
            cell.delivery_count,
            cell.member_id,
            cell.lock_deadline_ms,
            cell.write is not None,
            self.at_ms,
            write,
        )


def _merged(transitions: Iterable[Transition]) -> list[Transition]:
    """Return *transitions* with neighbors that differ in their offsets alone in one."""
    merged: list[Transition] = []
    for transition in transitions:
        last = merged[-1] if merged else None
        if last is not None and last.last_offset + 1 == transition.first_offset and last[2:] == transition[2:]:
            merged[-1] = last._replace(last_offset=transition.last_offset)
        else:
            merged.append(transition)
    return merged
