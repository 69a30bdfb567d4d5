"""
The search for an order of steps in which everything fits that was observed.

The steps are taken in the preferred order. Where one does not fit, steps are moved, not far at first: one of those that
are blocked to an earlier place, or one that came too early to a later one. If no move is enough, more are tried from
where each has led, up to three of them. Going back step by step would take exponential time: locks that expire and
outcomes of writes may come in any order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import accumulate, chain, islice
from typing import Final, NamedTuple

from attrs import define, field, frozen

from sharestate.log_check.budget import BudgetSpentError, Part
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import FACTS, LATE_US, LIVES, Allowed, Step, What
from sharestate.log_check.search_state import SNAPSHOT, Defect, Saved

MOST_BACK: Final = 40
"""How many steps one is moved back at the most; those of writes that were sent together count as one. [steps]"""

MOST_PLACES: Final = 400
"""How many steps are kept to come back to. [steps]"""

MOST_BACK_US: Final = 400_000
"""How far it is moved back at the most. [µs]"""

MOST_AHEAD: Final = 12
"""How many steps after one that does not fit may be those that are blocked. [steps]"""

MOST_LATER: Final = 20
"""How many steps before one that does not fit may be those that came too early. [steps]"""

STALLED_US: Final = 200_000
"""How late a time of the log may be if the broker's log or its processor has stalled. [µs]"""

LOOK_AHEAD: Final = 12
"""How many steps more have to fit for an order to be taken without looking for a better one. [steps]"""

MOST_MOVES: Final = 3
"""The most moves that are made at one place."""

MOST_TIPS: Final = 60
"""The most orders from which another move is tried."""

MOST_ORDERS: Final = 2_000
"""How many orders are tried from one of them."""

MOST_MORE_ORDERS: Final = 100
"""How many orders are tried from one of the others."""

MOST_HELD: Final = 150_000
"""How much is held to come back to at the places before, and twice that in the orders tried; 300 bytes each. [work]"""

MOST_WAYS: Final = 3
"""How many ways to read are passed over at the most."""

MOST_INVOLVED: Final = 16
"""How many steps may have come at the time of one that does not fit, so that it contradicts the rules. [steps]"""

MOST_BETTER: Final = 100
"""How many orders are tried to find a better one than one that explains more."""

MOST_DECIDING: Final = 12
"""The same for a fetch without records: most often nothing depends on it."""

MOST_NAMED: Final = 6
"""How many undecided fetches are named with what does not fit. [fetches]"""

BEFORE_OTHERS: Final = 24
"""How many moves are tried before more is allowed for the step that does not fit."""

_PARTS: Final = 2
"""What part of the budget that is left the search at one place may take: the rest is for those to come."""

_ORDER: Final = 40
"""What an order costs beside its steps. [work]"""

_NOT_MOVED: Final = FACTS | LIVES


@frozen(kw_only=True)
class Stop:
    """Where nothing fits."""

    step: Step
    """The first step that does not fit."""

    mismatch: Mismatch
    """What does not fit."""

    is_exhausted: bool
    """
    Whether every order with one move was tried, and so few steps have come at that time that these are most that there
    are: of the orders with more moves only the likely ones are tried.
    """

    tried: int
    """How many orders were tried."""

    further: int
    """How many steps more than before fitted in the one that got the furthest. [steps]"""

    furthest: Step
    """The step that did not fit in that."""

    undecided: list[Step]
    """The last fetches before it that are undecided: what they have done may be what does not fit."""

    bound: str | None
    """Why the check of the share partition ends there for good; None if it goes on when the state is read again."""

    suspects: tuple[Defect, ...]
    """The defects of Kafka that have shown since the state was read: nothing may fit because of them."""


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

    def has_taken(self, step: Step) -> bool:
        """Return whether a step, or that with more allowed, is one of those that fit."""
        fitting = islice(self.steps, self.index)
        return any(each.line == step.line and each.what is step.what for each in fitting)

    def reordered(self, order: Order) -> list[Step]:
        """Return the steps in another order."""
        return [*self.steps[: order.place], *order.steps, *self.steps[order.place + len(order.steps) :]]


@define
class _Repair:
    """The orders that were tried at one place."""

    index: int
    """The index in a tip of the step that did not fit at first."""

    blocked: Step
    """That step."""

    part: Part
    """What the search there may cost."""

    furthest: Step
    """The step that did not fit in the order that got the furthest."""

    further: int = 0
    """How many steps more fitted in that one. [steps]"""

    tried: int = 0
    is_cut: bool = False
    has_tried_all: bool = False
    held: int = 0
    """How much is held of the orders that may be gone on from. [work]"""

    seen: set[int] = field(factory=set)
    """The hashes of the states that orders have led to."""

    def note(self, tip: Tip) -> None:
        """Note how far an order got."""
        self.tried += 1
        if tip.index - self.index > self.further and tip.index < len(tip.steps):
            self.further, self.furthest = tip.index - self.index, tip.steps[tip.index]


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
        self._places: deque[Saved] = deque()
        self._held = 0
        self._repair: _Repair | None = None
        self._index = 0

    @property
    def steps(self) -> list[Step]:
        """The steps in the order that was found so far."""
        return list(self._steps)

    def run(self) -> Stop | None:
        """Go on to the next stop; None at the end."""
        try:
            return self._run()
        except BudgetSpentError as error:
            return self._end(str(error))

    def _run(self) -> Stop | None:
        while self._index < len(self._steps):
            saved = self._checked.save()
            self._keep(saved)
            mismatch = self._checked.take(self._steps[self._index], saved)
            if mismatch is None:
                self._index += 1
                continue
            self._repair = repair = self._begin_repair()
            if not self._is_repaired(repair):
                return self._stop(mismatch, repair)
        return None

    def _keep(self, saved: Saved) -> None:
        """Keep a place to come back to, and no more of those before it than there is memory for."""
        places = self._places
        if len(places) == MOST_PLACES:
            self._held -= places.popleft().size
        places.append(saved)
        self._held += saved.size
        while self._held > MOST_HELD and len(places) > 1:
            self._held -= places.popleft().size

    # ---- other orders

    def _begin_repair(self) -> _Repair:
        blocked, budget = self._steps[self._index], self._checked.budget
        budget.is_cut = False
        return _Repair(len(self._places) - 1, blocked, budget.part(_PARTS), blocked)

    def _is_repaired(self, repair: _Repair) -> bool:
        """Look for an order that explains more, and go on with it."""
        begin = self._index - len(self._places) + 1
        first = Tip(self._steps[begin : self._index + MOST_BACK + LOOK_AHEAD], list(self._places))
        tips = [first]
        for moves in range(1, MOST_MOVES + 1):
            found: list[Tip] = []
            for tip in tips:
                orders = islice(_orders(tip), MOST_ORDERS if moves == 1 else MOST_MORE_ORDERS)
                best = self._best(tip, orders, found, repair)
                if best is not None:
                    self._go_on(begin, best, moves)
                    return True
            if moves == 1:
                is_cut = repair.is_cut or self._checked.budget.is_cut
                repair.has_tried_all = not is_cut and self._are_few_involved()
            tips = _furthest(found)
            repair.held = 0
        best = self._best(first, _moves(first, STALLED_US), [], repair)
        if best is not None:
            self._go_on(begin, best, 1)
        return best is not None

    def _are_few_involved(self) -> bool:
        """Return whether few steps may have come at the time of the one that does not fit, and all were moved."""
        blocked = self._steps[self._index]
        earliest_us, latest_us = blocked.earliest_us - LATE_US, blocked.latest_us + LATE_US
        involved = [
            index
            for index, step in enumerate(self._steps)
            if step.what not in FACTS and step.earliest_us <= latest_us and step.latest_us >= earliest_us
        ]
        return (
            0 < len(involved) <= MOST_INVOLVED
            and involved[0] >= self._index - MOST_BACK
            and involved[-1] < self._index + MOST_AHEAD
            and all(self._steps[index].allowed is Allowed.NOTHING for index in involved)
        )

    def _best(self, tip: Tip, orders: Iterator[Order], found: list[Tip], repair: _Repair) -> Tip | None:
        """Return the one of *orders* that explains the most; collect those in *found* that do not explain more."""
        best: Tip | None = None
        left = MOST_DECIDING if repair.blocked.may_be_undecided else MOST_BETTER
        for order in orders:
            if self._checked.budget.has_spent(repair.part):
                repair.is_cut = True
                break
            end = order.place + len(order.steps)
            other = self._tried(tip, order)
            repair.note(other)
            if other.index <= repair.index or not other.has_taken(repair.blocked):
                self._checked.budget.spend(SNAPSHOT * other.saved[-1].size)
                key = hash(_key(other))
                if key not in repair.seen:
                    repair.seen.add(key)
                    found.append(other)
                    repair.held += other.held
                    if repair.held > 2 * MOST_HELD:
                        found[:] = _furthest(found)
                        repair.held = sum(each.held for each in found)
            elif best is None or (-other.undecided, other.index) > (-best.undecided, best.index):
                best = other
            if best is not None and not best.undecided and best.index >= min(end + LOOK_AHEAD, len(best.steps)):
                return best
            left -= best is not None
            if not left:
                return best
        repair.is_cut |= next(orders, None) is not None
        return best

    def _tried(self, tip: Tip, order: Order) -> Tip:
        """Take the steps in another order as far as they fit."""
        checked, steps = self._checked, tip.reordered(order)
        checked.budget.spend(_ORDER)
        saved = tip.saved[: order.place + 1]
        checked.restore(saved[-1])
        most = min(order.place + len(order.steps) + LOOK_AHEAD, len(steps))
        undecided = 0
        for at in range(order.place, most):
            mismatch = checked.take(steps[at], saved[-1])
            if mismatch is not None:
                other = None if at >= order.place + len(order.steps) else _allowing(steps[at], mismatch)
                if other is None:
                    return Tip(steps, saved, order.place, undecided)
                steps[at] = other
                checked.restore(saved[-1])
                if checked.take(steps[at], saved[-1]) is not None:
                    return Tip(steps, saved, order.place, undecided)
                undecided += other.allowed is Allowed.UNDECIDED
            saved.append(checked.save())
        return Tip(steps, saved, order.place, undecided)

    def _go_on(self, begin: int, tip: Tip, moves: int) -> None:
        """Go on with an order."""
        self._steps[begin : begin + len(tip.steps)] = tip.steps
        self._places.clear()
        self._held = 0
        for saved in tip.saved[:-1]:
            self._keep(saved)
        self._index = begin + tip.index
        self._checked.restore(tip.saved[-1])
        self.moves += moves

    def _stop(self, mismatch: Mismatch, repair: _Repair) -> Stop:
        """Give up up to the next time that the state is read."""
        step = self._steps[self._index]
        self._checked.restore(self._places[-1])
        suspects = self._checked.suspects
        undecided = [each for each in self._steps[: self._index] if each.allowed is Allowed.UNDECIDED]
        self._checked.give_up()
        self._index += 1
        while self._index < len(self._steps) and self._steps[self._index].what not in LIVES:
            after = self._steps[self._index]
            if after.what in FACTS:
                self._checked.take(after, self._places[-1])
            self.passed_over += 1
            self._index += 1
        self._places.clear()
        self._held = 0
        return Stop(
            step=step,
            mismatch=mismatch,
            is_exhausted=repair.has_tried_all,
            tried=repair.tried,
            further=repair.further,
            furthest=repair.furthest,
            undecided=undecided[-MOST_NAMED:],
            bound=None,
            suspects=suspects,
        )

    def _end(self, reason: str) -> Stop:
        """End for good: there is nothing left to spend."""
        step, repair = self._steps[self._index], self._repair
        if self._places:  # otherwise it was spent before anything was done
            self._checked.restore(self._places[-1])
        self._checked.give_up()
        self.passed_over += len(self._steps) - self._index
        self._index = len(self._steps)
        if repair is None or repair.blocked is not step:
            repair = _Repair(0, step, Part(0, None), step)
        return Stop(
            step=step,
            mismatch=Mismatch("bound", None, None),
            is_exhausted=False,
            tried=repair.tried,
            further=repair.further,
            furthest=repair.furthest,
            undecided=[],
            bound=reason,
            suspects=(),
        )


def _furthest(tips: list[Tip]) -> list[Tip]:
    """Return those that explain the most, as many as there is memory for."""
    tips.sort(key=lambda tip: -tip.index)
    held = accumulate(tip.held for tip in tips)
    return [tip for tip, sum_ in zip(tips[:MOST_TIPS], held, strict=False) if sum_ <= MOST_HELD]


def _allowing(step: Step, mismatch: Mismatch) -> Step | None:
    """Return a step that does not fit with what may be allowed for it; None if nothing is."""
    if step.may_be_undecided:
        return step._replace(allowed=Allowed.UNDECIDED)
    if mismatch.what == "write" and step.allowed is Allowed.NOTHING:
        return step._replace(allowed=Allowed.LATE_HEAD)
    return None


def _key(tip: Tip) -> Hashable:
    """Return by what two orders are the same: they have led to the same state before the same steps."""
    left = tuple((step.line, step.what, step.allowed, step.way) for step in tip.steps[tip.index :])
    return left, tip.saved[-1].key


def _orders(tip: Tip) -> Iterator[Order]:
    """Yield other orders of the last steps and the next ones, the likely ones first."""
    blocked = tip.steps[tip.index]
    moves = _moves(tip)
    yield from islice(moves, BEFORE_OTHERS)
    if blocked.may_be_undecided:
        yield Order(tip.index, [blocked._replace(allowed=Allowed.UNDECIDED)])
    elif blocked.allowed is not Allowed.UNDECIDED:
        for allowed in {Allowed.NOTHING, Allowed.LATE_HEAD, Allowed.OVERTAKEN} - {blocked.allowed}:
            yield Order(tip.index, [blocked._replace(allowed=allowed)])
    yield from moves
    yield from _other_ways(tip)


def _other_ways(tip: Tip) -> Iterator[Order]:
    """Yield orders in which one of the last fetches has read something else, with the same answer."""
    steps, index = tip.steps, tip.index
    for at in range(index, max(index - MOST_BACK, 0) - 1, -1):
        if steps[at].what is What.FETCH and steps[at].way < MOST_WAYS:
            yield Order(at, [steps[at]._replace(way=steps[at].way + 1), *steps[at + 1 : index + 1]])


def _moves(tip: Tip, late_us: int = LATE_US) -> Iterator[Order]:
    """
    Yield orders in which a step is moved; the times of the log are late by *late_us* at the most.

    In turn the one that does not fit comes earlier, or later, or one after it comes first, or one before it later: each
    of them not far at first. Then those before it come earlier.
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
    """Yield the order in which a step, and those after it in its connection, come after the one that does not fit."""
    moved, blocked = steps[at], steps[index]
    if _has_order(moved, blocked) or not _may_be_before(blocked, moved):
        return
    block = [step for step in steps[at : index + 1] if step is moved or _has_order(moved, step)]
    rest = [step for step in steps[at : index + 1] if step is not moved and not _has_order(moved, step)]
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


def _may_be_before(moved: Step, other: Step, late_us: int = LATE_US) -> bool:
    """Return whether a step may have come before another one of another connection; outcomes have an order, too."""
    if moved.earliest_us - late_us > other.latest_us:
        return False
    return moved.write < 0 or other.write < 0 or What.ARRIVAL in {moved.what, other.what}
