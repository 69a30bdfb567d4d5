"""
The order of steps that follows from what is seen of each record.

Times of a log are late by some milliseconds, but delivery counts are exact: a record is acquired, then the member's
acknowledgement or the expiry of its lock is written with the same count, and only after that it is acquired with the
next one. Together with the numbers of requests, the order of writes, and the start offset that each of them names, that
orders most of what has happened at the same time. What it leaves open goes by the preferred time.

A fetch takes the first records that are available. So where one has passed over a record that was available between two
steps, it has come before the first of them or after the second; if only one of the two is possible, that is used, too.

All of this only says what is likely: whether it fits is found out by taking the steps. Of a log that contradicts itself
the parts that do are left in the preferred order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import accumulate, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from sharestate.log_check.budget import Budget
from sharestate.log_check.schedule import LATE_US, LIVES, Allowed, Schedule, Step, What
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import MAX_INT64
from sharestate.values.records import AcquiredRecords, RecordState

MOST_OVERTAKEN: Final = 8
"""By how many writes one may be overtaken. [writes]"""

_ROUNDS: Final = 3
"""How often what follows from records that were passed over is looked for: some of it follows from the rest."""

_PARTS: Final = 3
"""What part of the budget that is left it may take to look for the order of a life: the search needs the rest."""

_OF_MEMBERS: Final = frozenset({What.ACKNOWLEDGE, What.CLOSE, What.FETCH})


_Records = tuple[tuple[int, int, bool], ...]
"""Records, each with its delivery count, and whether it was accepted."""


class _Change(NamedTuple):
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


class _Head(NamedTuple):
    """
    What a write says of how many records are complete.

    Attributes:
        write: The number of the write.
        completed: How many records it completes itself. [records]
        total: How many are complete with it, of those that were not at first. [records]
        earliest_us: When it was issued at the earliest. [µs since 1970]
        latest_us: When it was issued at the latest. [µs since 1970]
    """

    write: int
    completed: int
    total: int
    earliest_us: int
    latest_us: int


def in_order(plan: Schedule, budget: Budget | None = None) -> Schedule:
    """
    Return a schedule with its steps in the order that follows from what is seen of each record.

    Steps have other times then, which ascend; between two times at which the state is read the steps stay the same.

    Complexity:
        O(n log n) in the steps and in the ranges of records that were acquired and written.
    """
    budget = Budget(MAX_INT64) if budget is None else budget
    steps: list[Step] = []
    life: list[Step] = []
    room, complete = 0, None
    for step in plan.steps:
        if step.what is What.CONFIG:
            room = max(room, (step.event.request or {}).get("max_record_locks", 0))
        if step.what in LIVES:
            steps += _Life(life, plan, room, complete, budget).ordered()
            steps.append(step)
            life, complete = [], _complete_at_first(step)
        else:
            life.append(step)
    return plan._replace(steps=[*steps, *_Life(life, plan, room, complete, budget).ordered()])


def _complete_at_first(step: Step) -> int | None:
    """Return how many records are complete as the state is read; None if some are that no write will name."""
    batches = (step.event.response or {}).get("state_batches")
    return 0 if batches is not None and all(state not in _TERMINAL for _, _, state, _ in batches) else None


class _Life:
    """The steps between two times at which the state is read, and which of them come before which."""

    def __init__(self, steps: list[Step], plan: Schedule, room: int, complete: int | None, budget: Budget) -> None:
        self._budget = budget
        self._part = budget.part(_PARTS)
        self._placed: set[tuple[int, int, int]] = set()
        """Fetches that were put before or after a time at which records were available."""
        self._room = room
        self._complete = complete
        self._steps = steps
        self._earliest_us = [step.earliest_us - LATE_US for step in steps]
        self._latest_us = [step.latest_us + LATE_US for step in steps]
        self._after: list[set[int]] = [set() for _ in steps]
        self._order = list(range(len(steps)))
        self._arrived = {step.write: index for index, step in enumerate(steps) if step.what is What.ARRIVAL}
        self._answered = {step.write: index for index, step in enumerate(steps) if step.what is What.OUTCOME}
        self._writes = {write: plan.writes[write][1].request or {} for write in sorted(self._arrived)}
        self._begins = self._run_begins()
        """Where runs of records begin of which all that was seen is the same: one stands for all of them."""
        self._acknowledged: dict[int, int] = {}
        """The indexes of the acknowledgements to which writes belong."""
        self._expired: set[int] = set()
        """The writes of locks that have expired."""

    def ordered(self) -> list[Step]:
        """Return the steps in order."""
        self._match_acknowledgements()
        changes = self._changes()
        self._find_expired(changes)
        self._order_requests()
        self._order_writes(changes)
        firsts = self._order_changes(changes)
        self._order_heads(changes)
        self._order_room(changes, firsts)
        preferred_us = [step.at_us for step in self._steps]
        self._sort(preferred_us)
        self._narrow()
        available = list(self._available(changes))
        for _ in range(_ROUNDS):
            if not self._order_passed_over(available):
                break
            self._sort(preferred_us)
            self._narrow()
        self._sort(self._preferred_us())
        for _ in range(_ROUNDS):
            if not self._order_by_nearness(available):
                break
            self._sort(preferred_us)
            self._narrow()
            self._sort(self._preferred_us())
        return self._sorted_steps()

    @property
    def _may_go_on(self) -> bool:
        """Whether more may be looked for: the search has to have something left, too."""
        return not self._budget.has_spent(self._part)

    # ---- runs of records

    def _run_begins(self) -> list[int]:
        begins: set[int] = set()
        for step in self._steps:
            begins.update(offset for first, last, _ in _acquired(step) for offset in (first, last + 1))
        for request in self._writes.values():
            begins.add(request["start_offset"])
            begins.update(offset for first, last, *_ in request["state_batches"] for offset in (first, last + 1))
        return sorted(begins)

    def _runs(self, first_offset: int, last_offset: int) -> list[int]:
        """Return where the runs begin in a range."""
        return self._begins[bisect_left(self._begins, first_offset) : bisect_right(self._begins, last_offset)]

    def _end(self, run: int) -> int:
        """Return the offset after a run, which is not the last one."""
        return self._begins[bisect_right(self._begins, run)]

    # ---- what is known

    def _put(self, first: int | None, then: int | None) -> bool:
        """Put one step before another one unless their times forbid it; return whether that was not known."""
        if first is None or then is None or first == then or then in self._after[first]:
            return False
        if self._earliest_us[first] > self._latest_us[then]:
            return False
        self._after[first].add(then)
        return True

    def _comes_after(self, first: int, then: int) -> bool:
        """Return whether it is known that one step comes after another one."""
        limit_us = self._latest_us[then]
        seen = {first}
        todo = [first]
        is_after = False
        while todo and not is_after:
            after = self._after[todo.pop()]
            is_after = then in after
            new = [index for index in after if index not in seen and self._earliest_us[index] <= limit_us]
            seen.update(new)
            todo += new
        self._budget.spend(len(seen))
        return is_after

    def _may_put(self, first: int, then: int) -> bool:
        """Return whether one step may come before another one, as far as is known."""
        return self._earliest_us[first] <= self._latest_us[then] and not self._comes_after(then, first)

    # ---- what comes before what

    def _order_requests(self) -> None:
        """Order the requests of each connection, by their numbers."""
        requests: dict[str, list[tuple[int, What, int]]] = defaultdict(list)
        for index, step in enumerate(self._steps):
            if step.what in _OF_MEMBERS and step.event.connection is not None:
                requests[step.event.connection].append((step.event.request_no or 0, step.what, index))
        for each in requests.values():
            each.sort()
            for (*_, first), (*_, then) in pairwise(each):
                self._put(first, then)

    def _order_writes(self, changes: dict[int, list[_Change]]) -> None:
        """Order what has issued the writes, and their answers."""
        for write, arrived in self._arrived.items():
            self._put(self._acknowledged.get(write), arrived)
            self._put(self._issued(write), self._answered.get(write))
        for first, then in pairwise(self._order_of_changes(changes)):
            self._put(self._issued(first), self._issued(then))
        for first, then in pairwise(sorted(self._answered)):
            self._put(self._answered[first], self._answered[then])

    def _order_of_changes(self, changes: dict[int, list[_Change]]) -> list[int]:
        """
        Return the writes in the order in which records have changed.

        That is the order in which they were sent, but for those that others have overtaken: the delivery complete
        counts of the others have what these say.
        """
        left = self._heads(changes)
        total = self._complete
        if total is None:
            total = left[0].total - left[0].completed if left else 0
        found: list[int] = []
        while left:
            head = _next_head(left, total)
            if head is None:  # something else has completed records, or what has was not written
                head = left[0]
                total = head.total - head.completed
            elif head is not left[0]:
                self._allow(head.write, Allowed.OVERTAKEN)
            left.remove(head)
            found.append(head.write)
            total += head.completed
        return found

    def _heads(self, changes: dict[int, list[_Change]]) -> list[_Head]:
        """Return what the writes say of how many records are complete."""
        finished = {run: self._end(run) - run for run, each in changes.items() if each[-1].is_terminal}
        heads: list[_Head] = []
        passed, before = 0, None
        for write, request in self._writes.items():
            start: int = request["start_offset"]
            sizes: list[int] = [
                finished.get(run, 0) for run in self._runs(start if before is None else before, start - 1)
            ]
            passed += sum(sizes)
            before = start if before is None else max(start, before)
            batches = request["state_batches"]
            completed = sum(  # what lies below the SPSO is not counted
                max(last - max(first, start) + 1, 0) for first, last, state, _ in batches if state in _TERMINAL
            )
            issued = self._steps[self._issued(write)]
            total = passed + request["delivery_complete_count"]
            heads.append(_Head(write, completed, total, issued.earliest_us, issued.latest_us))
        return heads

    def _allow(self, write: int, allowed: Allowed) -> None:
        index = self._issued(write)
        self._steps[index] = self._steps[index]._replace(allowed=allowed)

    def _find_expired(self, changes: dict[int, list[_Change]]) -> None:
        """Find the writes of locks that have expired; others that no member asked for are of sessions that ended."""
        for each in changes.values():
            for one, other in pairwise(each):
                if one.is_written or not other.is_written or other.number in self._acknowledged:
                    continue
                fetch = self._steps[one.number]
                lock_us = (fetch.event.response or {}).get("lock_ms", MAX_INT64) * 1000
                if fetch.at_us + lock_us <= self._latest_us[self._arrived[other.number]]:
                    self._expired.add(other.number)

    def _issued(self, write: int) -> int:
        """Return the step that has issued a write: an acknowledgement, or its arrival if a lock has expired."""
        return self._acknowledged.get(write, self._arrived[write])

    def _match_acknowledgements(self) -> None:
        """Find the writes of acknowledgements: they say the same of the same records."""
        unmatched: dict[_Records, list[int]] = defaultdict(list)
        for write, request in self._writes.items():
            unmatched[self._written(request)].append(write)
        for index, key in self._acknowledgements():
            writes = unmatched.get(key, [])
            for write in writes:
                arrived_us = self._steps[self._arrived[write]].at_us
                if self._earliest_us[index] <= arrived_us <= self._latest_us[index]:
                    self._acknowledged[write] = index
                    writes.remove(write)
                    break

    def _written(self, request: dict[str, Any]) -> _Records:
        """Return the records of a write, each with its delivery count, and whether it was accepted."""
        return tuple(
            sorted(
                (run, count, bool(state == RecordState.ACKNOWLEDGED))
                for first, last, state, count in request["state_batches"]
                for run in self._runs(first, last)
            )
        )

    def _acknowledgements(self) -> Iterator[tuple[int, _Records]]:
        """Yield the acknowledgements that were accepted, with what has to be written."""
        held: dict[str | None, dict[int, int]] = defaultdict(dict)
        for index, step in enumerate(self._steps):
            request, response = step.event.request or {}, step.event.response or {}
            records = held[step.event.member_id]
            if step.what is What.FETCH:
                for first, last, count in _acquired(step):
                    records.update(dict.fromkeys(self._runs(first, last), count))
            elif step.what is What.ACKNOWLEDGE and "error" not in response:
                key = tuple(
                    sorted(
                        (run, records[run], bool(type_ == AcknowledgeType.ACCEPT))
                        for first, last, types in request["batches"]
                        for run in self._runs(first, last)
                        if run in records
                        and (type_ := types[run - first] if len(types) > 1 else types[0]) != AcknowledgeType.RENEW
                    )
                )
                if key:
                    yield index, key

    def _changes(self) -> dict[int, list[_Change]]:
        """Return what was seen of each record."""
        changes: dict[int, list[_Change]] = defaultdict(list)
        for index, step in enumerate(self._steps):
            if step.what is What.FETCH:
                for first, last, count in _acquired(step):
                    change = _Change(count, is_written=False, number=index, is_terminal=False)
                    for run in self._runs(first, last):
                        changes[run].append(change)
        for write, request in self._writes.items():
            for first, last, state, count in request["state_batches"]:
                change = _Change(count, is_written=True, number=write, is_terminal=state in _TERMINAL)
                for run in self._runs(first, last):
                    changes[run].append(change)
        for each in changes.values():
            each.sort()
        return changes

    def _order_changes(self, changes: dict[int, list[_Change]]) -> list[tuple[int, int]]:
        """Order what was seen of each record; and the first acquisitions of records, which ascend."""
        firsts = []
        for offset, each in changes.items():
            if not each[0].is_written:
                firsts.append((offset, each[0].number))
            for one, other in pairwise(each):
                if other.is_written:
                    self._put(self._issued(one.number) if one.is_written else one.number, self._issued(other.number))
                elif one.is_written and other.deliveries == one.deliveries + 1:
                    self._put(self._taken_back(one.number), other.number)
        firsts.sort()
        for (_, first), (_, then) in pairwise(firsts):
            self._put(first, then)
        return firsts

    def _taken_back(self, write: int) -> int | None:
        """Return the step after which the records of a write may be available; the SPSO waits for its answer."""
        # A lock that has expired takes them from their owner whatever becomes of the write.
        return self._arrived[write] if write in self._expired else self._answered.get(write)

    def _order_heads(self, changes: dict[int, list[_Change]]) -> None:
        """Order writes by the start offset that each of them names: the records before it were finished."""
        finished = {offset: each[-1].number for offset, each in changes.items() if each[-1].is_terminal}
        begin = None
        ends: set[tuple[int | None, int]] = set()
        for write, request in self._writes.items():
            start = request["start_offset"]
            holding = finished.get(start, write)
            if holding != write:
                self._put(self._issued(write), self._answered.get(holding))
            for run in self._runs(start if begin is None else begin, start - 1):
                if finished.get(run, write) < write:
                    ends.add((self._answered.get(finished[run]), self._issued(write)))
            begin = start if begin is None else max(begin, start)
        for first, then in ends:  # unless the head was read later than the change was made
            if first is not None and self._may_put(first, then):
                self._put(first, then)

    def _order_room(self, changes: dict[int, list[_Change]], firsts: list[tuple[int, int]]) -> None:
        """Order the first acquisitions after what has made room for them."""
        finished = {offset: each[-1].number for offset, each in changes.items() if each[-1].is_terminal}
        begin = firsts[0][0] if firsts else 0
        end = begin - 1
        for fetch, runs in groupby(firsts, key=itemgetter(1)):
            offsets = [offset for offset, _ in runs]
            start = end - self._room + 2  # where the SPSO has to be for one more
            if offsets[0] == _acquired(self._steps[fetch])[0].first_offset:
                for run in self._runs(begin, start - 1):
                    first = self._answered.get(finished[run]) if run in finished else None
                    if first is not None and self._may_put(first, fetch):
                        self._put(first, fetch)
                begin = max(begin, start)
            end = self._end(offsets[-1]) - 1

    # ---- records that were passed over

    def _available(self, changes: dict[int, list[_Change]]) -> Iterator[tuple[int, int, int]]:
        """Yield the times at which records were available: from after a step, up to another one, and the first one."""
        found: dict[tuple[int, int], int] = {}
        for offset, each in changes.items():
            for one, other in pairwise(each):
                since = self._taken_back(one.number) if one.is_written and not other.is_written else None
                if since is not None:
                    span = since, other.number
                    found[span] = min(offset, found.get(span, offset))
        for (since, until), offset in found.items():
            yield since, until, offset

    def _order_passed_over(self, available: list[tuple[int, int, int]]) -> bool:
        """Order fetches and the times at which records were available that they have passed over."""
        earliest_us, latest_us = self._earliest_us, self._latest_us
        fetches = sorted(
            (index for index, step in enumerate(self._steps) if _acquired(step)), key=latest_us.__getitem__
        )
        to_come = list(accumulate((earliest_us[fetch] for fetch in reversed(fetches)), min))
        spans = sorted(available, key=lambda span: earliest_us[span[0]], reverse=True)
        current: list[tuple[int, int, int]] = []
        has_found = False
        for fetch in fetches:
            while spans and earliest_us[spans[-1][0]] <= latest_us[fetch]:
                current.append(spans.pop())
            least_us = to_come.pop()
            current = [span for span in current if latest_us[span[1]] >= least_us]
            last = _acquired(self._steps[fetch])[-1].last_offset
            for since, until, offset in current:
                if offset <= last and until != fetch and latest_us[until] >= earliest_us[fetch]:
                    has_found |= self._put_outside(fetch, since, until)
            if not self._may_go_on:
                return False
        return has_found

    def _put_outside(self, fetch: int, since: int, until: int) -> bool:
        """Put a fetch before or after a time at which it would have acquired more, if only one is possible."""
        if (fetch, since, until) in self._placed:
            return False
        may_be_before = self._may_put(fetch, since)
        may_be_after = self._may_put(until, fetch)
        if may_be_before == may_be_after:
            return False
        self._placed.add((fetch, since, until))
        return self._put(fetch, since) if may_be_before else self._put(until, fetch)

    def _order_by_nearness(self, available: list[tuple[int, int, int]]) -> bool:
        """Put fetches that lie where they would have acquired something else before or after that: what is nearer."""
        places = {index: place for place, index in enumerate(self._order)}
        times_us = self._preferred_us()
        fetches = sorted((places[index], index) for index, step in enumerate(self._steps) if _acquired(step))
        has_found = False
        for since, until, offset in available:
            within = slice(bisect_left(fetches, (places[since], 0)), bisect_left(fetches, (places[until], 0)))
            for _, fetch in fetches[within]:
                if offset > _acquired(self._steps[fetch])[-1].last_offset:
                    continue
                before = times_us[fetch] - times_us[since], fetch, since
                after = times_us[until] - times_us[fetch], until, fetch
                for _, first, then in sorted((before, after)):
                    if self._may_put(first, then):
                        has_found |= self._put(first, then)
                        break
            if not self._may_go_on:
                return False
        return has_found

    # ---- the order

    def _narrow(self) -> None:
        """Narrow the time of each step by those of the steps that come before and after it."""
        earliest_us, latest_us = self._earliest_us, self._latest_us
        for index in self._order:
            for then in self._after[index]:
                earliest_us[then] = max(earliest_us[then], min(earliest_us[index], latest_us[then]))
        for index in reversed(self._order):
            for then in self._after[index]:
                latest_us[index] = min(latest_us[index], max(latest_us[then], earliest_us[index]))

    def _sort(self, preferred_us: list[int]) -> None:
        """Sort the steps by what comes before what, else by time; forget what contradicts the rest."""
        before = [0] * len(self._steps)
        for after in self._after:
            for then in after:
                before[then] += 1
        by_time = sorted(range(len(self._steps)), key=lambda index: (preferred_us[index], self._steps[index].order))
        rank = [0] * len(by_time)
        for place, index in enumerate(by_time):
            rank[index] = place
        ready = [rank[index] for index in by_time if not before[index]]
        left = iter(by_time)
        self._order = []
        is_sorted = [False] * len(by_time)
        while len(self._order) < len(by_time):
            index = by_time[heappop(ready)] if ready else next(each for each in left if not is_sorted[each])
            if is_sorted[index]:
                continue
            is_sorted[index] = True
            self._order.append(index)
            for then in list(self._after[index]):
                if is_sorted[then]:
                    self._after[index].remove(then)
                    continue
                before[then] -= 1
                if not before[then]:
                    heappush(ready, rank[then])

    def _sorted_steps(self) -> list[Step]:
        """Return the steps in the order that was found, with times that ascend."""
        preferred_us = self._preferred_us()
        self._sort(preferred_us)
        times_us = accumulate(map(preferred_us.__getitem__, self._order), max)
        return [self._steps[index]._replace(at_us=at_us) for index, at_us in zip(self._order, times_us, strict=True)]

    def _preferred_us(self) -> list[int]:
        """Return the preferred time of each step: no later than that of any that comes after it."""
        earliest_us = [step.earliest_us for step in self._steps]
        latest_us = [step.latest_us for step in self._steps]
        for index in self._order:
            for then in self._after[index]:
                earliest_us[then] = max(earliest_us[then], earliest_us[index])
        for index in reversed(self._order):
            for then in self._after[index]:
                latest_us[index] = min(latest_us[index], latest_us[then])
        preferred_us = [
            min(max(step.at_us, earliest), latest)
            for step, earliest, latest in zip(self._steps, earliest_us, latest_us, strict=True)
        ]
        for index in reversed(self._order):
            preferred_us[index] = min((preferred_us[index], *map(preferred_us.__getitem__, self._after[index])))
        return preferred_us


def _next_head(left: list[_Head], total: int) -> _Head | None:
    """
    Return which of the writes that are left has changed records next, *total* of which are complete.

    The number of those that are complete only grows, so it is the one that says the least of those that fit; if none
    does, one whose head was read so late that the first one fits after it. None if it is not a matter of order.
    """
    first, near = left[0], left[:MOST_OVERTAKEN]
    behind = [at for at, head in enumerate(near) if head.total < first.total]
    is_fitting = total + first.completed == first.total
    if is_fitting and not behind:
        return first
    sums = list(accumulate((head.completed for head in near), initial=total))[1:]
    ends = range(max(behind, default=1), len(near))
    if not any(near[at].total == sums[at] for at in ends):  # it stays so: nothing to do with the order
        return first if is_fitting else None
    at_the_time = [head for head in near if head.earliest_us <= first.latest_us]
    fitting = [head for head in at_the_time if total + head.completed == head.total]
    if fitting:
        return min(fitting, key=attrgetter("total"))
    return next((head for head in at_the_time[1:] if total + head.completed + first.completed == first.total), first)


_TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


def _acquired(step: Step) -> tuple[AcquiredRecords, ...]:
    """Return what a step has acquired."""
    if step.what is not What.FETCH:
        return ()
    acquired: tuple[AcquiredRecords, ...] = (step.event.response or {}).get("acquired", ())
    return acquired
