"""The sizes of the tests: small for ``make test``, large with ``CRASHES=all``, which ``make crash`` sets."""

from __future__ import annotations

import os
from typing import Final

ALL: Final = os.environ.get("CRASHES") == "all"
SEED: Final = int(os.environ.get("SEED", "0"))
"""What random choices begin with; ``make crash SEED=7`` makes others."""


def size(few: int, many: int) -> int:
    """Return how much of something a test does."""
    return many if ALL else few
