"""Records that keep failing are delivered like any others."""

from __future__ import annotations

from sharestate.partition import acquire
from tests.planted.putting import put

NEVER = 2**31


def plant() -> None:
    """Put the old rule back."""
    put(acquire, "_LEAST_THRESHOLD", NEVER)
    put(acquire, "_LEAST_LIMIT", NEVER)
