"""
The order in which writes have changed records, as far as it follows from the delivery complete counts that they name.

Other threads may send a write before one that was issued earlier; but how many records are complete only grows until
the SPSO passes them.
"""

from __future__ import annotations

from itertools import accumulate, takewhile
from operator import attrgetter
from typing import Final, NamedTuple

from sharestate.log_check.budget import Budget
from sharestate.log_check.partial_order import PartialOrder
from sharestate.log_check.schedule import Allowed
from sharestate.log_check.seen_records import TERMINAL, SeenRecords

_LIKELY: Final = 8
"""Among how many writes the next one is looked for at first; most are overtaken by one, and one was by 11. [writes]"""


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


def writes_in_order(known: PartialOrder, seen: SeenRecords, complete: int | None, budget: Budget) -> list[int]:
    """
    Return the writes in the order in which records have changed.

    That is the order in which they were sent, with overtaken writes moved back: a later count already includes theirs.
    The steps that issued them are allowed the counts of their new places.

    Args:
        known: The steps; some of them are changed.
        seen: What was seen of each record.
        complete: How many records are complete as the state is read; None if some are that no write will name.
        budget: What the check may cost.

    Complexity:
        O(n * m) for n writes, each of which m others may have overtaken: those that may have been issued by then.
    """
    left = _heads(known, seen)
    total = complete
    if total is None:
        total = left[0].total - left[0].completed if left else 0
    found: list[int] = []
    while left:
        head = _next_head(left[:_LIKELY], total)
        if head is None or (head is left[0] and total + head.completed != head.total):
            near = list(takewhile(lambda each: each.earliest_us <= left[0].latest_us, left))  # may be issued by then
            budget.spend(len(near))
            if len(near) > _LIKELY:
                head = _next_head(near, total)
            if head is None:
                head = _next_but_for_others(near, total)
                total = head.total - head.completed
        if head is not left[0]:
            index = seen.issued(head.write)
            known.steps[index] = known.steps[index]._replace(allowed=Allowed.OVERTAKEN)
        left.remove(head)
        found.append(head.write)
        total += head.completed
    return found


def _heads(known: PartialOrder, seen: SeenRecords) -> list[_Head]:
    """Return what the writes say of how many records are complete, in the order in which they were sent."""
    heads: list[_Head] = []
    passed, before = 0, None
    for write, request in seen.writes.items():
        start: int = request["start_offset"]
        runs = seen.runs(start if before is None else before, start - 1)
        passed += sum(seen.end(run) - run for run in runs if run in seen.finished)
        before = start if before is None else max(start, before)
        completed = sum(  # what lies below the SPSO is not counted
            max(last - max(first, start) + 1, 0)
            for first, last, state, _ in request["state_batches"]
            if state in TERMINAL
        )
        issued = known.steps[seen.issued(write)]
        total = passed + request["delivery_complete_count"]
        heads.append(_Head(write, completed, total, issued.earliest_us, issued.latest_us))
    return heads


def _next_but_for_others(near: list[_Head], total: int) -> _Head:
    """
    Return which write has changed records next, where something else has completed some, or what has was not written.

    That is what happens to aborted records. A count that is less than the first one's was read before it.
    """
    first = near[0]
    before = [
        head
        for head in near
        if total + head.completed <= head.total <= first.total - first.completed and head.total < first.total
    ]
    return min(before, key=attrgetter("total"), default=first)


def _next_head(near: list[_Head], total: int) -> _Head | None:
    """
    Return which of the writes that are left has changed records next, *total* of which are complete.

    The number of those that are complete only grows, so it is the one that says the least of those that fit; if none
    does, one whose head was read so late that the first one fits after it. None if it is not a matter of order.
    """
    first = near[0]
    behind = [at for at, head in enumerate(near) if head.total < first.total]
    is_fitting = total + first.completed == first.total
    if is_fitting and not behind:
        return first
    sums = list(accumulate((head.completed for head in near), initial=total))[1:]
    ends = range(max(behind, default=1), len(near))
    if not any(near[at].total == sums[at] for at in ends):  # it stays so: nothing to do with the order
        return first if is_fitting else None
    now = [head for head in near if head.earliest_us <= first.latest_us]
    fitting = [head for head in now if total + head.completed == head.total]
    if fitting:
        return min(fitting, key=attrgetter("total"))
    return next((head for head in now[1:] if total + head.completed + first.completed == first.total), first)
