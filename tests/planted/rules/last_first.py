"""A persisted batch that ends before it begins is taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition import initialize
from tests.planted.putting import put

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from sharestate.values.requests import StateBatch

_refusal = initialize._refusal  # noqa: SLF001 - what is planted


def refusal(batches: Iterable[StateBatch], start: int, legal_states: Container[int]) -> str | None:
    """Return what is wrong with persisted batches, or None."""
    return _refusal([batch for batch in batches if batch.first_offset <= batch.last_offset], start, legal_states)


def plant() -> None:
    """Put the old rule back."""
    put(initialize, "_refusal", refusal)
