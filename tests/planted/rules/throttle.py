"""Records that keep failing are delivered like any others."""

from __future__ import annotations

from sharestate.partition import throttling
from tests.planted.putting import put

NEVER = 2**31


def plant() -> None:
    """Put the old rule back."""
    put(throttling, "_LEAST_THRESHOLD", NEVER)
    put(throttling, "_LEAST_LIMIT", NEVER)
