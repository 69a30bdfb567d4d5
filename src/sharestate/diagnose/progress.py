"""How a share partition gets on: what holds its SPSO, the room for more, throttled fetches, and the lag over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from attrs import Factory, define

from sharestate.explain.sentences import Outlook, Reason, StatedReason
from sharestate.history.rows import OutputRow
from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Cause

_MOST_SAMPLES: Final = 256
"""The most samples of a lag; when there are as many, every second one is forgotten."""

_FIRST_LOOK: Final = 4
"""After how many empty fetches in a row it is asked whether the share partition is stalled, and again at twice as many:
the question takes time that is linear in what is in flight, and most empty fetches are of groups with nothing to do."""


# ---- the SPSO


class Stay(NamedTuple):
    """
    How long the SPSO has stayed where it was while records behind it were done.

    Attributes:
        offset: The SPSO.
        us: How long. [µs]
        terminal: How many records behind it were done in the end. [records]
    """

    offset: int
    us: int
    terminal: int


_NO_STAY: Final = Stay(0, 0, 0)


@define
class StartOffset:
    """What has held the SPSO."""

    longest: Stay = _NO_STAY
    """The longest stay."""

    _offset: int | None = None
    _since_us: int | None = None
    _terminal: int = 0

    def apply(self, partition: SharePartition | None, at_us: int | None) -> None:
        """Take the share partition after an event; a stay begins with the first record behind the SPSO that is done."""
        if partition is None or at_us is None:
            self._offset = self._since_us = None
            return
        if partition.start_offset != self._offset:
            self._note(at_us)
            self._offset, self._since_us = partition.start_offset, None
        self._terminal = partition.delivery_complete_count
        if self._terminal > 0 and self._since_us is None:
            self._since_us = at_us
        self._note(at_us)

    def _note(self, at_us: int) -> None:
        if self._offset is not None and self._since_us is not None and at_us - self._since_us > self.longest.us:
            self.longest = Stay(self._offset, at_us - self._since_us, self._terminal)


# ---- room


@define
class Room:
    """When there was no room for more records in flight, and what took it."""

    full_us: int = 0
    """How long in all. [µs]"""

    longest_us: int = 0
    """How long at a stretch. [µs]"""

    refused: int = 0
    """The fetches that came back empty meanwhile. [requests]"""

    terminal_us: int = 0
    """How many of the records in flight were done meanwhile, times how long. [records times µs]"""

    in_flight_us: int = 0
    """How many were in flight meanwhile, times how long. [offsets times µs]"""

    most_in_flight: int = 0
    """How many were in flight at the most. [offsets]"""

    _since_us: int | None = None
    _last_us: int = 0
    _counts: tuple[int, int] = (0, 0)

    def apply(self, partition: SharePartition | None, at_us: int | None) -> None:
        """Take the share partition after an event."""
        in_flight = in_flight_count(partition)
        self.most_in_flight = max(self.most_in_flight, in_flight)
        if at_us is None:
            return
        if self._since_us is not None:
            lasted_us = at_us - self._last_us
            self.full_us += lasted_us
            self.longest_us = max(self.longest_us, at_us - self._since_us)
            self.terminal_us += self._counts[0] * lasted_us
            self.in_flight_us += self._counts[1] * lasted_us
        self._last_us = at_us
        if partition is None or in_flight < partition.config.max_record_locks:
            self._since_us = None
            return
        self._since_us = at_us if self._since_us is None else self._since_us
        self._counts = partition.delivery_complete_count, in_flight


def in_flight_count(partition: SharePartition | None) -> int:
    """Return how many offsets are in flight, gaps and terminal records included. [offsets]"""
    if partition is None or not partition.batch_count():
        return 0
    return partition.end_offset - partition.start_offset + 1


# ---- fetches


@define
class Fetches:
    """What fetches have got."""

    with_records: int = 0
    """Those that have acquired something. [requests]"""

    records: int = 0
    """What they have acquired. [records]"""

    throttled: int = 0
    """Those that have got less because records keep failing. [requests]"""

    throttled_records: int = 0
    """What these have acquired. [records]"""

    above_wanted: int = 0
    """Those that have acquired at least twice what the member wanted. [requests]"""

    records_above: int = 0
    """What these have acquired. [records]"""

    most_above: tuple[int, int] = (0, 0)
    """What one has acquired at the most beyond what was wanted, and what was wanted. [records]"""

    empty: int = 0
    """Those that came back empty. [requests]"""

    empty_with_records: int = 0
    """Those that came back empty though there was room, and the log had more. [requests]"""

    empty_in_a_row: int = 0
    """Those since the last one that has acquired something. [requests]"""

    def apply(self, rows: Iterable[OutputRow], wanted: int | None, *, had_more: bool) -> None:
        """Take a fetch: its rows, how many records the member *wanted*, and whether there was more to get."""
        acquired = sum(row.values[1] - row.values[0] + 1 for row in rows if row.kind == "acquisition")
        is_throttled = any(row.kind == "transition" and row.values[4] == Cause.THROTTLED for row in rows)
        if not acquired:
            self.empty += 1
            self.empty_in_a_row += 1
            self.empty_with_records += had_more
            return
        self.empty_in_a_row = 0
        self.with_records += 1
        self.records += acquired
        if is_throttled:
            self.throttled += 1
            self.throttled_records += acquired
        if wanted is not None and 0 < 2 * wanted <= acquired:
            self.above_wanted += 1
            self.records_above += acquired
            self.most_above = max(self.most_above, (acquired, wanted))

    @property
    def is_looked_at(self) -> bool:
        """Whether it is time to ask whether the share partition is stalled."""
        streak = self.empty_in_a_row
        return streak >= _FIRST_LOOK and streak & (streak - 1) == 0


# ---- the lag


class Sample(NamedTuple):
    """
    The lag at an instant.

    Attributes:
        at_us: The instant. [µs since 1970]
        lag: The lag. [records]
        log_end_offset: Where the log ended.
    """

    at_us: int
    lag: int
    log_end_offset: int


@define
class Lag:
    """
    The lag over time, in samples.

    >>> lag = Lag()
    >>> for second in range(10_000):
    ...     lag.add(Sample(second * 10**6, second, second))
    >>> len(lag.samples) <= 256, [round(each, -2) for each in lag.quarters]
    (True, [0, 2500, 5000, 7500, 10000])
    """

    samples: list[Sample] = Factory(list)
    """The samples, in order."""

    _last: Sample | None = None
    _gap_us: int = 0

    def add(self, sample: Sample) -> None:
        """Take a sample; most are forgotten."""
        self._last = sample
        if self.samples and sample.at_us - self.samples[-1].at_us < self._gap_us:
            return
        self.samples.append(sample)
        if len(self.samples) >= _MOST_SAMPLES:
            self.samples = self.samples[::2]
            self._gap_us = (self.samples[-1].at_us - self.samples[0].at_us) // (_MOST_SAMPLES // 2)

    def last(self) -> Sample | None:
        """Return the last one."""
        return self._last

    @property
    def quarters(self) -> tuple[int, ...]:
        """The lags at the beginning, at the end, and at each quarter of the time; empty without two samples."""
        if self._last is None or len(self.samples) < 2:  # noqa: PLR2004 - an interval has two ends
            return ()
        begin_us, end_us = self.samples[0].at_us, self._last.at_us
        found = []
        for quarter in range(4):
            wanted_us = begin_us + (end_us - begin_us) * quarter // 4
            found.append(min(self.samples, key=lambda each: abs(each.at_us - wanted_us)).lag)
        return (*found, self._last.lag)

    @property
    def least_of_last_quarter(self) -> int:
        """The least lag of the last quarter of the time; 0 without samples."""
        if self._last is None:
            return 0
        from_us = self._last.at_us - (self._last.at_us - self.samples[0].at_us) // 4
        return min([self._last.lag, *(each.lag for each in self.samples if each.at_us >= from_us)])


# ---- stalls


@define
class Stalls:
    """The stalls that were seen, though they may be over by now."""

    found: dict[Reason, StatedReason] = Factory(dict)
    """Each as it was seen last."""

    first_us: dict[Reason, int | None] = Factory(dict)
    """When each was seen first. [µs since 1970]"""

    def apply(self, findings: Iterable[StatedReason], at_us: int | None) -> None:
        """Take what keeps the SPSO."""
        for each in findings:
            if each.verdict is Outlook.STALLED and isinstance(each.reason, Reason):
                self.found[each.reason] = each
                self.first_us.setdefault(each.reason, at_us)
