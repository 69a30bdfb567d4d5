"""B9a: the advance may move the start offset back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import advance
from tests.oracle.planting import put

if TYPE_CHECKING:
    from sharestate.partition.advance import Passage
    from sharestate.partition.ledger import Ledger

_start_past = advance._start_past  # noqa: SLF001 - what is planted


def start_past(ledger: Ledger, passage: Passage) -> int:
    """Return where the start offset is once *passage* has been passed."""
    start = ledger.start_offset
    ledger.start_offset = 0
    try:
        return _start_past(ledger, passage)
    finally:
        ledger.start_offset = start


def plant() -> None:
    """Put the old rule back."""
    put(advance, "_start_past", start_past)
