"""
The order of steps that follows from what is seen of each record.

Times of a log are late by some milliseconds, but delivery counts are exact: a record is acquired, then the member's
acknowledgement or the expiry of its lock is written with the same count, and only after that it is acquired with the
next one. Together with the numbers of requests, the order of writes, and the start offset that each of them names, that
orders most of what has happened at the same time. What it leaves open goes by the preferred time.

All of this only says what is likely: whether it fits is found out by taking the steps. Of a log that contradicts itself
the parts that do are left in the preferred order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sharestate.log_check.budget import Budget
from sharestate.log_check.complete_counts import writes_in_order
from sharestate.log_check.fetch_order import Availability, Limits
from sharestate.log_check.partial_order import PartialOrder
from sharestate.log_check.schedule import LIVES, Schedule, Step, What
from sharestate.log_check.seen_records import TERMINAL, SeenRecords, acquired_by
from sharestate.log_check.visible_log import VisibleLog
from sharestate.partition.throttling import threshold
from sharestate.values.checks import MAX_INT64

_ROUNDS: Final = 3
"""How often what follows from records that were skipped is looked for: some of it follows from the rest."""

_PARTS: Final = 3
"""What part of the budget that is left it may take to look for the order of a life: the search needs the rest."""

_OF_MEMBERS: Final = frozenset({What.ACKNOWLEDGE, What.CLOSE, What.FETCH})


def in_order(plan: Schedule, log: VisibleLog | None = None, budget: Budget | None = None) -> Schedule:
    """
    Return a schedule with its steps in the order that follows from what is seen of each record.

    Steps have other times then, which ascend; between two times at which the state is read the steps stay the same.

    Args:
        plan: The schedule.
        log: The log; without it nothing follows from what a fetch has read and not acquired.
        budget: What it may cost; as much as it wants if None.

    Complexity:
        O(n log n) in the steps and in the ranges of records that were acquired and written.
    """
    whole = _Whole(plan, VisibleLog(()) if log is None else log, Budget(MAX_INT64) if budget is None else budget)
    steps: list[Step] = []
    life: list[Step] = []
    limits, complete = Limits(0, MAX_INT64, is_committed=False), None
    for step in plan.steps:
        if step.what is What.CONFIG:
            limits = _altered(limits, step.event.request or {})
        if step.what in LIVES:
            steps += _Life(life, whole, limits, complete).ordered()
            steps.append(step)
            life, complete = [], _complete_at_first(step)
        else:
            life.append(step)
    return plan._replace(steps=[*steps, *_Life(life, whole, limits, complete).ordered()])


def _altered(limits: Limits, request: Mapping[str, Any]) -> Limits:
    """Return limits by any of the settings until now, and by those of a config event."""
    limit = request.get("delivery_count_limit")
    return Limits(
        room=max(limits.room, request.get("max_record_locks", 0)),
        held_after=limits.held_after if limit is None else min(limits.held_after, threshold(limit)),
        is_committed=limits.is_committed or request.get("isolation") == "read_committed",
    )


class _Whole(NamedTuple):
    """
    What the lives of a share partition have in common.

    Attributes:
        plan: The schedule.
        log: The log.
        budget: What is left of what the check may cost.
    """

    plan: Schedule
    log: VisibleLog
    budget: Budget


def _complete_at_first(step: Step) -> int | None:
    """Return how many records are complete as the state is read; None if some are that no write will name."""
    batches = (step.event.response or {}).get("state_batches")
    return 0 if batches is not None and all(state not in TERMINAL for _, _, state, _ in batches) else None


class _Life:
    """
    The steps between two times at which the state is read, and which of them come before which.

    Args:
        steps: The steps.
        whole: What all lives have in common.
        limits: What limits a fetch.
        complete: How many records are complete as the state is read; None if some are that no write will name.
    """

    def __init__(self, steps: list[Step], whole: _Whole, limits: Limits, complete: int | None) -> None:
        self._budget, self._log = whole.budget, whole.log
        self._limits, self._complete = limits, complete
        self._known = PartialOrder(steps, whole.budget)
        self._seen = SeenRecords(self._known, whole.plan, whole.log)

    def ordered(self) -> list[Step]:
        """Return the steps in order."""
        known, part = self._known, self._budget.part(_PARTS)
        self._order_requests()
        self._order_writes()
        self._order_changes()
        preferred_us = [step.at_us for step in known.steps]
        known.sort(preferred_us)
        known.narrow()  # what a start offset says is wrong where the SPSO stays at records that are finished
        self._order_heads()
        self._order_room()
        known.sort(preferred_us)
        known.narrow()
        availability = Availability(known, self._seen, self._log, self._limits)
        for _ in range(_ROUNDS):
            if self._budget.has_spent(part) or not availability.put_outside():
                break
            known.sort(preferred_us)
            known.narrow()
        known.sort(known.preferred_us())
        for _ in range(_ROUNDS):
            if self._budget.has_spent(part) or not availability.put_nearer():
                break
            known.sort(preferred_us)
            known.narrow()
            known.sort(known.preferred_us())
        return known.sorted_steps()

    def _order_requests(self) -> None:
        """Order the requests of each connection: the schedule has them in the order of their numbers."""
        requests: dict[str, list[int]] = defaultdict(list)
        for index, step in enumerate(self._known.steps):
            if step.what in _OF_MEMBERS and step.event.connection is not None:
                requests[step.event.connection].append(index)
        for each in requests.values():
            for first, then in pairwise(each):
                self._known.put(first, then)

    def _order_writes(self) -> None:
        """Order what has issued the writes, and their answers."""
        put, seen = self._known.put, self._seen
        for write, arrived in seen.arrived.items():
            put(seen.acknowledged.get(write), arrived)
            put(seen.issued(write), seen.answered.get(write))
        for first, then in pairwise(writes_in_order(self._known, seen, self._complete, self._budget)):
            put(seen.issued(first), seen.issued(then))
        for first, then in pairwise(sorted(seen.answered)):
            put(seen.answered[first], seen.answered[then])

    def _order_changes(self) -> None:
        """Order what was seen of each record; and the first acquisitions of records, which ascend."""
        put, seen = self._known.put, self._seen
        for each in seen.changes.values():
            for one, other in pairwise(each):
                if other.is_written:
                    put(seen.issued(one.number) if one.is_written else one.number, seen.issued(other.number))
                elif one.is_written and other.deliveries == one.deliveries + 1:
                    put(seen.taken_back(one.number), other.number)
        for first in seen.firsts:
            put(first.cached_by, first.fetch)
        for fetch, then in pairwise(first.fetch for first in seen.firsts if first.cached_by is None):
            put(fetch, then)

    def _order_heads(self) -> None:
        """Order writes by the start offset that each of them names: the records before it were finished."""
        known, seen = self._known, self._seen
        begin, below = None, 0
        in_flight_until = -1  # the number of the last write of a record below the SPSO, which holds that back (B6)
        ends: set[tuple[int | None, int]] = set()
        for write, request in seen.writes.items():
            start = request["start_offset"]
            in_flight_until = max((in_flight_until, *map(seen.in_flight_until, seen.runs(below, start - 1))))
            below = max(below, start)
            holding = seen.finished.get(start, write)
            if holding != write > in_flight_until:
                known.put(seen.issued(write), seen.answered.get(holding))
            for run in seen.runs(start if begin is None else begin, start - 1):
                if seen.finished.get(run, write) < write:
                    ends.add((seen.answer_of(run), seen.issued(write)))
            begin = start if begin is None else max(begin, start)
        for first, then in ends:  # unless the head was read later than the change was made
            if first is not None and known.may_put(first, then):
                known.put(first, then)

    def _order_room(self) -> None:
        """Order the first acquisitions after what has made room for them."""
        known, seen = self._known, self._seen
        begin = seen.firsts[0].offset if seen.firsts else 0
        for first in seen.firsts:
            start = first.offset - self._limits.room + 1  # where the SPSO has to be
            if first.cached_by is None and first.offset == acquired_by(known.steps[first.fetch])[0].first_offset:
                for run in seen.runs(begin, start - 1):
                    answer = seen.answer_of(run)
                    if answer is not None and known.may_put(answer, first.fetch):
                        known.put(answer, first.fetch)
                begin = max(begin, start)
