"""Durations of a great many records, of which percentiles are asked: in memory that does not grow with them."""

from __future__ import annotations

from collections import Counter
from math import ceil, log
from typing import Final

_GROWTH: Final = 1.02
"""The ratio of the bounds of two neighboring classes: what is said of a duration is wrong by 1 % at the most."""

_LOG_GROWTH: Final = log(_GROWTH)


class Durations:
    """
    How often durations of which length were seen.

    Complexity:
        Constant time and about 1,500 classes for all that lies between a microsecond and a year.

    >>> durations = Durations()
    >>> durations.add(1_000_000, 99)
    >>> durations.add(60_000_000)
    >>> [round(durations.percentile(p) / 1e6) for p in (0.5, 0.99, 1)], durations.count
    ([1, 1, 60], 100)
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._classes: Counter[int] = Counter()
        self.count = 0

    def add(self, us: int, times: int = 1) -> None:
        """Add a duration of *us* microseconds that was seen so often."""
        self._classes[ceil(log(us) / _LOG_GROWTH) if us > 1 else 0] += times
        self.count += times

    def merge(self, other: Durations) -> None:
        """Add those of *other*."""
        self._classes.update(other._classes)
        self.count += other.count

    def percentile(self, part: float) -> int:
        """Return the duration within which *part* of them lie, to 1 %; 0 without any. [µs]"""
        wanted, seen = part * self.count, 0
        for index in sorted(self._classes):
            seen += self._classes[index]
            if seen >= wanted:
                return round(_GROWTH ** (index - 0.5)) if index else 0
        return 0
