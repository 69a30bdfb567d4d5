"""What is seen of each record of a life: its acquisitions, and the writes that name it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from sharestate.log_check.partial_order import PartialOrder
from sharestate.log_check.schedule import Schedule, Step, What
from sharestate.log_check.visible_log import VisibleLog
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import MAX_INT64
from sharestate.values.records import AcquiredRecords, RecordState

TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

_Records = tuple[tuple[int, int, bool], ...]
"""Records, each with its delivery count, and whether it was accepted."""


class Change(NamedTuple):
    """
    Something that was seen of a record; the changes of one record ascend.

    Attributes:
        deliveries: The delivery count with it.
        is_written: Whether it is a write; if not, it is an acquisition.
        number: The index of the fetch, or the number of the write.
        is_terminal: Whether it is the write of a terminal state.
    """

    deliveries: int
    is_written: bool
    number: int
    is_terminal: bool


class First(NamedTuple):
    """
    The first acquisition of records.

    Attributes:
        offset: The first of the new records.
        fetch: The fetch that has acquired them.
        end: The offset after those that are cached from then on: what it has not wanted of a log batch is, too.
        cached_by: The fetch with which they were cached, if that was another one before it.
    """

    offset: int
    fetch: int
    end: int
    cached_by: int | None


class SeenRecords:
    """
    What is seen of each record between two times at which the state is read.

    Records of which all that was seen is the same are a run, and its first offset stands for all of them.

    Args:
        known: The steps, and when they took effect.
        plan: The schedule.
        log: The log.

    Attributes:
        arrived: The arrivals of writes, by their numbers.
        answered: The answers to writes, by their numbers.
        writes: The requests of the writes, by their numbers.
        acknowledged: The acknowledgements that have issued writes, by the numbers of those.
        changes: What was seen of each run.
        expired: The writes of locks that have expired.
        finished: The last write of each run that is terminal by it.
        firsts: The first acquisitions; new records are acquired in the order of their offsets.
    """

    def __init__(self, known: PartialOrder, plan: Schedule, log: VisibleLog) -> None:
        """Look at the steps."""
        self._known, self._log = known, log
        steps = enumerate(known.steps)
        self.arrived = {step.write: index for index, step in steps if step.what is What.ARRIVAL}
        self.answered = {step.write: index for index, step in enumerate(known.steps) if step.what is What.OUTCOME}
        self.writes = {write: plan.writes[write][1].request or {} for write in sorted(self.arrived)}
        self._begins = self._run_begins()
        self.acknowledged = dict(self._matched())
        self.changes = self._changes()
        self.expired = set(self._expired())
        self.finished = {run: each[-1].number for run, each in self.changes.items() if each[-1].is_terminal}
        self.firsts = list(self._firsts())

    def runs(self, first_offset: int, last_offset: int) -> list[int]:
        """Return where the runs begin in a range."""
        return self._begins[bisect_left(self._begins, first_offset) : bisect_right(self._begins, last_offset)]

    def end(self, run: int) -> int:
        """Return the offset after a run, which is not the last one."""
        return self._begins[bisect_right(self._begins, run)]

    def issued(self, write: int) -> int:
        """Return the step that has issued a write: an acknowledgement, or its arrival if a lock has expired."""
        return self.acknowledged.get(write, self.arrived[write])

    def taken_back(self, write: int) -> int | None:
        """Return the step after which the records of a write may be available; the SPSO waits for its answer."""
        # A lock that has expired takes them from their owner whatever becomes of the write.
        return self.arrived[write] if write in self.expired else self.answered.get(write)

    def answer_of(self, run: int) -> int | None:
        """Return the step after which the SPSO may pass a run; None if that is not seen."""
        return self.answered.get(self.finished[run]) if run in self.finished else None

    def in_flight_until(self, run: int) -> int:
        """Return the last write of a run, a number beyond them all if its acquisition is the last that was seen."""
        last = self.changes[run][-1] if run in self.changes else None
        if last is None:
            return -1
        return last.number if last.is_written else MAX_INT64

    # ---- how that is found

    def _run_begins(self) -> list[int]:
        begins: set[int] = set()
        for step in self._known.steps:
            begins.update(offset for first, last, _ in acquired_by(step) for offset in (first, last + 1))
        for request in self.writes.values():
            begins.add(request["start_offset"])
            begins.update(offset for first, last, *_ in request["state_batches"] for offset in (first, last + 1))
        return sorted(begins)

    def _matched(self) -> Iterator[tuple[int, int]]:
        """Yield writes with the acknowledgements that have issued them: they say the same of the same records."""
        unmatched: dict[_Records, list[int]] = defaultdict(list)
        for write, request in self.writes.items():
            unmatched[self._written(request)].append(write)
        earliest_us, latest_us = self._known.earliest_us, self._known.latest_us
        for index, key in self._acknowledgements():
            writes = unmatched.get(key, [])
            for write in writes:
                arrived = self.arrived[write]  # it may have waited until others were answered
                if earliest_us[index] <= latest_us[arrived] and earliest_us[arrived] <= latest_us[index]:
                    yield write, index
                    writes.remove(write)
                    break

    def _written(self, request: Mapping[str, Any]) -> _Records:
        """Return the records of a write, each with its delivery count, and whether it was accepted."""
        return tuple(
            sorted(
                (run, count, bool(state == RecordState.ACKNOWLEDGED))
                for first, last, state, count in request["state_batches"]
                for run in self.runs(first, last)
            )
        )

    def _acknowledgements(self) -> Iterator[tuple[int, _Records]]:
        """Yield the acknowledgements that were accepted, with what has to be written."""
        held: dict[str | None, dict[int, int]] = defaultdict(dict)
        for index, step in enumerate(self._known.steps):
            request, response = step.event.request or {}, step.event.response or {}
            records = held[step.event.member_id]
            for first, last, count in acquired_by(step):
                records.update(dict.fromkeys(self.runs(first, last), count))
            if step.what is What.ACKNOWLEDGE and "error" not in response:
                key = tuple(
                    sorted(
                        (run, records[run], bool(type_ == AcknowledgeType.ACCEPT))
                        for first, last, types in request["batches"]
                        for run in self.runs(first, last)
                        if run in records
                        and (type_ := types[run - first] if len(types) > 1 else types[0]) != AcknowledgeType.RENEW
                    )
                )
                if key:
                    yield index, key

    def _changes(self) -> dict[int, list[Change]]:
        changes: dict[int, list[Change]] = defaultdict(list)
        for index, step in enumerate(self._known.steps):
            for first, last, count in acquired_by(step):
                change = Change(count, is_written=False, number=index, is_terminal=False)
                for run in self.runs(first, last):
                    changes[run].append(change)
        for write, request in self.writes.items():
            for first, last, state, count in request["state_batches"]:
                change = Change(count, is_written=True, number=write, is_terminal=state in TERMINAL)
                for run in self.runs(first, last):
                    changes[run].append(change)
        for each in changes.values():
            each.sort()
        return changes

    def _expired(self) -> Iterator[int]:
        """Yield the writes of locks that have expired; others that no member asked for are of sessions that ended."""
        for each in self.changes.values():
            for one, other in pairwise(each):
                if one.is_written or not other.is_written or other.number in self.acknowledged:
                    continue
                fetch = self._known.steps[one.number]
                lock_us = (fetch.event.response or {}).get("lock_ms", MAX_INT64) * 1000
                if fetch.at_us + lock_us <= self._known.latest_us[self.arrived[other.number]]:
                    yield other.number

    def _firsts(self) -> Iterator[First]:
        acquired = sorted((run, each[0].number) for run, each in self.changes.items() if not each[0].is_written)
        cached, cached_by = 0, None
        for fetch, runs in groupby(acquired, key=lambda first: first[1]):
            offsets = [offset for offset, _ in runs]
            if offsets[0] < cached:
                yield First(offsets[0], fetch, cached, cached_by)
            new = [offset for offset in offsets if offset >= cached]
            if new:
                end = self.end(new[-1])
                request = self._known.steps[fetch].event.request or {}
                if request.get("mode") == "record_limit":
                    end = max(end, self._log.batch_end(end - 1))
                cached, cached_by = end, fetch
                yield First(new[0], fetch, end, None)


def acquired_by(step: Step) -> tuple[AcquiredRecords, ...]:
    """Return what a step has acquired."""
    if step.what is not What.FETCH:
        return ()
    acquired: tuple[AcquiredRecords, ...] = (step.event.response or {}).get("acquired", ())
    return acquired
