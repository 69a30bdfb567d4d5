"""The last entry of a write is the first to go to the dead-letter queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition.state import PartitionState
from tests.planted.putting import put

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.values.dead_letters import DeadLetter, DeadLetterRequest

RELEASE: Final = "4.4.0"

_hand_over = PartitionState.hand_over


def hand_over(self: PartitionState, dead_letters: Iterable[DeadLetter]) -> tuple[DeadLetterRequest, ...]:
    """Number *dead_letters*, the last one first."""
    return _hand_over(self, [*dead_letters][::-1])


def plant() -> None:
    """Leave out the order of the entries."""
    put(PartitionState, "hand_over", hand_over)
