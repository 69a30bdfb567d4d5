"""
What happened to which records during a command, told only if somebody asked for it.

The commands tell what they put in the place of what; a change that was withdrawn is never told.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sharestate.partition.transitions import Input
from sharestate.values.records import RecordState
from sharestate.values.transitions import Cause, Transition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.partition.batch import Batch
    from sharestate.partition.cells import Cell

_CAUSES: Final[Mapping[Input, Cause]] = MappingProxyType(
    {
        Input.ACQUIRE: Cause.ACQUIRED,
        Input.GAP: Cause.GAP,
        Input.ACCEPT: Cause.ACCEPTED,
        Input.RELEASE: Cause.RELEASED,
        Input.REJECT: Cause.REJECTED,
        Input.RENEW: Cause.RENEWED,
        Input.LAPSE: Cause.LAPSED,
        Input.SESSION_CLOSE: Cause.SESSION_CLOSED,
        Input.BELOW_START: Cause.BELOW_LOG_START,
        Input.COMPACTED_AWAY: Cause.COMPACTED_AWAY,
        Input.ABORTED: Cause.ABORTED,
    }
)
_MAY_OFFER_AGAIN: Final = frozenset({Input.RELEASE, Input.LAPSE, Input.SESSION_CLOSE})


def cause_of(input_: Input, after: Cell) -> Cause:
    """Return why a record is *after* that *input_* has happened to it."""
    if input_ in _MAY_OFFER_AGAIN and after.state is RecordState.ARCHIVED:
        return Cause.ARCHIVED_AT_LIMIT
    return _CAUSES[input_]


def itself(cells: Iterable[Cell]) -> Mapping[Cell, Cell]:
    """Return what ``tell_cells`` takes for *cells* that are in place already."""
    return {cell: cell for cell in cells}


class Chronicle:
    """The transitions of the command that runs."""

    __slots__ = ("_transitions", "at_ms")

    def __init__(self) -> None:
        """Begin with nothing to tell."""
        self._transitions: list[Transition] = []
        self.at_ms = 0
        """The last instant that the share partition was told of. [ms]"""

    def take(self) -> tuple[Transition, ...]:
        """Return what happened, and begin again."""
        transitions = tuple(self._transitions)
        self._transitions.clear()
        return transitions

    def tell(self, first_offset: int, last_offset: int, cell: Cell, cause: Cause, write: int | None = None) -> None:
        """Tell that a range has become *cell*."""
        self._transitions.append(
            Transition(
                first_offset,
                last_offset,
                cause,
                cell.state,
                cell.delivery_count,
                cell.member_id,
                cell.lock_deadline_ms,
                cell.is_ongoing,
                self.at_ms,
                write,
            )
        )

    def tell_cells(  # noqa: PLR0913 - a range of a batch, and what to tell of it
        self,
        batch: Batch,
        first_offset: int,
        last_offset: int,
        become: Mapping[Cell, Cell],
        causes: Callable[[Cell], Cause],
        write: int | None = None,
    ) -> None:
        """
        Tell of each run of a range within *batch* whose cell *become* names what it has become, and why.

        Neighbours of which the same is told are one run.
        """
        before = len(self._transitions)
        for first, last, cell in batch.runs(first_offset, last_offset):
            after = become.get(cell)
            if after is not None:
                self.tell(first, last, after, causes(after), write)
                self._merge_last(before)

    def _merge_last(self, before: int) -> None:
        """Merge the last transition into the one before it, if that is not one of the first *before* ones."""
        if len(self._transitions) - before > 1:
            (first, reached, *previous), (begin, _, *told) = self._transitions[-2:]
            if reached + 1 == begin and previous == told:
                self._transitions[-2:] = [self._transitions[-1]._replace(first_offset=first)]

    def tell_all(self, batch: Batch, cause: Cause) -> None:
        """Tell the same of every record of *batch* as it stands."""
        self.tell_cells(batch, batch.first_offset, batch.last_offset, itself(batch.cells), lambda _: cause)
