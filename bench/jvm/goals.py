"""What the library may cost, as a ratio to what Kafka's own class costs, and in bytes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bench.workloads import EVERY_BATCH, RUNS, as_read

if TYPE_CHECKING:
    from collections.abc import Mapping

RELEASE: Final = "4.3.1"
"""The release of Kafka whose class the goals are ratios to."""

_RATIOS: Final = {
    "whole": {RUNS: 6.5, EVERY_BATCH: 6.6},
    "10 ranges in one call": {RUNS: 0.55, EVERY_BATCH: 0.98},
    "one entry, 500 types": {RUNS: 0.60, EVERY_BATCH: 1.05},
    "500 entries in one call": {RUNS: 0.45, EVERY_BATCH: 0.55},
    "odd, then even offsets": {RUNS: 0.57, EVERY_BATCH: 0.68},
    "500 calls of one offset": {RUNS: 2.1, EVERY_BATCH: 2.15},
}

MOST_TIMES: Final[Mapping[str, float]] = MappingProxyType(
    {as_read(name, reading): most for name, goals in _RATIOS.items() for reading, most in goals.items()}
)
"""How many times the CPU time of Kafka 4.3.1's class a workload may take: the median of five rounds."""

MOST_BYTES: Final[Mapping[str, float]] = MappingProxyType({"record of split batches": 12})
"""How much memory one of them may take. [bytes]"""


def verdict(figure: float, most: float | None, *, at_ease: bool = True) -> str:
    """
    Return what the table says of *figure* where at most *most* is the goal; nothing where there is no goal.

    On a machine that was not *at_ease* nothing is met or missed.

    >>> verdict(0.7, 0.8), verdict(0.9, 0.8), verdict(0.9, None), verdict(0.9, 0.8, at_ease=False)
    ('<= 0.8: met', '<= 0.8: missed', '', '<= 0.8: not judged')
    """
    if most is None:
        return ""
    if not at_ease:
        return f"<= {most:g}: not judged"
    return f"<= {most:g}: {'met' if figure <= most else 'missed'}"
