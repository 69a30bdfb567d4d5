"""What the library may cost, as a ratio to what Kafka's own class costs, and in bytes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_TIMES: Final[Mapping[str, float]] = MappingProxyType(
    {
        "whole": 2.5,
        "10 ranges in one call": 0.9,
        "one entry, 500 types": 1.1,
        "500 entries in one call": 0.8,
        "odd, then even offsets": 0.8,
        "500 calls of one offset": 1.8,
    }
)
"""How many times Kafka's CPU time a workload may take."""

MOST_BYTES: Final[Mapping[str, float]] = MappingProxyType({"record of split batches": 12})
"""How much memory one of them may take. [bytes]"""


def verdict(figure: float, most: float | None) -> str:
    """
    Return what the table says of *figure* where at most *most* is the goal; nothing where there is no goal.

    >>> verdict(0.7, 0.8), verdict(0.9, 0.8), verdict(0.9, None)
    ('<= 0.8: reached', '<= 0.8: missed', '')
    """
    if most is None:
        return ""
    return f"<= {most:g}: {'reached' if figure <= most else 'missed'}"
