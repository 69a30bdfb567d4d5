"""A new leader does not hand over the records that it reads as ARCHIVING."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.partition import initialize
from tests.planted.putting import put

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.values.dead_letters import DeadLetter
    from sharestate.values.requests import StateBatch

RELEASE: Final = "4.4.0"


def resumed(batches: Iterable[StateBatch], delivery_count_limit: int) -> tuple[DeadLetter, ...]:  # noqa: ARG001 - as it is
    """Return nothing."""
    return ()


def plant() -> None:
    """Leave out the resumption."""
    put(initialize, "resumed", resumed)
