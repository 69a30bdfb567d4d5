"""What tests ask of other processes, and wait for."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONGEST_S: Final = 60.0
"""How long to wait for what takes no second, on a machine that has other things to do. [s]"""


def runs(process: Path) -> bool:
    """Return whether *process*, a directory of /proc, runs: it may be there only because nobody asked how it ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ" not in (process / "status").read_text()
    return False


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something *holds*, and fail if that takes too long."""
    ends_s = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < ends_s, "it has not come to hold"
        time.sleep(0.02)
