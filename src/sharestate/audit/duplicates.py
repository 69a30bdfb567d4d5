"""Records that were delivered again: how many, when, and what had made them free."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from statistics import quantiles
from types import MappingProxyType
from typing import Final

from attrs import frozen

from sharestate.json_lines import Json

_BUCKETS: Final = 60
"""Into how many parts the time of the log is divided at the most."""

_WIDTHS_MS: Final = (100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""How long such a part is: the first that suffices, or days. [ms]"""

_US_OF_MS: Final = 1000


@frozen
class DuplicateCause:
    """The records that were delivered again for the same reason."""

    cause: str
    """The reason, in a few words."""

    records: int
    """How many; a record counts each time."""

    held_ms: Mapping[str, float]
    """How long after the delivery, the renewal or the release before they came again: least, median and most. [ms]"""

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {"cause": self.cause, "records": self.records, "held_ms": dict(self.held_ms)}


@frozen(kw_only=True)
class Duplicates:
    """The records that were delivered again."""

    causes: tuple[DuplicateCause, ...]
    """By cause, the most frequent first."""

    width_ms: int
    """How long each part of time is. [ms]"""

    over_time: tuple[tuple[int, str, int], ...]
    """The begin of a part of time, in ms since the log's first operation, the cause, and how many records."""

    @property
    def records(self) -> int:
        """How many in all; a record counts each time."""
        return sum(cause.records for cause in self.causes)

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {
            "records": self.records,
            "causes": [cause.to_json() for cause in self.causes],
            "width_ms": self.width_ms,
            "over_time": [[*each] for each in self.over_time],
        }


class DuplicateCounts:
    """
    Counts records that are delivered again.

    Args:
        begin_us: The time of the log's first operation. [µs]
        end_us: The time of its last. [µs]
    """

    def __init__(self, begin_us: int, end_us: int) -> None:
        """Begin with none."""
        self._begin_us = begin_us
        span_ms = max(end_us - begin_us, 0) // _US_OF_MS
        self.width_ms = next((width for width in _WIDTHS_MS if span_ms <= width * _BUCKETS), _WIDTHS_MS[-1])
        self._records: Counter[str] = Counter()
        self._over_time: Counter[tuple[int, str]] = Counter()
        self._held_us: defaultdict[str, array[int]] = defaultdict(_no_times)

    def count(self, cause: str, records: int, at_us: int, held_us: int) -> None:
        """
        Count records that came again.

        Args:
            cause: What had made them free.
            records: How many.
            at_us: When they came. [µs]
            held_us: How long after the delivery, the renewal or the release before. [µs]
        """
        part = max(at_us - self._begin_us, 0) // (self.width_ms * _US_OF_MS)
        self._records[cause] += records
        self._over_time[part * self.width_ms, cause] += records
        self._held_us[cause].append(held_us)

    def add(self, other: DuplicateCounts) -> None:
        """Add what was counted elsewhere, in a log of the same times."""
        self._records.update(other._records)
        self._over_time.update(other._over_time)
        for cause, times_us in other._held_us.items():
            self._held_us[cause].extend(times_us)

    def result(self) -> Duplicates:
        """Return what was counted."""
        return Duplicates(
            causes=tuple(
                DuplicateCause(cause, records, MappingProxyType(_spread_ms(self._held_us[cause])))
                for cause, records in self._records.most_common()
            ),
            width_ms=self.width_ms,
            over_time=tuple((part, cause, records) for (part, cause), records in sorted(self._over_time.items())),
        )


def _no_times() -> array[int]:
    return array("q")


def _spread_ms(times_us: array[int]) -> dict[str, float]:
    ordered = sorted(each / _US_OF_MS for each in times_us)
    median = quantiles(ordered, n=2)[0] if len(ordered) > 1 else ordered[0]
    return {"least": ordered[0], "median": median, "most": ordered[-1]}
