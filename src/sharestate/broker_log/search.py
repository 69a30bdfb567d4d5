"""
The search for an order of steps in which everything fits that was observed.

The steps are taken in the preferred order. Where one does not fit, one of the steps that are blocked is moved to an
earlier place, the latest place first; what explains more is kept. Going back step by step would take exponential time:
locks that expire and outcomes of writes may come in any order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from attrs import define

from sharestate.broker_log.checked_partition import LATE_US, CheckedPartition, Mismatch, Saved
from sharestate.broker_log.schedule import Step, What

MOST_BACK: Final = 40
"""How many steps one is moved back at the most; those of writes that were sent together count as one. [steps]"""

MOST_PLACES: Final = 400
"""How many steps are kept to come back to. [steps]"""

MOST_BACK_US: Final = 400_000
"""How far it is moved back at the most. [µs]"""

MOST_AHEAD: Final = 12
"""How many steps after one that does not fit may be those that are blocked. [steps]"""

MOST_TRIES: Final = 400
"""How many orders are tried at one place."""

_FACTS: Final = frozenset({What.CONFIG, What.LOG, What.LOG_START})
_NOT_MOVED: Final = _FACTS | {What.INITIALIZE}


class Place(NamedTuple):
    """
    A place in an order of steps, with what it takes to come back to it.

    Attributes:
        at: The index of the step that is next.
        saved: The share partition before it.
    """

    at: int
    saved: Saved


@define
class Stop:
    """Where nothing fits."""

    step: Step
    """The first step that does not fit."""

    mismatch: Mismatch
    """What does not fit."""

    is_exhausted: bool
    """Whether everything was tried that the search knows."""

    tried: int
    """How many orders were tried."""

    passed_over: list[Step]
    """The steps from here to the next time that the state is read."""


class Search:
    """
    A search over the steps of one share partition.

    Args:
        checked: The share partition, before its first step.
        steps: The steps in the preferred order; at least one.

    Attributes:
        first: The first step.
        moves: How many steps were moved.
        passed_over: How many steps were not checked, because something before them did not fit.
    """

    def __init__(self, checked: CheckedPartition, steps: list[Step]) -> None:
        """Start before the first step."""
        self.first = steps[0]
        self.moves = self.passed_over = 0
        self._checked = checked
        self._steps = list(steps)
        self._places: deque[Place] = deque(maxlen=MOST_PLACES)
        self._index = 0

    @property
    def steps(self) -> list[Step]:
        """The steps in the order that was found so far."""
        return list(self._steps)

    def run(self) -> Stop | None:
        """Go on to the next stop; None at the end."""
        while self._index < len(self._steps):
            mismatch = self._take()
            if mismatch is None:
                continue
            tried = 0
            for tried, (steps, back) in enumerate(islice(self._orders(), MOST_TRIES), 1):  # noqa: B007 - used below
                if self._is_better(steps, back):
                    break
            else:
                return self._stop(mismatch, tried)
        return None

    def _take(self) -> Mismatch | None:
        """Take the next step; stay before it if it does not fit."""
        saved = self._checked.save()
        self._places.append(Place(self._index, saved))
        mismatch = self._checked.take(self._steps[self._index], saved)
        if mismatch is None:
            self._index += 1
        return mismatch

    def _orders(self) -> Iterator[tuple[list[Step], int]]:
        """Yield other orders of the last steps and the next ones, each with how many steps it goes back."""
        steps, index = self._steps, self._index
        blocked = steps[index]
        for at in self._movable():
            moved = steps[at]
            if moved.what in _NOT_MOVED or moved.at_us < blocked.at_us - MOST_BACK_US:
                continue
            yield from self._earlier(moved, at)

    def _earlier(self, moved: Step, at: int) -> Iterator[tuple[list[Step], int]]:
        """Yield orders in which a step, and the requests before it in its connection, come earlier."""
        steps, index = self._steps, self._index
        least_us = steps[index].at_us - MOST_BACK_US
        block = [step for step in steps[index:at] if _has_order(step, moved)]
        rest = [step for step in steps[index:at] if not _has_order(step, moved)]
        rest += [] if at >= index else steps[at + 1 : index + 1]
        block.append(moved)
        if at > index and rest:
            yield [*block, *rest], 0
        places = 0
        for place in range(min(at, index) - 1, index - len(self._places), -1):
            before = steps[place]
            if before.at_us < least_us or not _may_be_before(moved, before):
                return
            if _has_order(before, moved):
                block.insert(0, before)
                continue
            rest.insert(0, before)
            if _is_in_one_request(steps[place - 1], before) or not self._has_start(place, moved):
                continue
            places += 1
            yield [*block, *rest], index - place
            if places == MOST_BACK:
                return

    def _has_start(self, at: int, step: Step) -> bool:
        """Return whether a write can have been issued before the step *at*: it says what the SPSO was."""
        if step.what is not What.ARRIVAL:
            return True
        snapshot = self._places[at - self._index - 1].saved.snapshot
        return snapshot is None or snapshot.start_offset == (step.event.request or {})["start_offset"]

    def _movable(self) -> Iterator[int]:
        """Yield the indexes of the steps that may be those to move, the likely ones first."""
        steps, index = self._steps, self._index
        blocked = steps[index]
        if blocked.what is What.ARRIVAL:  # of writes that were sent together, most often all were issued before
            last = index
            while last + 1 < len(steps) and _is_in_one_request(blocked, steps[last + 1]):
                last += 1
            if last > index:
                yield last
        for at in range(index, min(index + MOST_AHEAD, len(steps))):
            if steps[at].at_us > blocked.latest_us + 2 * LATE_US:
                break
            yield at
        yield from range(index - 1, index - min(MOST_BACK, len(self._places)), -1)

    def _is_better(self, order: list[Step], back: int) -> bool:
        """Try an order; keep it if it explains more."""
        checked = self._checked
        index = self._index - back
        places = list(self._places)[: len(self._places) - back]
        checked.restore(places[-1].saved)
        saved = places[-1].saved
        found: list[Place] = []
        for at, step in enumerate(order):
            found.append(Place(index + at, saved))
            if checked.take(step, saved) is not None:
                checked.restore(self._places[-1].saved)
                return False
            saved = checked.save()
        self._steps[index : index + len(order)] = order
        self._places = deque([*places[:-1], *found], maxlen=MOST_PLACES)
        self._index = index + len(order)
        self.moves += 1
        return True

    def _stop(self, mismatch: Mismatch, tried: int) -> Stop:
        """Give up up to the next time that the state is read."""
        step = self._steps[self._index]
        self._checked.restore(self._places[-1].saved)
        self._checked.give_up()
        passed_over: list[Step] = []
        self._index += 1
        while self._index < len(self._steps) and self._steps[self._index].what is not What.INITIALIZE:
            after = self._steps[self._index]
            if after.what in _FACTS:
                self._checked.take(after, self._places[-1].saved)
            passed_over.append(after)
            self._index += 1
        self._places.clear()
        self.passed_over += len(passed_over)
        return Stop(step, mismatch, tried < MOST_TRIES, tried, passed_over)


def _is_in_one_request(one: Step, other: Step) -> bool:
    """Return whether two steps are about writes of the same request."""
    mine, its = one.event, other.event
    return (
        one.what is other.what
        and one.write >= 0
        and mine.request_no == its.request_no
        and mine.connection == its.connection
    )


def _has_order(one: Step, other: Step) -> bool:
    """Return whether two steps are of requests of one member's connection, which have an order."""
    mine, its = one.event.connection, other.event.connection
    return mine is not None and mine == its and one.write < 0 and other.write < 0


def _may_be_before(moved: Step, other: Step) -> bool:
    """Return whether a step may have come before another one of another connection; outcomes have an order, too."""
    if moved.earliest_us - LATE_US > other.latest_us:
        return False
    return moved.write < 0 or other.write < 0 or What.ARRIVAL in {moved.what, other.what}
