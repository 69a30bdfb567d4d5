"""What happened to a share partition as columns over time: the states of its records, its offsets and its lag."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sharestate.explain import Overview, PartitionLife, StateLost
from sharestate.history.events import Event
from sharestate.history.record_states import OffsetRuns
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile

KEPT: Final = 300_000
"""The number of spans that a timeline keeps by default: the last ones. [spans]"""

SECOND_US: Final = 1_000_000
"""Events without a time are a second apart. [µs]"""


_PLACES: Final = {cause: place for place, cause in enumerate(Cause)}
_GOES_ON: Final = -1
_FORGOTTEN: Final = -2
_UNKNOWN: Final = -3
"""How a span has ended that no cause ended, in the place of a cause's number, which is 0 or more (page.js)."""


class Span(NamedTuple):
    """
    A range of records of which the same was true for a time.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
        begin_us: When it began. [µs since 1970]
        end_us: When it ended; that of the last event if it has not. [µs since 1970]
        state: The number of the records' state.
        delivery_count: Their deliveries so far. [deliveries]
        member_id: Their owner; empty for none.
        began_by: The change with which it began.
        ended_by: The change with which it ended; None if it has not, is not known any more, or forgotten by a leader.
        is_lost: Whether the state is not known any more.
    """

    first_offset: int
    last_offset: int
    begin_us: int
    end_us: int
    state: int
    delivery_count: int
    member_id: str
    began_by: Cause
    ended_by: Cause | None
    is_lost: bool = False


class Unknown(NamedTuple):
    """
    A time for which the state of a share partition is not known.

    Attributes:
        begin_us: When it began. [µs since 1970]
        end_us: When it ended; that of the last event if it has not. [µs since 1970]
        reason: Why, in words.
    """

    begin_us: int
    end_us: int
    reason: str


class Point(NamedTuple):
    """
    The offsets of a share partition from an instant on.

    Attributes:
        at_us: The instant. [µs since 1970]
        start_offset: The SPSO; None if the state is not known.
        end_offset: The SPEO; None if the state is not known.
        log_end_offset: The offset after the last record of the log; None if it is not known.
        lag: The records still to be delivered or finished; None if that is not known. [records]
    """

    at_us: int
    start_offset: int | None
    end_offset: int | None
    log_end_offset: int | None
    lag: int | None


class ReportedPartition(NamedTuple):
    """
    A share partition of a report.

    Attributes:
        overview: How it stands after its last event.
        timeline: What happened to it, as ``PartitionTimeline.columns`` has it.
        topic: The name of its topic; its id if that is not known.
    """

    overview: Overview
    timeline: dict[str, Any]
    topic: str

    @property
    def name(self) -> str:
        """What it is called on the page."""
        group_id, _, partition = self.overview.key
        return f"partition {partition} of topic {self.topic}, group {group_id}"


class _Open(NamedTuple):
    """The open interval of a range of records."""

    begin_us: int
    state: int
    delivery_count: int
    member_id: str
    began_by: Cause

    def span(self, run: tuple[int, int], end_us: int, ended_by: Cause | None, *, is_lost: bool = False) -> Span:
        """Return the span of a range that has ended."""
        return Span(
            *run,
            self.begin_us,
            max(self.begin_us, end_us),
            self.state,
            self.delivery_count,
            self.member_id,
            self.began_by,
            ended_by,
            is_lost,
        )


class PartitionTimeline:
    """
    A share partition over time, event by event.

    Args:
        key: The share partition.
        kept: How many spans to keep, and how many points; older ones are dropped, and counted.

    Attributes:
        is_timed: Whether its events have times; else they are a second apart, from 1970 on.
        dropped: The number of spans that were dropped. [spans]

    Complexity:
        That of a replay with its transitions; O(*kept*) memory.
    """

    def __init__(  # noqa: PLR0913 - as ``Replay``
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        kept: int = KEPT,
        budget: ReplayBudget | None = None,
    ) -> None:
        """Begin before the first event of the share partition *key*; the other arguments are those of ``Replay``."""
        self._life = PartitionLife(key, profile=profile, config=config, lacks=lacks, budget=budget)
        self.is_timed = True
        self.dropped = 0
        self._open = OffsetRuns[_Open]()
        self._spans: deque[Span] = deque(maxlen=kept)
        self._points: deque[Point] = deque(maxlen=kept)
        self._unknown: deque[Unknown] = deque(maxlen=kept)
        self._first_us: int | None = None
        self._now_us = 0

    def apply(self, event: Event) -> None:
        """
        Apply the next event of the share partition.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        was_lost = self._life.lost
        rows = self._life.apply(event)
        self._take_time(event)
        if self._life.partition is None or event.kind == "initialize":
            self._end(self._open.take_all(), self._now_us, None, is_lost=self._life.lost is not None)
        self._look_whether_lost(was_lost)
        for row in rows:
            if row.kind == "transition":
                self._take_transition(row)
        point = self._point()
        if not self._points or self._points[-1][1:] != point[1:]:
            self._points.append(point)

    def _look_whether_lost(self, before: StateLost | None) -> None:
        """Note since when, and until when, the state is not known."""
        lost = self._life.lost
        if before is not None:
            self._unknown[-1] = self._unknown[-1]._replace(end_us=self._now_us)
        if lost is not None and (before is None or lost.reason != before.reason):
            self._unknown.append(Unknown(self._now_us, self._now_us, lost.reason))

    def reported(self) -> ReportedPartition:
        """Return the share partition for a report, as it is after the last event."""
        overview = self._life.overview()
        return ReportedPartition(overview, self.columns(), topic=overview.key[1])

    def columns(self) -> dict[str, Any]:
        """
        Return the spans and points as columns, small enough for a page.

        Times are microseconds from ``origin_us`` on; those of points, and of the begins of spans, and first offsets are
        differences from the one before. A span has its duration, the number of its records less one, and the places of
        its member and its changes in lists; instead of these -1 stands for no member, and for what goes on at the end,
        -2 for what a new leader has forgotten, and -3 for what is not known any more.
        """
        ended = [(span, _ended(span)) for span in self._spans]
        ended += [(span, _GOES_ON) for span in self._still_open()]
        ended.sort(key=lambda each: (each[0].begin_us, each[0].first_offset))
        spans = [span for span, _ in ended]
        origin_us = self._first_us or 0
        members = {name: place for place, name in enumerate(sorted({span.member_id for span in spans} - {""}))}
        return {
            "is_timed": self.is_timed,
            "origin_us": origin_us,
            "duration_us": self._now_us - origin_us,
            "dropped": self.dropped,
            "members": list(map(self._life.members.name, members)),
            "places": list(map(self._life.members.place, members)),
            "unknown": [[each.begin_us - origin_us, each.end_us - origin_us, each.reason] for each in self._unknown],
            "spans": {
                "first": _differences(span.first_offset for span in spans),
                "size": [span.last_offset - span.first_offset for span in spans],
                "begin": _differences(span.begin_us - origin_us for span in spans),
                "duration": [span.end_us - span.begin_us for span in spans],
                "state": [span.state for span in spans],
                "count": [span.delivery_count for span in spans],
                "member": [members.get(span.member_id, -1) for span in spans],
                "began": [_PLACES[span.began_by] for span in spans],
                "ended": [place for _, place in ended],
            },
            "points": {
                "at": _differences(point.at_us - origin_us for point in self._points),
                "start": [point.start_offset for point in self._points],
                "end": [point.end_offset for point in self._points],
                "log_end": [point.log_end_offset for point in self._points],
                "lag": [point.lag for point in self._points],
            },
        }

    def _take_time(self, event: Event) -> None:
        at_us = event.time_us
        if self._first_us is None:
            self.is_timed = at_us is not None
            self._first_us = self._now_us = at_us or 0
        if not self.is_timed:
            self._now_us = event.seq * SECOND_US
        elif at_us is not None:
            self._now_us = max(self._now_us, at_us)

    def _take_transition(self, row: OutputRow) -> None:
        first, last, member_id, delivery_count, name, _, state, _ = row.values
        cause = Cause(name)
        if cause is Cause.THROTTLED:  # nothing has changed
            return
        at_us = self._now_us if row.at_us is None or not self.is_timed else min(row.at_us, self._now_us)
        if state is None:
            before = self._open.take(first, last)
        else:
            before = self._open.replace(first, last, _Open(at_us, state, delivery_count, member_id, cause))
        self._end(before, at_us, cause)

    def _end(
        self, runs: Iterable[tuple[int, int, _Open]], at_us: int, cause: Cause | None, *, is_lost: bool = False
    ) -> None:
        for first, last, known in runs:
            self.dropped += len(self._spans) == self._spans.maxlen
            self._spans.append(known.span((first, last), at_us, cause, is_lost=is_lost))

    def _still_open(self) -> list[Span]:
        runs = self._open.take_all()
        for first, last, known in runs:
            self._open.put(first, last, known)
        return [known.span((first, last), self._now_us, None) for first, last, known in runs]

    def _point(self) -> Point:
        partition, log_end = self._life.partition, self._life.log_end_offset
        if partition is None:
            return Point(self._now_us, None, None, log_end, None)
        start = partition.start_offset
        lag = None if log_end is None else log_end - start - partition.delivery_complete_count
        return Point(self._now_us, start, partition.end_offset, log_end, lag)


def _ended(span: Span) -> int:
    """Return what stands for the end of a span that has ended."""
    if span.ended_by is not None:
        return _PLACES[span.ended_by]
    return _UNKNOWN if span.is_lost else _FORGOTTEN


def _differences(numbers: Iterable[int]) -> list[int]:
    """
    Return the first of *numbers*, and how much each other one differs from the one before.

    >>> _differences([5, 7, 6])
    [5, 2, -1]
    """
    return [after - before for before, after in pairwise([0, *numbers])]
