"""The writes of leaders that fail over: what the success of each makes durable, and what may become of it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from sharestate.partition.record_machine import TERMINAL
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sharestate.values.effects import Transition
    from sharestate.values.requests import WriteShareGroupState


class SentWrite(NamedTuple):
    """
    A pending write, and what its success makes durable.

    Attributes:
        write: The write.
        terminal: The records that it makes terminal. [offsets]
        counted: The delivery counts of the records that it makes AVAILABLE, by offset.
    """

    write: WriteShareGroupState
    terminal: frozenset[int]
    counted: Mapping[int, int]

    @classmethod
    def of(cls, write: WriteShareGroupState, transitions: Iterable[Transition]) -> Self:
        """Return a write of a command, which had these *transitions*."""
        terminal: set[int] = set()
        counted: dict[int, int] = {}
        for change in transitions:
            if change.write == write.number:
                if change.state in TERMINAL:
                    terminal.update(offsets_of(change))
                elif change.state is RecordState.AVAILABLE:
                    counted.update(dict.fromkeys(offsets_of(change), change.delivery_count))
        return cls(write, frozenset(terminal), counted)


class WriteDelivery(Enum):
    """When a write may reach the persister. One of an earlier leader may reach it at any time, and is fenced."""

    IN_ORDER = "after those before it"
    OVERTAKING = "at any time until the leader has an answer"
    LATE = "at any time, and twice"


class WriteOutcome(NamedTuple):
    """
    What becomes of a pending write.

    Attributes:
        is_applied: Whether the persister applies it now.
        is_confirmed: Whether it is confirmed to the leader; else it has failed.
        is_late: Whether it comes once more, later.
    """

    is_applied: bool
    is_confirmed: bool
    is_late: bool


OUTCOMES: Final = (
    WriteOutcome(is_applied=True, is_confirmed=True, is_late=False),
    WriteOutcome(is_applied=True, is_confirmed=True, is_late=True),
    WriteOutcome(is_applied=False, is_confirmed=False, is_late=False),
    WriteOutcome(is_applied=False, is_confirmed=False, is_late=True),
    WriteOutcome(is_applied=True, is_confirmed=False, is_late=False),
    WriteOutcome(is_applied=True, is_confirmed=True, is_late=False),
)
"""What may become of a write: that it is applied and confirmed, and no more, is twice as likely as anything else."""


def offsets_of(change: Transition) -> range:
    """Return the offsets of *change*."""
    return range(change.first_offset, change.last_offset + 1)
