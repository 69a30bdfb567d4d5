"""
The order of fetches that follows from the records that they skipped.

A fetch takes the first records that are available. So where one skipped a record that was available between two
steps, it has come before the first of them or after the second; if only one of the two is possible, that is used. And
one that has acquired less than it wanted has looked at all that it has read, unless the window was full.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from sharestate.log_check.partial_order import PartialOrder
from sharestate.log_check.schedule import What
from sharestate.log_check.seen_records import SeenRecords, acquired_by
from sharestate.log_check.visible_log import MAX_BYTES, VisibleLog
from sharestate.values.checks import MAX_INT64
from sharestate.values.fetched_records import IsolationLevel


class Limits(NamedTuple):
    """
    What limits what a fetch acquires.

    Attributes:
        room: The most records in flight by any settings until the end of a life. [records]
        held_after: After how many deliveries records may be held back, by any settings until then. [deliveries]
        is_committed: Whether members may read only what is committed, by any settings until then.
    """

    room: int
    held_after: int
    is_committed: bool


class _Span(NamedTuple):
    """
    Records that were available for some time.

    Attributes:
        since: The steps after which they were, all of them.
        until: The fetch that has acquired them.
        offset: The first of them.
        deliveries: How often they had been delivered.
    """

    since: tuple[int, ...]
    until: int
    offset: int
    deliveries: int


class Availability:
    """
    When which records of a life were available, and what each of its fetches has looked at.

    Args:
        known: What is known of the order; the times of its steps are as narrow as they are known to be.
        seen: What was seen of each record.
        log: The log.
        limits: What limits a fetch.
    """

    def __init__(self, known: PartialOrder, seen: SeenRecords, log: VisibleLog, limits: Limits) -> None:
        """Find out when they were."""
        self._known, self._seen, self._log, self._limits = known, seen, log, limits
        window = _Window(known, seen, limits.room)
        self._fetches = [index for index, step in enumerate(known.steps) if acquired_by(step)]
        self._reaches = {index: self._reach(index, window) for index in self._fetches}
        """The last offset that each fetch has looked at, and would have acquired if it had been available."""
        self._spans = [*self._released(), *self._new()]
        self._placed: set[tuple[int, _Span]] = set()
        """Fetches that were put before or after a time at which records were available."""

    def put_outside(self) -> bool:
        """Put fetches before or after times at which they would have acquired more; return whether any was found."""
        earliest_us, latest_us = self._known.earliest_us, self._known.latest_us
        fetches = sorted(self._fetches, key=latest_us.__getitem__)
        to_come = list(accumulate((earliest_us[fetch] for fetch in reversed(fetches)), min))
        begins_us = {span: max(earliest_us[index] for index in span.since) for span in self._spans}
        spans = sorted(begins_us, key=begins_us.__getitem__, reverse=True)
        current: list[_Span] = []
        has_found = False
        for fetch in fetches:
            while spans and begins_us[spans[-1]] <= latest_us[fetch]:
                current.append(spans.pop())
            least_us = to_come.pop()
            current = [span for span in current if latest_us[span.until] >= least_us]
            reach = self._reaches[fetch] = self._limited(fetch, current)
            for span in current:
                if span.offset <= reach and span.until != fetch and latest_us[span.until] >= earliest_us[fetch]:
                    has_found |= self._is_put_outside(fetch, span)
        return has_found

    def put_nearer(self) -> bool:
        """
        Put fetches that lie where they would have acquired something else before or after that: what is nearer.

        Return whether any was found.
        """
        known = self._known
        places = {index: place for place, index in enumerate(known.order)}
        times_us = known.preferred_us()
        fetches = sorted((places[index], index) for index in self._fetches)
        has_found = False
        for since, until, offset, _ in self._spans:
            begin = max(since, key=places.__getitem__)
            within = slice(bisect_left(fetches, (places[begin], 0)), bisect_left(fetches, (places[until], 0)))
            for _, fetch in fetches[within]:
                if offset > self._reaches[fetch]:
                    continue
                before = times_us[fetch] - times_us[begin], fetch, begin
                after = times_us[until] - times_us[fetch], until, fetch
                for _, first, then in sorted((before, after)):
                    if first != then and known.may_put(first, then):
                        has_found |= known.put(first, then)
                        break
        return has_found

    def _is_put_outside(self, fetch: int, span: _Span) -> bool:
        """Put a fetch before or after a time, if only one is possible; return whether that was not known."""
        if (fetch, span) in self._placed:
            return False
        before = [index for index in span.since if index != fetch and self._known.may_put(fetch, index)]
        may_be_after = self._known.may_put(span.until, fetch)
        if may_be_after == bool(before) or len(before) > 1:
            return False
        self._placed.add((fetch, span))
        return self._known.put(fetch, before[0]) if before else self._known.put(span.until, fetch)

    # ---- when records were available

    def _released(self) -> Iterator[_Span]:
        """Yield the times at which records were available that had been delivered before."""
        found: dict[tuple[int, int, int], int] = {}
        for offset, each in self._seen.changes.items():
            for one, other in pairwise(each):
                since = self._seen.taken_back(one.number) if one.is_written and not other.is_written else None
                if since is not None:
                    span = since, other.number, one.deliveries
                    found[span] = min(offset, found.get(span, offset))
        for (since, until, deliveries), offset in found.items():
            yield _Span((since,), until, offset, deliveries)

    def _new(self) -> Iterator[_Span]:
        """Yield the times at which new records were available: from when the window had room for the first of them."""
        seen = self._seen
        appended = sorted(
            ((step.event.request or {})["batches"][-1].last_offset, index)
            for index, step in enumerate(self._known.steps)
            if step.what is What.LOG
        )
        if self._limits.is_committed or not seen.firsts:
            return
        begin, answered = seen.firsts[0].offset, -1
        last: int | None = None
        for offset, fetch, _, cached_by in seen.firsts:
            if cached_by is not None:
                yield _Span((cached_by,), fetch, offset, 0)
                continue
            start = offset - self._limits.room + 1  # where the SPSO has to be
            answered = max((answered, *(seen.finished.get(run, -1) for run in seen.runs(begin, start - 1))))
            begin = max(begin, start)
            place = bisect_left(appended, (offset, 0))
            since = seen.answered.get(answered), appended[place][1] if place < len(appended) else None, last
            found = tuple({index for index in since if index is not None})
            last = fetch
            if found:
                yield _Span(found, fetch, offset, 0)

    # ---- what a fetch has looked at

    def _reach(self, fetch: int, window: _Window) -> int:
        """Return the last offset that a fetch has looked at: all that it has read, if it could have acquired more."""
        step = self._known.steps[fetch]
        acquired, request = acquired_by(step), step.event.request or {}
        last = acquired[-1].last_offset
        got = sum(each.last_offset - each.first_offset + 1 for each in acquired)
        # In record_limit mode it acquires no more than there is room for, else up to the end of the last batch.
        least = got if request.get("mode") == "record_limit" else got - (last - acquired[-1].first_offset)
        is_short = got < request.get("max_records", 0) - sum(request.get("others", ()))
        is_held_back = any(each.delivery_count > self._limits.held_after for each in acquired)
        if (
            not is_short
            or is_held_back
            or request.get("partitions", 1) > 1
            or window.may_have_room_for(fetch, least, got)
        ):
            return last
        count = len(self._log.earliest_us)
        batches = self._log.readable(acquired[0].first_offset, count, IsolationLevel.READ_UNCOMMITTED)
        read = next(self._log.fitting(batches, request.get("max_bytes", MAX_BYTES), 1))
        return max(last, self._log.end_offset(read.stop) - 1)

    def _limited(self, fetch: int, spans: list[_Span]) -> int:
        """Return what a fetch has looked at if it may have stopped at records that are held back."""
        last = acquired_by(self._known.steps[fetch])[-1].last_offset
        held_back = (span.offset for span in spans if span.deliveries >= self._limits.held_after and span.offset > last)
        return min(self._reaches[fetch], min(held_back, default=MAX_INT64) - 1)


class _Window:
    """
    How many records are in flight, at the least and at the most, at any time of a life.

    Args:
        known: What is known of the order.
        seen: What was seen of each record.
        room: The most records in flight. [records]
    """

    def __init__(self, known: PartialOrder, seen: SeenRecords, room: int) -> None:
        self._known, self._room = known, room
        self._runs = sorted(seen.changes)
        answers = [seen.answer_of(run) for run in self._runs]
        self._done_early_us = self._times(answers, known.earliest_us)
        self._done_late_us = self._times(answers, known.latest_us)
        new = [first for first in seen.firsts if first.cached_by is None]
        fetches = [first.fetch for first in new]
        self._taken_early_us = self._times(fetches, known.earliest_us)
        self._taken_late_us = self._times(fetches, known.latest_us)
        self._ends = [new[0].offset if new else 0, *(first.end for first in new)]

    def may_have_room_for(self, fetch: int, least: int, most: int) -> bool:
        """Return whether there may have been room for as many records as that before a fetch, and no more."""
        earliest_us, latest_us = self._known.earliest_us[fetch], self._known.latest_us[fetch]
        begin, end = bisect_left(self._done_late_us, earliest_us), bisect_right(self._done_early_us, latest_us)
        last_end = self._ends[-1]  # where the SPSO is once all runs of records are done
        starts = [self._runs[count] if count < len(self._runs) else last_end for count in range(begin, end + 1)]
        first, last = bisect_left(self._taken_late_us, earliest_us), bisect_right(self._taken_early_us, latest_us)
        return any(
            bisect_left(starts, end - self._room + least) < bisect_right(starts, end - self._room + most)
            for end in self._ends[first : last + 1]
        )

    @staticmethod
    def _times(steps: list[int] | list[int | None], times_us: list[int]) -> list[int]:
        """Return by when all steps until each of them have come; never from None on."""
        return list(accumulate((MAX_INT64 if index is None else times_us[index] for index in steps), max))
