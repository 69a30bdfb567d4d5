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
from heapq import heappop, heappush
from itertools import accumulate, count, islice
from typing import Final, NamedTuple

from attrs import define, field, frozen

from sharestate.log_check.budget import BudgetSpentError, Part
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.moves import (
    MOST_AHEAD,
    MOST_BACK,
    Order,
    Tip,
    deciding_orders,
    orders_with_a_move,
    other_orders,
)
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import FACTS, KEY, LATE_US, LIVES, Allowed, Step, What
from sharestate.log_check.search_state import SNAPSHOT, Defect, Saved
from sharestate.log_check.tried_steps import TriedSteps

MOST_PLACES: Final = 400
"""How many steps are kept to come back to; of 254 places in 40 runs one needed 18. [steps]"""

STALLED_US: Final = 200_000
"""How late a time of the log may be where the broker's log or a processor has stalled: 117 ms on one run. [µs]"""

LOOK_AHEAD: Final = 12
"""How many steps more have to fit for an order to be taken at once: a wrong one fits for 8 (k431-undecided). [steps]"""

MOST_DECIDED: Final = 400
"""How many orders are tried in which only steps are moved that decide what does not fit: k440-hot-2 needs 130."""

MOST_DECIDING_MOVES: Final = 6
"""How many of such steps are moved at one place: that run needs three."""

_DECIDING_PARTS: Final = 8
"""What part of the budget that is left that may take."""

MOST_MOVES: Final = 3
"""The most moves that are made at one place; two were needed on one of 40 runs, lock60 of 4.3.1."""

_PROVING_MOVES: Final = 2
"""How many moves have to be tried before something contradicts the rules: lock60 of 4.3.1 needed two at one place."""

_PROVING_TIPS: Final = 10
"""From how many orders the second of them is tried then, the furthest first; there it was the seventh."""

MOST_TIPS: Final = 60
"""The most orders from which another move is tried; the seventh was the one there."""

MOST_ORDERS: Final = 2_000
"""How many orders are tried at first; of 246 places in 40 runs half needed 3, and one 82."""

MOST_MORE_ORDERS: Final = 40
"""How many orders are tried from one of the others; 2 were needed on lock60 of 4.3.1."""

MOST_HELD: Final = 150_000
"""
How much is held to come back to at the places before, as much of what steps have led to at one place, and twice that in
the orders tried; 300 bytes each. [work]
"""

MOST_INVOLVED: Final = 16
"""How many steps may have come at the time of one that does not fit, for a contradiction: 12 had at most. [steps]"""

MOST_BETTER: Final = 100
"""How many orders are tried to find a better one than one that explains more; a hot partition of 4.3.1 needed 22."""

MOST_DECIDING: Final = 12
"""The same for a fetch without records, on which most often nothing depends: three brokers of 4.3.1 needed 11."""

MOST_NAMED: Final = 6
"""How many undecided fetches are named with what does not fit: a finding is read by people. [fetches]"""

_PARTS: Final = 2
"""What part of the budget that is left the search at one place may take: the rest is for those to come."""

_PARTS_IF_UNANSWERED: Final = 16
"""The same after a fetch of which nobody knows what it has acquired: no order may fit because of that."""

_ORDER: Final = 40
"""What an order costs beside its steps. [work]"""


@frozen(kw_only=True)
class Stop:
    """Where nothing fits."""

    step: Step
    """The first step that does not fit."""

    mismatch: Mismatch
    """What does not fit."""

    is_exhausted: bool
    """
    Whether every order with one move was tried and the likely ones with two, and so few steps have come at that time
    that these are most that there are. And whether all is done with that was in flight where steps were moved for a
    fetch without records: that fetch may be undecided instead.
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
    """How much is held of the orders from which others are tried. [work]"""

    seen: set[int] = field(factory=set)
    """The hashes of the states that orders have led to."""

    def furthest_of(self, tips: list[Tip]) -> list[Tip]:
        """Return those of *tips* that explain the most, as many as there is memory for."""
        kept = _furthest(tips)
        self.is_cut |= len(kept) < min(len(tips), _PROVING_TIPS)
        return kept

    def note(self, tip: Tip) -> None:
        """Note how far an order got."""
        self.tried += 1
        if tip.index - self.index > self.further and tip.index < len(tip.steps):
            self.further, self.furthest = tip.index - self.index, tip.steps[tip.index]


class _Instead(NamedTuple):
    """
    An order in which a fetch is undecided, to go back to.

    Attributes:
        steps: All steps, in the order that they had there.
        begin: The index of the first one that the tip has.
        tip: The order.
        moves: How many steps were moved until then.
    """

    steps: list[Step]
    begin: int
    tip: Tip
    moves: int


class Search:
    """
    A search over the steps of one share partition.

    Args:
        checked: The share partition, before its first step.
        steps: The steps in the preferred order; at least one.

    Attributes:
        moves: How many steps were moved.
        passed_over: The lines of events that were not checked, as something before them did not fit: an event has
            several steps.
    """

    def __init__(self, checked: CheckedPartition, steps: list[Step]) -> None:
        """Start before the first step."""
        self.moves = 0
        self.passed_over: set[int] = set()
        self._checked = checked
        self._steps = list(steps)
        self._places: deque[Saved] = deque()
        self._held = 0
        self._has_dropped = False
        """Whether there was no memory for some of the places, in this life of the share partition."""
        self._repair: _Repair | None = None
        self._tried_steps = TriedSteps(checked, 0)
        self._instead: _Instead | None = None
        self._moved_end = 0
        """The offset after all records in flight where steps were moved for what may be undecided in their place."""
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
            try:
                stop = self._next(saved)
            except BudgetSpentError:
                self._checked.restore(saved)
                raise
            if stop is not None:
                return stop
        return None

    def _next(self, saved: Saved) -> Stop | None:
        """Take the next step, in another order if need be; return a stop if it fits in none."""
        self._keep(saved)
        step = self._steps[self._index]
        mismatch = self._checked.take(step, saved)
        if mismatch is None:
            if step.what in LIVES:
                self._forget_moves()
            self._index += 1
            return None
        self._repair = repair = self._begin_repair()
        if self._is_repaired(repair, mismatch) or self._is_undecided_instead():
            return None
        return self._stop(mismatch, repair)

    def _keep(self, saved: Saved) -> None:
        """Keep a place to come back to, and no more of those before it than there is memory for."""
        places = self._places
        if len(places) == MOST_PLACES:
            self._held -= places.popleft().size
        places.append(saved)
        self._held += saved.size
        while self._held > MOST_HELD and len(places) > 1:
            self._held -= places.popleft().size
            self._has_dropped = True

    # ---- other orders

    def _begin_repair(self) -> _Repair:
        blocked, budget = self._steps[self._index], self._checked.budget
        budget.is_cut = False
        self._tried_steps = TriedSteps(self._checked, MOST_HELD)
        is_unanswered = any(
            step.what is What.FETCH and step.event.response is None for step in self._steps[: self._index]
        )
        part = budget.part(_PARTS_IF_UNANSWERED if is_unanswered else _PARTS)
        back = len(self._places) - 1
        return _Repair(back, blocked, part, blocked, is_cut=self._has_dropped and back < MOST_BACK)

    def _is_repaired(self, repair: _Repair, mismatch: Mismatch) -> bool:
        """Look for an order that explains more, and go on with it."""
        begin = self._index - len(self._places) + 1
        steps = self._steps[begin : self._index + MOST_BACK + LOOK_AHEAD]
        first = Tip(steps, list(self._places), mismatch=mismatch)
        for moves, best in self._repairs(first, repair):
            if best is not None:
                self._instead = self._undecided(begin, first, best) or self._instead
                self._go_on(begin, best, moves)
                return True
        return False

    def _undecided(self, begin: int, first: Tip, best: Tip) -> _Instead | None:
        """Return what to go back to if *best* is wrong: it moves steps for a fetch, and soon something does not fit."""
        fetch = first.steps[first.index]
        if best.mismatch is None or not fetch.may_be_undecided:
            return None
        tip = self._tried(first, Order(first.index, [fetch._replace(allowed=Allowed.UNDECIDED)]))
        return None if tip.mismatch is not None else _Instead(self.steps, begin, tip, self.moves)

    def _is_undecided_instead(self) -> bool:
        """Go back to the last fetch for which steps were moved that may be undecided instead; return whether it can."""
        if self._instead is None:
            return False
        self._steps, begin, tip, self.moves = self._instead
        self._instead = None
        self._go_on(begin, tip, 1)
        return True

    def _repairs(self, first: Tip, repair: _Repair) -> Iterator[tuple[int, Tip | None]]:
        """Yield orders that explain more, each with how many steps were moved; None for each try that finds none."""
        found: list[Tip] = []
        orders = other_orders(first)
        yield 1, self._best(first, islice(orders, MOST_ORDERS), found, repair)
        repair.is_cut |= next(orders, None) is not None
        yield self._decided(first)
        late = self._best(first, orders_with_a_move(first, STALLED_US), [], repair)
        yield 1, None if late is None or late.mismatch is not None else late
        repair.has_tried_all = self._are_few_involved()
        for moves in range(2, MOST_MOVES + 1):
            tips, found = repair.furthest_of(found), []
            repair.held = 0
            if moves == _PROVING_MOVES:
                repair.has_tried_all &= not self._is_cut(repair)
            for rank, tip in enumerate(tips):
                yield moves, self._best(tip, islice(other_orders(tip), MOST_MORE_ORDERS), found, repair)
                if moves == _PROVING_MOVES and rank < _PROVING_TIPS:
                    repair.has_tried_all &= not self._is_cut(repair)

    def _is_cut(self, repair: _Repair) -> bool:
        """Return whether something was left untried, as it would have cost too much."""
        return repair.is_cut or self._checked.budget.is_cut

    def _decided(self, first: Tip) -> tuple[int, Tip | None]:
        """
        Look for an order in which only steps are moved that decide what does not fit, one after the other.

        Return it with how many were moved. Those with fewer moves come first, and of these the one that explains the
        most: a move on the way may explain less than none.
        """
        blocked = first.steps[first.index]
        repair = _Repair(first.index, blocked, self._checked.budget.part(_DECIDING_PARTS), blocked)
        numbers = count()  # no two are equal: tips are not compared
        tips = [(0, -first.index, next(numbers), first)]
        while tips and repair.tried < MOST_DECIDED:
            moves, _, _, tip = heappop(tips)
            found: list[Tip] = []
            best = self._best(tip, deciding_orders(tip), found, repair)
            if best is not None:
                return moves + 1, best
            for other in found if moves + 1 < MOST_DECIDING_MOVES else ():
                heappush(tips, (moves + 1, -other.index, next(numbers), other))
        return 0, None

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
                        found[:] = repair.furthest_of(found)
                        repair.held = sum(each.held for each in found)
            elif best is None or other.rank > best.rank:
                best = other
            if best is not None and not best.undecided and best.mismatch is None:
                return best
            left -= best is not None
            if not left:
                return best
        return best

    def _tried(self, tip: Tip, order: Order) -> Tip:
        """Take the steps in another order as far as they fit."""
        tried, steps = self._tried_steps, tip.reordered(order)
        self._checked.budget.spend(_ORDER)
        saved = tip.saved[: order.place + 1]
        most = min(order.place + len(order.steps) + LOOK_AHEAD, len(steps))
        undecided = 0
        for at in range(order.place, most):
            led_to = tried.take(steps[at], saved[-1])
            if isinstance(led_to, Mismatch):
                other = None if at >= order.place + len(order.steps) else _allowing(steps[at], led_to)
                if other is None:
                    return Tip(steps, saved, order.place, led_to, undecided)
                steps[at] = other
                led_to = tried.take(other, saved[-1])
                if isinstance(led_to, Mismatch):
                    return Tip(steps, saved, order.place, led_to, undecided)
                undecided += other.allowed is Allowed.UNDECIDED
            saved.append(led_to)
        return Tip(steps, saved, order.place, None, undecided)

    def _go_on(self, begin: int, tip: Tip, moves: int) -> None:
        """Go on with an order."""
        may_be_undecided = self._steps[self._index].may_be_undecided
        self._steps[begin : begin + len(tip.steps)] = tip.steps
        self._places.clear()
        self._held = 0
        for saved in tip.saved[:-1]:
            self._keep(saved)
        self._index = begin + tip.index
        for step, saved in zip(tip.steps, tip.saved[:-1], strict=False):
            if saved.partition is not None:  # where the state was read before it, it is checked after all
                self.passed_over.discard(step.line)
        self._checked.restore(tip.saved[-1])
        self.moves += moves
        partition = tip.saved[-1].partition
        if may_be_undecided and partition is not None and partition.batch_count():
            self._moved_end = max(self._moved_end, partition.end_offset + 1)

    def _forget_moves(self) -> None:
        """Forget moves: what comes now does not depend on them."""
        self._moved_end, self._instead = 0, None

    def _stop(self, mismatch: Mismatch, repair: _Repair) -> Stop:
        """Give up until the state is read again."""
        step = self._steps[self._index]
        partition = self._places[-1].partition
        is_passed = partition is None or partition.start_offset >= self._moved_end
        self._checked.restore(self._places[-1])
        suspects = self._checked.suspects
        undecided = [each for each in self._steps[: self._index] if each.allowed is Allowed.UNDECIDED]
        self._checked.give_up()
        self._pass_over()
        self._places.clear()
        self._held, self._has_dropped = 0, False
        return Stop(
            step=step,
            mismatch=mismatch,
            is_exhausted=repair.has_tried_all and is_passed,
            tried=repair.tried,
            further=repair.further,
            furthest=repair.furthest,
            undecided=undecided[-MOST_NAMED:],
            bound=None,
            suspects=suspects,
        )

    def _pass_over(self) -> None:
        """
        Go on where the state is read again, or with the first step that may have come after that.

        The line of the read may be late: fetches that have waited for it, and what their members did next, seem to come
        before it then.
        """
        steps, begin = self._steps, self._index + 1
        end = next((at for at in range(begin, len(steps)) if steps[at].what in LIVES), len(steps))
        self.passed_over.update(step.line for step in steps[begin:end] if step.what not in FACTS)
        if end < len(steps) and steps[end].what is What.INITIALIZE:
            earliest_us = steps[end].earliest_us - LATE_US
            while end > begin and steps[end - 1].latest_us >= earliest_us:
                end -= 1
        for step in steps[begin:end]:
            if step.what in FACTS:
                self._checked.take(step, self._places[-1])
        self._index = end

    def _end(self, reason: str) -> Stop:
        """End for good: there is nothing left to spend."""
        step, repair = self._steps[self._index], self._repair
        self.passed_over.update(after.line for after in self._steps[self._index + 1 :] if after.what not in FACTS)
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
    return tuple(map(KEY, tip.steps[tip.index :])), tip.saved[-1].key
