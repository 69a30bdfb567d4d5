"""Records that keep failing are delivered like any others."""

from __future__ import annotations

from sharestate.partition import throttle
from tests.oracle.planting import put

NEVER = 2**31


def plant() -> None:
    """Put the old rule back."""
    put(throttle, "_LEAST_THRESHOLD", NEVER)
    put(throttle, "_LEAST_LIMIT", NEVER)
