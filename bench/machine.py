"""What was measured with: the same code takes another time with another build of Python, and at another hour."""

from __future__ import annotations

import os
import platform
import sysconfig
from typing import TYPE_CHECKING, Final

from bench.clock import cpu_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

REPEATED: Final = 500_000
"""How often a call or an allocation is made for one figure."""

MOST_SPREAD: Final = 0.1
"""By how much the dearest calibration of a run may exceed the cheapest on a machine that is at ease."""

MOST_LOAD: Final = 1.0
"""Processes that want to run, for each core, on a machine that is at ease; what measures is one of them."""


def empty_calls() -> Iterator[Callable[[], None]]:
    """Yield the one operation to time: calling a function that does nothing, REPEATED times."""

    def run() -> None:
        for _ in range(REPEATED):
            _nothing()

    yield run


def _nothing() -> None:
    pass


def _allocations() -> Iterator[Callable[[], object]]:
    yield lambda: [[] for _ in range(REPEATED)]


def call_ns() -> float:
    """Return what calling a function that does nothing takes now. [ns]"""
    return cpu_time(empty_calls()) / REPEATED * 1e9


def allocation_ns() -> float:
    """Return what making a list and letting it go takes now. [ns]"""
    return cpu_time(_allocations()) / REPEATED * 1e9


def load() -> float:
    """Return how many processes wanted to run in the last minute, for each core."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def unease(calibrations: Sequence[Sequence[float]], loads: Sequence[float]) -> str | None:
    """
    Return why figures of a run are not to be judged, or None if they may be.

    Args:
        calibrations: For each thing that was timed again and again during the run, what it took.
        loads: What `load` said during the run.

    >>> unease([[24.0, 25.0]], [0.5]), unease([[24.0, 36.0]], [0.5]), unease([[24.0, 25.0]], [0.5, 3.0])
    (None, 'the same took up to 50 % longer', '3.0 processes wanted each core')
    """
    spread = max((max(times) / min(times) - 1 for times in calibrations), default=0.0)
    if spread > MOST_SPREAD:
        return f"the same took up to {100 * spread:.0f} % longer"
    busiest = max(loads, default=0.0)
    return f"{busiest:.1f} processes wanted each core" if busiest > MOST_LOAD else None


def python_build() -> tuple[str, str]:
    """Return the version of Python with its compiler, and how it was configured; lines."""
    return f"Python {platform.python_version()} built with {platform.python_compiler()},", f"{configured()};"


def configured() -> str:
    """Return whether this Python was configured with what makes it faster or slower."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return ", ".join(
        (
            # A distribution may call `make profile-opt` by itself: then only it knows.
            f"configured {_with(flags, '--enable-optimizations')} (PGO) and {_with(flags, '--with-lto')} (LTO)",
            "shared library" if sysconfig.get_config_var("Py_ENABLE_SHARED") else "linked statically",
        )
    )


def _with(flags: str, flag: str) -> str:
    return f"{'with' if flag in flags else 'without'} {flag}"
