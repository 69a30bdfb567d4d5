"""
Spec 4.4: what the previous leader may have fetched and never persisted.

Between batches that were read from the persister there may be records that somebody has to fetch again. The gap window
says from where on, as long as nothing beyond the batches that were read has been acquired.

Source:
    SharePartition.GapWindow (Kafka 4.3.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger


class GapWindow(NamedTuple):
    """The offsets in which gaps between batches may hold records."""

    first_offset: int
    """Gaps from here on are to be fetched."""

    last_offset: int
    """The SPEO as the state was read; the window is active while the SPEO stays there."""


def active_window(ledger: Ledger) -> GapWindow | None:
    """Return the gap window if it is active."""
    window = ledger.gap_window
    return window if window is not None and window.last_offset == ledger.end_offset else None


def shrink_window(ledger: Ledger, offset: int) -> None:
    """Let the gap window begin at *offset*, or end it if that is past it or something beyond it was acquired."""
    if ledger.gap_window is not None:
        window = active_window(ledger)
        is_over = window is None or offset > window.last_offset
        ledger.gap_window = None if is_over else ledger.gap_window._replace(first_offset=offset)
