"""
The search for an order in which the life of a record follows from the rules.

Each act takes effect at one instant between its begin and its end; what was not answered does so later, or never. So
acts that overlap may have taken effect in one order or another, and a life is right if one order is (Wing and Gong,
1993). Between two acts, locks may have expired and clients gone: what may have happened there is asked for when the
next act needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from attrs import evolve, field, frozen

from sharestate.audit.circumstances import Act, Circumstances
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_log import ACKNOWLEDGED_AS, NEVER_US, OperationRowKind, SharePartitionName
from sharestate.audit.operations import AcknowledgedAs
from sharestate.audit.record_histories import NOT_CARRIED_OUT, RecordHistory
from sharestate.error_codes import ErrorCode

_STEPS_OF_LIFE: Final = 100_000
_SOME_STEPS: Final = 2_000_000
_STEPS_OF_ROW: Final = 15
"""How many steps the search for an order may take: so many for one life, for all lives the second number, and the third
for each row. [steps]"""

_MOST_ACTS: Final = 300
"""How many acts may overlap: their order takes the square of that. [acts]"""

_MANY: Final = 2**30
"""A delivery count that no record has: there is no upper bound."""

_ACCEPT: Final = ACKNOWLEDGED_AS.index(AcknowledgedAs.ACCEPT)
_RELEASE: Final = ACKNOWLEDGED_AS.index(AcknowledgedAs.RELEASE)
_RENEW: Final = ACKNOWLEDGED_AS.index(AcknowledgedAs.RENEW)
REFUSED: Final = int(ErrorCode.INVALID_RECORD_STATE)
"""The code that refuses an acknowledgement of what its client does not own."""

NO_DURATION: Final = "the lock duration is not known"
"""What is unsure about a second owner of whom nothing else is known."""


class KnownState(IntEnum):
    """The state of a record, as clients can know it."""

    AVAILABLE = 0
    """Nobody owns it."""

    ACQUIRED = 1
    """A client owns it, unless its lock has expired meanwhile, or something else has freed it."""

    FINISHED = 2
    """It was accepted or rejected."""


_State: TypeAlias = tuple[int, int, int, int, int, int, int]
"""The state; its owner (-1 for nobody); the act since when; the least and the most deliveries so far; how many of them
were surely stored; and the last delivery (-1 for none)."""


class Redelivery(NamedTuple):
    """
    A delivery of a record that was delivered before.

    Attributes:
        act: The delivery.
        before: The delivery, renewal or acknowledgement after which it was free.
        cause: What made it free again, in a few words.
    """

    act: Act
    before: Act
    cause: str

    @property
    def is_ambiguous(self) -> bool:
        """Whether it rests on what clients cannot know."""
        return self.cause not in _CLEAR_CAUSES


@frozen
class FoundLife:
    """What the search has found out about the life of records."""

    broken: Guarantee | None = None
    """The guarantee that is broken in the order that goes furthest; None if an order is right."""

    act: Act | None = None
    """The act that breaks it."""

    why: str = ""
    """What is wrong, in words."""

    redeliveries: tuple[Redelivery, ...] = ()
    """The deliveries again, with their causes."""

    unsure: frozenset[str] = field(default=frozenset())
    """What was taken to be right because nothing shows that it is not, in words."""

    unjustified: tuple[Act, ...] = ()
    """The acknowledgements whose refusal these records do not justify."""

    is_bound_reached: bool = False
    """Whether the search has stopped before it had tried all orders."""


class _Path(NamedTuple):
    """How a state was reached: the way before, and what the last act brought with it."""

    before: _Path | None
    redelivery: Redelivery | None
    unsure: str


class LifeSearch:
    """
    Searches the lives of the records of one share partition, one after the other, by ascending offset.

    Args:
        circumstances: What lies around them.
        key: The share partition.
    """

    def __init__(self, circumstances: Circumstances, key: SharePartitionName) -> None:
        """Look at what all records of the share partition have in common."""
        self._around = circumstances
        self._key = key
        self._clients = circumstances.log.clients
        self._is_timed = circumstances.is_timed(key.group)
        self._is_complete = circumstances.is_complete(key.group)
        self._sees_all = circumstances.sees_all(key.group)
        limit = circumstances.in_force(key.group, "delivery_count_limit")
        self._limit = _MANY if limit is None else limit[1]
        self._least_limit = 0 if limit is None else limit[0]
        deletions = circumstances.log.deletions.get((key.topic, key.partition), ())
        self._deleted = max((before for _, before in deletions), default=0)
        self._may_alter = bool(circumstances.log.alterations.get(key))
        self._later: dict[int, int] = {}
        self._acts: list[Act] = []
        self._born: Act | None = None
        self._strict: set[int] = set()
        log = circumstances.log
        self._steps_left = log.share(key, _SOME_STEPS) + _STEPS_OF_ROW * log.rows_of(key)
        self._depth = 0
        self._furthest = -1
        self._failure = FoundLife()

    def as_seen(self, history: RecordHistory) -> list[Act]:
        """
        Return the life of a history in the order in which it ended, so that what had to happen first is tried first.

        A delivery that does not say when it was acquired begins when the record was produced: the client library may
        have acquired it since.
        """
        around = self._around
        life = history.life
        if not self._is_timed:
            begins = [(each.begin_us, each.clock) for each in history.produced]
            life = [self._since_produced(act, begins) for act in life]
        return sorted(life, key=lambda act: (around.shifted_us(act.end_us, act.clock), act.operation))

    def _since_produced(self, act: Act, begins: list[tuple[int, int]]) -> Act:
        if act.kind != OperationRowKind.DELIVERED or self._clients[act.client].view.is_timed:
            return act
        earliest = (self._around.earliest_us(begin_us, clock, act.clock) for begin_us, clock in begins)
        return act._replace(begin_us=min(min(earliest, default=-NEVER_US), act.begin_us))

    def found(self, acts: list[Act], born: Act | None, *, is_new: bool) -> FoundLife:
        """
        Return what is found out about records with a life, which are above all that were asked for before.

        Args:
            acts: The life, as ``as_seen`` returns it.
            born: How they were produced; None if that is not known.
            is_new: Whether nothing can have been done to them before the log began.

        Complexity:
            Linear in the acts if none of them overlap; else as many orders are tried as the bound allows.
        """
        self._acts, self._born = acts, born
        start: _State = (KnownState.AVAILABLE, -1, -1, 0, 0 if is_new and self._sees_all else _MANY, 0, -1)
        refused = [act for act in acts if act.kind == OperationRowKind.ACKNOWLEDGED and act.code == REFUSED]
        self._strict = {act.row for act in refused}
        found = self._run(start)
        if found.broken is not None and refused:
            self._strict = set()
            found = self._run(start)
            if found.broken is None:
                found = evolve(found, unjustified=tuple(act for act in refused if self._is_unjustified(act, start)))
        self._note_deliveries(acts)
        return found

    def _is_unjustified(self, act: Act, start: _State) -> bool:
        """Return whether in no order it is right to refuse an acknowledgement; not, if finding out costs too much."""
        self._strict = {act.row}
        self._steps_left -= len(self._acts)
        if self._steps_left < 0:
            return False
        return self._run(start).broken is not None

    def _note_deliveries(self, acts: list[Act]) -> None:
        """Remember until when records up to here were delivered: so long the SPSO has not passed any record above."""
        for act in acts:
            if act.kind == OperationRowKind.DELIVERED and self._clients[act.client].view.is_timed:
                self._later[act.clock] = max(self._later.get(act.clock, -NEVER_US), act.begin_us)

    # ---- orders

    def _run(self, start: _State) -> FoundLife:
        self._furthest = -1
        acts = self._acts
        if all(act.end_us < NEVER_US for act in acts) and all(self._around.is_before(*two) for two in pairwise(acts)):
            return self._plain(start)
        return self._search(start)

    def _plain(self, start: _State) -> FoundLife:
        """Take the acts in the only order that there is."""
        state, path = start, None
        for number in range(len(self._acts)):
            self._depth = number
            step = self._step(state, number)
            if step is None:
                return self._failure
            state, redelivery, unsure = step
            if redelivery is not None or unsure:
                path = _Path(path, redelivery, unsure)
        return _right(path)

    def _search(self, start: _State) -> FoundLife:
        """Look for an order that is right, depth first; what is not answered may be left out."""
        acts = self._acts
        steps = min(_STEPS_OF_LIFE, self._steps_left)
        if len(acts) > _MOST_ACTS or len(acts) ** 2 > steps:
            return FoundLife(is_bound_reached=True)
        needed = [number for number, act in enumerate(acts) if act.end_us < NEVER_US]
        before = [sum(1 << other for other in needed if self._around.is_before(acts[other], act)) for act in acts]
        goal = sum(1 << number for number in needed)
        self._steps_left -= len(acts) ** 2
        seen: set[tuple[int, _State]] = set()
        stack: list[tuple[int, _State, _Path | None]] = [(0, start, None)]
        while stack:
            taken, state, path = stack.pop()
            if taken & goal == goal:
                return _right(path)
            if (taken, state) in seen:
                continue
            seen.add((taken, state))
            self._steps_left -= len(acts)
            if len(seen) * len(acts) > steps or self._steps_left < 0:
                return FoundLife(is_bound_reached=True)
            self._depth = (taken & goal).bit_count()
            free = [number for number in range(len(acts)) if not (taken >> number & 1 or before[number] & ~taken)]
            after = [(number, self._step(state, number)) for number in free]
            stack += [
                (taken | 1 << number, step[0], _Path(path, *step[1:]))
                for number, step in reversed(after)
                if step is not None
            ]
        return self._failure

    def _fail(self, guarantee: Guarantee, act: Act, why: str) -> None:
        if self._depth > self._furthest:
            self._furthest, self._failure = self._depth, FoundLife(guarantee, act, why)

    # ---- steps

    def _step(self, state: _State, number: int) -> tuple[_State, Redelivery | None, str] | None:
        """Return the state after an act, and what to say of it; None if the act cannot have taken effect now."""
        act = self._acts[number]
        if act.kind == OperationRowKind.DELIVERED:
            return self._deliver(state, act, number)
        after = self._acknowledge(state, act, number)
        return None if after is None else (after[0], None, after[1])

    def _deliver(self, state: _State, act: Act, number: int) -> tuple[_State, Redelivery | None, str] | None:
        kind, owner, since, least, most, stored, last = state
        cause, unsure = "released", ""
        if since >= 0 and self._may_alter and self._around.altered(self._key, self._acts[since], act):
            cause, least, most, stored = "start offset altered", 0, _MANY, 0
        elif kind != KnownState.AVAILABLE:
            freed = self._freed(kind, owner, self._acts[since], act)
            if freed is None:
                return None
            cause, unsure = freed
        if last >= 0 and self._around.fault(self._key, self._acts[last], act) is not None:
            least, most = min(least, stored), _MANY
        elif not self._sees_all or self._around.unseen(self._key, self._born, act):
            most = _MANY
        count = act.what
        wrong = self._wrong_count(count, least, most)
        if wrong is not None:
            self._fail(wrong[0], act, wrong[1])
            return None
        bounds = (count, count) if count else (least + 1, min(most + 1, _MANY))
        redelivery = Redelivery(act, self._acts[since], cause) if since >= 0 else None
        return (KnownState.ACQUIRED, act.client, number, *bounds, stored, number), redelivery, unsure

    def _wrong_count(self, count: int, least: int, most: int) -> tuple[Guarantee, str] | None:
        if max(count, least + 1) > self._limit:
            what = f"delivery {count}" if count else f"delivery {least + 1} at the least"
            return Guarantee.DELIVERY_LIMIT, f"it is {what}, and the delivery count limit is {self._limit}"
        if count and count <= least:
            return Guarantee.DELIVERY_COUNT, f"it is delivery {count}, after delivery {least}"
        if count > most + 1:
            return Guarantee.DELIVERY_COUNT, f"it is delivery {count}, and there were {most} before"
        return None

    def _freed(  # noqa: PLR0911 - one for each cause
        self, kind: int, owner: int, since: Act, act: Act
    ) -> tuple[str, str] | None:
        """Return what may have made a record free between two acts, and what is unsure about that."""
        around = self._around
        if kind == KnownState.FINISHED:
            guarantee = Guarantee.ACCEPTED_IS_FINAL if since.what == _ACCEPT else Guarantee.REJECTED_IS_FINAL
            how = "accepted" if since.what == _ACCEPT else "rejected"
            self._fail(guarantee, act, f"{self._name(act)} gets what {self._name(since)} has {how}")
            return None
        gone = around.gone(self._key.group, owner, since, act)
        if gone is not None:
            return _GONE[gone.what], ""
        lock = around.lock_us(self._key.group, since)
        if lock is not None and around.most_us(since, act) >= lock[0] - around.tolerance_us:
            return "lock expired", ""
        fault = around.fault(self._key, since, act)
        if fault is not None:
            return f"fault: {fault.what}", ""
        if not self._clients[owner].complete:
            return "unseen", f"the log of {self._clients[owner].name} is not complete"
        if lock is None:
            return "unknown", NO_DURATION
        held = f"{self._name(since)} has had it for {around.most_us(since, act) / 10**6:,.2f} s at the most"
        self._fail(
            Guarantee.ONE_OWNER, act, f"{self._name(act)} gets it, and {held}; locks last {lock[0] / 10**6:,g} s"
        )
        return None

    def _acknowledge(self, state: _State, act: Act, number: int) -> tuple[_State, str] | None:
        kind, owner, since, least, most, stored, last = state
        is_owner = kind == KnownState.ACQUIRED and owner == act.client
        if act.code in NOT_CARRIED_OUT:
            if (
                act.row in self._strict
                and is_owner
                and act.what != _RENEW
                and self._surely_lasts(owner, self._acts[since], act)
            ):
                why = f"{self._name(act)} owns it, and its acknowledgement is refused"
                self._fail(Guarantee.OWNER_MAY_ACKNOWLEDGE, act, why)
                return None
            return state, ""
        late = is_owner and self._is_surely_over(self._acts[since], act)
        unsure = ""
        if not is_owner or late:
            unsure = self._excuse(state, act)
            if not unsure:
                if act.code == 0:
                    self._fail(self._broken_by(state, act), act, self._why_not_owner(state, act))
                return None
            if unsure == _PASSED or kind == KnownState.FINISHED:
                return state, unsure
        if act.what == _RELEASE:
            stored = least if act.code == 0 else stored
            return (KnownState.AVAILABLE, -1, number, least, most, stored, last), unsure
        after = KnownState.ACQUIRED if act.what == _RENEW else KnownState.FINISHED
        return (after, act.client, number, least, most, stored, last), unsure

    def _is_surely_over(self, since: Act, act: Act) -> bool:
        lock = self._around.lock_us(self._key.group, since)
        return lock is not None and self._around.least_us(since, act) > lock[1] + self._around.late_us

    def _surely_lasts(self, owner: int, since: Act, act: Act) -> bool:
        """Return whether nothing can have freed a record between two acts."""
        around, group = self._around, self._key.group
        lock = around.lock_us(group, since)
        return (
            lock is not None
            and around.most_us(since, act) < lock[0] - around.tolerance_us
            and around.gone(group, owner, since, act) is None
            and around.fault(self._key, since, act) is None
            and not around.altered(self._key, since, act)
            and self._clients[owner].complete
        )

    def _excuse(self, state: _State, act: Act) -> str:
        """Return why an acknowledgement of what its client does not own may not be refused; empty if it has to be."""
        client = self._clients[act.client]
        if act.code == 0 and not client.complete:
            return f"the log of {client.name} is not complete"
        if act.code == 0 and self._may_be_done(state, act) and not self._is_above_start(act):
            return _PASSED
        return ""

    def _may_be_done(self, state: _State, act: Act) -> bool:
        """
        Return whether a record may be terminal at *act*: finished, deleted, or free with its last delivery.

        Where a member has not written down all that it did, it may have finished whatever was free.
        """
        kind, owner, since, _, most, _, last = state
        if kind == KnownState.FINISHED or self._deleted > act.first:
            return True
        if most < self._least_limit and self._is_complete:
            return self._may_reach_limit(state, act)
        if not self._is_complete and last >= 0:
            since = last  # it may have been finished before a renewal, which is not refused then
        return kind == KnownState.AVAILABLE or not self._surely_lasts(owner, self._acts[since], act)

    def _may_reach_limit(self, state: _State, act: Act) -> bool:
        """Return whether a record may have been delivered unseen before *act* until it was at the delivery limit."""
        kind, _, since, _, most, *_ = state
        if self._around.unseen(self._key, self._born, act):
            return True
        if self._sees_all or since < 0:
            return not self._sees_all
        lock = self._around.lock_us(self._key.group, self._acts[since])
        expired = self._least_limit - most + (kind == KnownState.ACQUIRED)
        return lock is None or self._around.most_us(self._acts[since], act) >= expired * (
            lock[0] - self._around.tolerance_us
        )

    def _is_above_start(self, act: Act) -> bool:
        """Return whether a record below was surely delivered after *act*, so that the SPSO had not passed this one."""
        around = self._around
        return any(time_us > around.latest_us(act.end_us, act.clock, clock) for clock, time_us in self._later.items())

    def _broken_by(self, state: _State, act: Act) -> Guarantee:
        """Return what an acknowledgement breaks that its client may not send."""
        kind, owner, *_ = state
        if self._is_timed or kind != KnownState.ACQUIRED or owner == act.client:
            return Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE
        # An application has just been given the record, and so has another one, nobody knows which of them first.
        given = (each for each in self._acts if each.kind == OperationRowKind.DELIVERED and each.client == act.client)
        lock = self._around.lock_us(self._key.group, act)
        is_given = lock is not None and any(0 <= act.begin_us - each.end_us < lock[0] for each in given)
        return Guarantee.ONE_OWNER if is_given else Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE

    def _why_not_owner(self, state: _State, act: Act) -> str:
        kind, owner, since, *_ = state
        name = self._name(act)
        if kind == KnownState.ACQUIRED and owner == act.client:
            held = self._around.least_us(self._acts[since], act) / 10**6
            return f"{name} acknowledges it after {held:,.2f} s at the least, and its lock has expired"
        whose = {
            KnownState.AVAILABLE: "nobody owns it",
            KnownState.ACQUIRED: f"{self._clients[owner].name} owns it",
            KnownState.FINISHED: f"{self._clients[owner].name} has finished it",
        }
        return f"{name} acknowledges it without being refused, and {whose[KnownState(kind)]}"

    def _name(self, act: Act) -> str:
        return self._clients[act.client].name


_CLEAR_CAUSES: Final = frozenset({"released", "lock expired", "session closed", "start offset altered"})
_PASSED: Final = "acknowledgements of what the SPSO has passed are not refused"
_GONE: Final = {
    "closed": "session closed",
    "crashed": "client crashed",
    "unanswered": "no answer",
    "refused": "session refused",
}


def _right(path: _Path | None) -> FoundLife:
    steps = [*_steps(path)]
    redeliveries = tuple(step.redelivery for step in reversed(steps) if step.redelivery is not None)
    return FoundLife(redeliveries=redeliveries, unsure=frozenset(step.unsure for step in steps if step.unsure))


def _steps(path: _Path | None) -> Iterator[_Path]:
    while path is not None:
        yield path
        path = path.before
