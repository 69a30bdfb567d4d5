"""
Which step may be moved where: other orders of some steps, in which one of them is moved, the likely ones first.

What was needed of a bound at the most was needed in fourteen runs of 4.3.1 and 4.4.0: hot, of three brokers, killed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from attrs import define

from sharestate.log_check.deciding_steps import acquiring_steps, deciding_steps
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import FACTS, LATE_US, LIVES, Allowed, Step, What
from sharestate.log_check.search_state import Saved

MOST_BACK: Final = 40
"""How many steps one is moved back at the most; those of writes sent together are one; 15 were needed. [steps]"""

MOST_BACK_US: Final = 400_000
"""How far it is moved back at the most; 191 ms were needed on a hot partition of 4.4.0. [µs]"""

MOST_AHEAD: Final = 12
"""How many steps after one that does not fit may be those that are blocked; 11 were needed. [steps]"""

MOST_LATER: Final = 20
"""How many steps before one that does not fit may be those that came too early; 18 were needed. [steps]"""

MOST_DECIDING_PLACES: Final = 4
"""To how many places a step is moved first that decides what does not fit: each may be followed by as many. [steps]"""

MOST_ANSWERS: Final = 6
"""Before how many answers to writes locks may have expired that seem to have, and have not: 2 at once. [steps]"""

MOST_WAYS: Final = 3
"""How many ways to read are skipped at the most; one was needed."""

BEFORE_OTHERS: Final = 24
"""How many moves are tried before more is allowed for the step that does not fit; half of the places need 3."""

_NOT_MOVED: Final = (FACTS - {What.LOG_START}) | LIVES


class Order(NamedTuple):
    """
    Another order of some steps.

    Attributes:
        place: The index of the first step that is another one.
        steps: The steps from there on, to the last one that is moved or was blocked.
    """

    place: int
    steps: list[Step]


@define
class Tip:
    """How far an order of steps fits: up to a step that does not."""

    steps: list[Step]
    """The steps around the place where the search looks for an order, in this order."""

    saved: list[Saved]
    """The share partition before each of the steps that fit, and before the one that does not."""

    place: int = 0
    """The index of the first step of its own: what was saved before it belongs to the order that it was made of."""

    mismatch: Mismatch | None = None
    """What did not fit; None if all steps did that were taken."""

    undecided: int = 0
    """How many fetches without records were left undecided so that the order fits. [fetches]"""

    @property
    def held(self) -> int:
        """How much of its own it holds. [work]"""
        return sum(saved.size for saved in islice(self.saved, self.place + 1, None))

    @property
    def index(self) -> int:
        """The index of the step that does not fit; the number of steps that do."""
        return len(self.saved) - 1

    @property
    def rank(self) -> tuple[int, bool, int, int]:
        """
        How well it explains what was observed; the highest is the best.

        A write whose head is still to be seen is not explained yet: it may never be.
        """
        return -self.undecided, self.mismatch is None, -len(self.saved[-1].issued.late), self.index

    def has_taken(self, step: Step) -> bool:
        """Return whether a step, or that with more allowed, is one of those that fit."""
        fitting = islice(self.steps, self.index)
        return any(each.line == step.line and each.what is step.what for each in fitting)

    def reordered(self, order: Order) -> list[Step]:
        """Return the steps in another order."""
        return [*self.steps[: order.place], *order.steps, *self.steps[order.place + len(order.steps) :]]


def other_orders(tip: Tip) -> Iterator[Order]:
    """Yield other orders of the last steps and the next ones, the likely ones first."""
    blocked = tip.steps[tip.index]
    yield from deciding_orders(tip)
    moved = orders_with_a_move(tip)
    yield from islice(moved, BEFORE_OTHERS)
    if blocked.may_be_undecided:
        yield Order(tip.index, [blocked._replace(allowed=Allowed.UNDECIDED)])
    elif blocked.allowed is not Allowed.UNDECIDED:
        for allowed in {Allowed.NOTHING, Allowed.LATE_HEAD, Allowed.OVERTAKEN} - {blocked.allowed}:
            yield Order(tip.index, [blocked._replace(allowed=allowed)])
    yield from _without_queued(tip)
    yield from moved
    for at in range(tip.index, max(tip.index - MOST_BACK, 0) - 1, -1):
        yield from _another_way(tip.steps, at, tip.index)
    yield from _older_locks(tip)


def deciding_orders(tip: Tip) -> Iterator[Order]:
    """Yield orders in which a step is moved that decides what did not fit: an earlier one later, a later one before."""
    if tip.mismatch is None:
        return
    steps, index = tip.steps, tip.index
    least_us = steps[index].at_us - MOST_BACK_US
    for at in deciding_steps(steps, index, tip.mismatch):
        if at > index:
            yield from islice(_earlier(tip, at, least_us, LATE_US), MOST_DECIDING_PLACES)
            continue
        if tip.mismatch.what == "write":
            yield from _another_way(steps, at, index)
        yield from _later(steps, at, index)
        yield from _before(steps, at, index)


def _before(steps: list[Step], at: int, index: int) -> Iterator[Order]:
    """Yield the order in which the step that does not fit comes before another, with those that have to come first."""
    blocked = steps[index]
    if _has_order(steps[at], blocked) or not _may_be_before(blocked, steps[at]):
        return
    block = [step for step in steps[at:index] if _has_order(step, blocked)]
    rest = [step for step in steps[at:index] if not _has_order(step, blocked)]
    if all(step.what not in LIVES for step in rest):
        yield Order(at, [*block, blocked, *rest])


def _without_queued(tip: Tip) -> Iterator[Order]:
    """Yield orders in which no lock has expired before the answers to the last writes."""
    steps, index = tip.steps, tip.index
    answers = [at for at in range(index, max(index - MOST_LATER, 0) - 1, -1) if steps[at].what is What.OUTCOME]
    for at in answers[:MOST_ANSWERS]:
        if not steps[at].way:
            later = steps[at : index + 1]
            yield Order(at, [step._replace(way=1) if step.what is What.OUTCOME else step for step in later])


def _another_way(steps: list[Step], at: int, index: int) -> Iterator[Order]:
    """Yield the order in which a fetch has read something else, with the same answer."""
    if steps[at].what is What.FETCH and steps[at].way < MOST_WAYS:
        yield Order(at, [steps[at]._replace(way=steps[at].way + 1), *steps[at + 1 : index + 1]])


def _older_locks(tip: Tip) -> Iterator[Order]:
    """Yield orders in which a fetch comes earlier, whose lock has expired before others that seem to be older."""
    steps, index = tip.steps, tip.index
    for at in () if tip.mismatch is None else acquiring_steps(steps, index, tip.mismatch):
        yield from islice(_earlier(tip, at, steps[at].at_us - MOST_BACK_US, LATE_US), MOST_DECIDING_PLACES)


def orders_with_a_move(tip: Tip, late_us: int = LATE_US) -> Iterator[Order]:
    """
    Yield orders in which a step is moved; the times of the log are late by *late_us* at the most.

    In turn the one that does not fit comes earlier, or later, or one after it comes first, or one before it later: each
    of them not far at first. Then those before it come earlier; the read of the state last, past what it was for.
    """
    steps, index = tip.steps, tip.index
    least_us = steps[index].at_us - MOST_BACK_US
    of_others = (
        _sooner_others(tip, least_us, late_us),
        chain.from_iterable(_later(steps, at, index) for at in _movable_before(steps, index, MOST_LATER)),
    )
    if steps[index].what in _NOT_MOVED:
        yield from _in_turn(*of_others)
    else:
        later = iter(()) if steps[index].write >= 0 else _last(steps, index)
        yield from _in_turn(_earlier(tip, index, least_us, late_us), later, *of_others)
    for at in _movable_before(steps, index, MOST_BACK):
        if steps[at].at_us >= least_us:
            yield from _earlier(tip, at, least_us, late_us)
    yield from _sooner_reads(steps, index, late_us)


def _sooner_reads(steps: list[Step], index: int, late_us: int) -> Iterator[Order]:
    """Yield orders in which the state was read before fetches that seem to have been answered by then."""
    for at in range(max(index - MOST_BACK, 0), min(index + MOST_AHEAD, len(steps))):
        place = at if steps[at].what is What.INITIALIZE else 0
        while place and steps[place - 1].what not in LIVES and _may_be_before(steps[at], steps[place - 1], late_us):
            place -= 1
            if place <= index and steps[place].what is What.FETCH:
                yield Order(place, [steps[at], *steps[place:at], *steps[at + 1 : index + 1]])


def _movable_before(steps: list[Step], index: int, most: int) -> list[int]:
    """Return the indexes of the last steps before one that may be moved, the last one first."""
    return [at for at in range(index - 1, max(index - most, 0) - 1, -1) if steps[at].what not in _NOT_MOVED]


def _sooner_others(tip: Tip, least_us: int, late_us: int) -> Iterator[Order]:
    """Yield orders in which a step after the one that does not fit comes first; right before it is the likely place."""
    movable = [at for at in _movable(tip, late_us) if at > tip.index and tip.steps[at].what not in _NOT_MOVED]
    for at in movable:
        yield from islice(_earlier(tip, at, least_us, late_us), 1)
    for at in movable:
        yield from islice(_earlier(tip, at, least_us, late_us), 1, None)


def _in_turn(*orders: Iterator[Order]) -> Iterator[Order]:
    """Yield one of each in turn, as long as there are any."""
    left = deque(orders)
    while left:
        order = next(left[0], None)
        if order is None:
            left.popleft()
        else:
            yield order
            left.rotate(-1)


def _movable(tip: Tip, late_us: int) -> Iterator[int]:
    """Yield the indexes of the steps that may be those to move, the likely ones first."""
    steps, index = tip.steps, tip.index
    blocked = steps[index]
    if blocked.what is What.ARRIVAL:  # of writes that were sent together, most often all were issued before
        last = index
        while last + 1 < len(steps) and _is_in_one_request(blocked, steps[last + 1]):
            last += 1
        if last > index:
            yield last
    for at in range(index, len(steps)):
        is_near = at < index + MOST_AHEAD and steps[at].at_us <= blocked.latest_us + 2 * late_us
        if is_near or steps[at].at_us <= blocked.at_us:  # or it was moved to a later place
            yield at


def _earlier(tip: Tip, at: int, least_us: int, late_us: int) -> Iterator[Order]:
    """Yield orders in which a step, and the requests before it in its connection, come earlier."""
    steps, index, moved = tip.steps, tip.index, tip.steps[at]
    block = [step for step in steps[index:at] if _has_order(step, moved)]
    rest = [step for step in steps[index:at] if not _has_order(step, moved)]
    rest += [] if at >= index else steps[at + 1 : index + 1]
    block.append(moved)
    if at > index and not all(_may_be_before(moved, step, late_us) for step in rest):
        return
    if at > index and rest:
        yield Order(index, [*block, *rest])
    places = 0
    for place in range(min(at, index) - 1, -1, -1):
        before = steps[place]
        if before.at_us < least_us or not _may_be_before(moved, before, late_us):
            return
        if before.what in LIVES and not all(step.may_be_undecided for step in block):
            return  # before it nothing is known, and anything would fit
        if _has_order(before, moved):
            block.insert(0, before)
            continue
        rest.insert(0, before)
        if before.what is What.ARRIVAL and place and _is_in_one_request(steps[place - 1], before):
            continue  # of outcomes each takes effect by itself
        if not _has_start(tip.saved[place], moved):
            continue
        places += 1
        yield Order(place, [*block, *rest])
        if places == MOST_BACK:
            return


def _last(steps: list[Step], index: int) -> Iterator[Order]:
    """Yield orders in which the step that does not fit, with those after it in its connection, comes later."""
    blocked = steps[index]
    places = 0
    while (
        places < MOST_BACK
        and index + places + 1 < len(steps)
        and steps[index + places + 1].at_us <= blocked.latest_us + LATE_US
        and steps[index + places + 1].what not in LIVES
    ):
        places += 1
    for last in range(index + 1, index + places + 1):
        block = [blocked, *(step for step in steps[index + 1 : last + 1] if _has_order(blocked, step))]
        rest = [step for step in steps[index + 1 : last + 1] if not _has_order(blocked, step)]
        if rest and rest[-1] is steps[last]:
            yield Order(index, [*rest, *block])


def _later(steps: list[Step], at: int, index: int) -> Iterator[Order]:
    """Yield the order in which a step, and those that have to come after it, come after the one that does not fit."""
    moved, blocked = steps[at], steps[index]
    if _has_order(moved, blocked) or not _may_be_before(blocked, moved):
        return
    block = [moved]
    rest: list[Step] = []
    for step in steps[at + 1 : index + 1]:
        (block if _has_order(moved, step) or _are_answers(moved, step) else rest).append(step)
    if all(step.what not in LIVES and _may_be_before(step, moved) for step in rest):
        yield Order(at, [*rest, *block])


def _has_start(saved: Saved, step: Step) -> bool:
    """Return whether a write can have been issued there: it says what the SPSO was."""
    if step.what is not What.ARRIVAL or saved.partition is None:
        return True
    request = step.event.request or {}
    return saved.partition.start_offset == int(request["start_offset"])


def _is_in_one_request(one: Step, other: Step) -> bool:
    """Return whether two steps are arrivals of writes in the same request: between them nothing has to come."""
    mine, its = one.event, other.event
    return (
        one.what is What.ARRIVAL
        and other.what is What.ARRIVAL
        and mine.request_no == its.request_no
        and mine.connection == its.connection
    )


def _has_order(one: Step, other: Step) -> bool:
    """Return whether two steps are of requests of one member's connection, which have an order."""
    mine, its = one.event.connection, other.event.connection
    return mine is not None and mine == its and one.write < 0 and other.write < 0


def _are_answers(one: Step, other: Step) -> bool:
    """Return whether two steps are answers to writes: they take effect in the order of the writes."""
    return one.what is What.OUTCOME and other.what is What.OUTCOME


def _may_be_before(moved: Step, other: Step, late_us: int = LATE_US) -> bool:
    """Return whether a step may have come before another one of another connection; outcomes have an order, too."""
    if moved.earliest_us - late_us > other.latest_us:
        return False
    return moved.write < 0 or other.write < 0 or What.ARRIVAL in {moved.what, other.what}
