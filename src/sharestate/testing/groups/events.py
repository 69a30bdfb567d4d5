"""
The random events around a share group: what may happen next, given what its clients know.

An event is the name of a method of ``ShareGroupMachine`` and its arguments, as plain data: what Hypothesis prints can
be pasted and run. To make one, bring a function that picks one of several options; the first option is always the
simplest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from attrs import frozen

from sharestate.testing.groups.known_records import Content, Knowledge
from sharestate.testing.groups.model import ClientModel
from sharestate.testing.programs import Event

T = TypeVar("T")

Range = tuple[int, int, list[str]]
"""First offset, last offset, and the names of one acknowledge type for all of them or of one for each."""


class Pick(Protocol):
    """Picks one of several options."""

    def __call__(self, options: Sequence[T], /) -> T:
        """Return one of *options*, of which there is one at least."""


EVERYTHING: Final = 1_000
"""More records than there ever are. [records]"""

MOST_LEFT_OVER: Final = 10
"""Nothing more is produced while as many records are to be delivered: what matters happens to few. [records]"""

BULK: Final = (150, 300)
"""How many records come at once now and then: fewer than there are record locks by default, or more. [records]"""

RARELY: Final = 16
"""In one of so many runs that happens which is rare: with many records a run takes ten times as long. [runs]"""

MOST_PASSED_OVER: Final = 20
"""After as many kinds of events that may not happen, a member fetches. [kinds]"""


@frozen(kw_only=True)
class ClientEvents:
    """
    The events that may happen next.

    Attributes:
        model: What clients know.
        members: The member ids.
        has: The methods that the implementation has, of those that it may lack.
        renews: Whether members send RENEW.
        overlaps: Whether events may overlap: the implementation has coroutines.
        members_overlap: Whether those of one member may, too.
        left_out: The kinds of events that do not happen in this run: those that do then happen more often, and events
            that are rare come together. [numbers of `KINDS`]
        others: What may happen at other share partitions, in the order of their numbers.
    """

    model: ClientModel
    members: Sequence[str]
    has: frozenset[str]
    renews: bool
    overlaps: bool = False
    members_overlap: bool = False
    left_out: frozenset[int] = frozenset()
    others: Sequence[ClientEvents] = ()

    def next(self, pick: Pick) -> Event:
        """
        Pick the next event.

        Kinds that may not happen now are picked too, and skipped: so a choice means the same kind whatever has
        happened before, and a program stays what it is when Hypothesis leaves out a part of it.
        """
        if len(self.others) > 0 and pick((True, False)):
            number = pick(range(len(self.others)))
            return "elsewhere", number + 1, self.others[number].next(pick)
        for _ in range(MOST_PASSED_OVER):
            number = pick(_BY_WEIGHT)
            if number not in self.left_out and KINDS[number].may_happen(self):
                break
        else:
            number = 0
        return KINDS[number].method, *KINDS[number].arguments(self, pick)

    def is_possible(self, event: Event) -> bool:
        """Return whether an event of a program from which others were left out makes sense now."""
        name, *arguments = event
        return name not in _POSSIBLE or bool(_POSSIBLE[name](self, *arguments))

    # ---- what may happen

    def may_produce(self) -> bool:
        """Return whether more records do no harm."""
        return len(self.model.left_over()) < MOST_LEFT_OVER

    def is_any_available(self) -> bool:
        """Return whether a fetch should bring something."""
        return any(record.state is Knowledge.AVAILABLE for record in self.model.left_over())

    def was_delivered(self) -> bool:
        """Return whether the present leader has delivered anything."""
        return any(record.leader == self.model.leader for record in self.model.records.values())

    def owners(self) -> list[str]:
        """Return the members that own something."""
        owners = self.model.owners()
        return [member for member in self.members if member in owners]

    def owners_for_a_while(self) -> list[str]:
        """Return the members that renew their locks and have owned something for some time."""
        return [member for member in self.owners() if self.model.is_renewal_of_use(member)] if self.renews else []

    def producers(self) -> list[str]:
        """Return the producers with an open transaction."""
        return sorted(self.model.open_transactions())

    def log_starts(self) -> list[int]:
        """Return the offsets to which the log start offset may move: not past an open transaction."""
        end = min([self.model.log_end, *self.model.open_transactions().values()])
        return [*range(self.model.log_start + 1, end + 1)]

    def durations_ms(self) -> list[int]:
        """Return how much time may pass: half of a lock, or until a lock has surely, perhaps or just not expired."""
        now_ms = self.model.now_ms
        durations = [self.model.settings.lock_duration_ms // 2]
        for earliest_ms, latest_ms in sorted(self.model.deadlines_ms()):
            durations += [latest_ms - now_ms + 1, latest_ms - now_ms, earliest_ms - now_ms - 1]
        return [ms for ms in durations if ms > 0]

    def times_before_expiry_ms(self) -> list[int]:
        """Return how much time may pass before the first lock may expire, ascending: half of that, and all. [ms]"""
        deadlines = [earliest_ms for earliest_ms, _ in self.model.deadlines_ms() if earliest_ms > self.model.now_ms]
        left_ms = min(deadlines, default=self.model.now_ms) - self.model.now_ms - 1
        return [ms for ms in (left_ms // 2, left_ms) if ms > 0] if self.owners() else []

    def may_renew_after(self, member: str, ms: int) -> bool:
        """Return whether a member owns something of which no lock expires in a time."""
        return member in self.owners() and ms <= max(self.times_before_expiry_ms(), default=0)

    def until_locks_expire_ms(self) -> list[int]:
        """Return the times just before and after each lock expires, or would have without a renewal, ascending. [ms]"""
        deadlines = self.model.deadlines_ms()
        times = {ms for earliest_ms, latest_ms in deadlines for ms in (earliest_ms - 1, latest_ms + 1)}
        return sorted(ms for ms in times if ms > self.model.now_ms)

    # ---- arguments

    def batch(self, pick: Pick) -> tuple[int, str | None]:
        """Pick a batch: how many records, and their producer if it has a transaction."""
        producers = (None, "p1", "p2", *self.producers()) if "abort_transaction" in self.has else (None,)
        return pick((1, 2, 3)), pick(producers)

    def type(self, pick: Pick) -> str:
        """Pick the acknowledge type of a record."""
        return pick(("ACCEPT", "RELEASE", "REJECT", *("RENEW",) * self.renews))

    def some(self, pick: Pick) -> tuple[str, list[Range]]:
        """Pick an acknowledgement of what a member owns: of one or two ranges, each with one type or with many."""
        return self.some_of(pick, pick(self.owners()))

    def some_of(self, pick: Pick, member: str) -> tuple[str, list[Range]]:
        """Pick an acknowledgement of what *member* owns."""
        left = runs(self.model.owned(member))
        ranges = []
        for _ in range(min(pick((1, 2)), len(left))):
            run = pick(left)
            left.remove(run)
            first, last = run if pick((True, False)) else self.part(pick, *run)
            is_one = first == last or pick((True, False))
            names = [self.type(pick) for _ in range(1 if is_one else last - first + 1)]
            ranges.append((first, last, self.names(first, last, names)))
        return member, sorted(ranges)

    def part(self, pick: Pick, first: int, last: int) -> tuple[int, int]:
        """Pick a part of a range."""
        first = pick(range(first, last + 1))
        return first, pick(range(first, last + 1))

    def wrong(self, pick: Pick) -> tuple[str, list[Range]]:
        """Pick an acknowledgement of a record that a member does not own, perhaps with some that it owns."""
        return self.wrong_of(pick, pick(self.members))

    def wrong_of(self, pick: Pick, member: str) -> tuple[str, list[Range]]:
        """Pick an acknowledgement of a record that *member* does not own, perhaps with some that it owns."""
        owned = self.model.owned(member)
        others = dict.fromkeys([offset for offset in self.model.records if offset not in owned], "ACCEPT")
        groups: dict[Knowledge | None, list[int]] = {None: [self.model.log_end]}
        for offset, may in self.model.verdicts(member, others).items():
            groups.setdefault(None if may is None else self.model.records[offset].state, []).append(offset)
        offset = pick(pick([*groups.values()]))
        how = pick(("alone", "alone", "in two ranges", "in one range")) if owned else "alone"
        first, last = sorted((offset, offset if how == "alone" else pick(owned)))
        if how == "in two ranges":
            return member, [(each, each, self.names(each, each, [self.type(pick)])) for each in (first, last)]
        return member, [(first, last, self.names(first, last, [self.type(pick)]))]

    def acknowledgement(self, pick: Pick) -> tuple[str, list[Range]]:
        """Pick an acknowledgement: more often one that is right than one that is wrong."""
        return self.some(pick) if pick((True, True, False)) and self.owners() else self.wrong(pick)

    def overlapping(self, pick: Pick) -> tuple[list[int], list[Event]]:
        """Pick what the members do at once, perhaps while time passes, and which of them goes on when."""
        members = [pick(self.members) for _ in self.members] if self.members_overlap else self.members
        events = [self.of_member(pick, member) for member in members]
        durations = [ms for ms in self.durations_until_expiry_ms() if self.may_pass_meanwhile(ms, events)]
        if "advance_clock" in self.has and durations and pick((True, True, False)):
            events = [("time_passes", pick(durations)), *events]
        return [pick(delays) for delays in DELAYS], events

    def may_pass_meanwhile(self, ms: int, events: Iterable[Event]) -> bool:
        """Return whether no lock that is renewed in *events* may have expired when a time has passed."""
        renews = any(
            "RENEW" in names for name, *rest in events if name == "member_acknowledges" for *_, names in rest[1]
        )
        return not renews or ms <= self.model.settings.lock_duration_ms

    def durations_until_expiry_ms(self) -> list[int]:
        """Return how much time may pass: half of a lock, or until a lock has surely expired, last one of now. [ms]"""
        lock_ms, now_ms = self.model.settings.lock_duration_ms, self.model.now_ms
        latest = {latest_ms for _, latest_ms in self.model.deadlines_ms()} | {
            now_ms + lock_ms + self.model.clock_tolerance_ms
        }
        return [ms for ms in (lock_ms // 2, *(latest_ms - now_ms + 1 for latest_ms in sorted(latest))) if ms > 0]

    def of_member(self, pick: Pick, member: str) -> Event:
        """Pick what a member does while others do something."""
        owned = self.model.owned(member)
        how = pick(("fetch", "fetch", "some", "all", "leave") if owned else ("fetch", "fetch", "wrong"))
        if how == "leave" and "close_session" in self.has:
            return "member_leaves", member
        if how == "all":
            return "member_acknowledges", member, self.everything(member, self.type(pick))
        if how == "some":
            return "member_acknowledges", *self.some_of(pick, member)
        if how == "wrong" and self.model.records:
            return "member_acknowledges", *self.wrong_of(pick, member)
        return "member_fetches", member, pick(_MAX_RECORDS)

    def everything(self, member: str, name: str) -> list[Range]:
        """Return the ranges that acknowledge all that *member* owns in the same way."""
        return [(first, last, self.names(first, last, [name])) for first, last in runs(self.model.owned(member))]

    def names(self, first: int, last: int, names: list[str]) -> list[str]:
        """Return the types of a range: *names*, but GAP where there is no record."""
        contents = [self.content(offset) for offset in range(first, last + 1)]
        if all(content is Content.RECORD for content in contents):
            return names
        if len(names) == 1:
            names = names * len(contents)
        return [name if content is Content.RECORD else "GAP" for name, content in zip(names, contents, strict=True)]

    def is_range(self, first: int, last: int, names: Sequence[str]) -> bool:
        """Return whether a range of an acknowledgement has GAP where there is no record, and nowhere else."""
        offsets = range(first, last + 1)
        if not offsets or len(names) not in {1, len(offsets)}:
            return False
        all_names = [*names] * (len(offsets) // len(names))
        return all(
            (name == "GAP") is (self.content(offset) is not Content.RECORD)
            for offset, name in zip(offsets, all_names, strict=True)
        )

    def content(self, offset: int) -> Content:
        """Return what the log has at an offset; past its end, what it will have."""
        record = self.model.records.get(offset)
        if record is not None:
            return record.content
        return Content.HOLE if offset < self.model.log_end else Content.RECORD


def runs(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """
    Return ascending offsets as ranges.

    >>> runs([0, 1, 2, 5])
    [(0, 2), (5, 5)]
    """
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and offset == found[-1][1] + 1:
            found[-1] = found[-1][0], offset
        else:
            found.append((offset, offset))
    return found


class EventKind(NamedTuple):
    """
    A kind of event.

    Attributes:
        method: The method of the machine that lets it happen.
        weight: How often it happens, beside the others.
        may_happen: Whether it may happen now.
        arguments: Picks the arguments of the method.
        is_rare: Whether most runs do without it.
    """

    method: str
    weight: int
    may_happen: Callable[[ClientEvents], object]
    arguments: Callable[[ClientEvents, Pick], tuple[Any, ...]]
    is_rare: bool = False


_MAX_RECORDS: Final = (EVERYTHING, 1, 2)

DELAYS: Final = (0, 1, 3), (0, 1), (0, 1), (0, 3), (0, 3)
"""
How many turns of the event loop may pass before one of several calls goes on: as many of them begin, and then the first
ones go on after what they have awaited, while others come in between; time, the first, may be the last. [turns]
"""

_SHARES: Final = (1, 2, 3)
"""So few that something is left for the next member: several own records at the same time, from the same time on."""

KINDS: Final = (
    EventKind(
        "member_fetches",
        3,
        lambda _: True,
        lambda events, pick: (pick(events.members), pick(_MAX_RECORDS)),
    ),
    EventKind("every_member_fetches", 2, ClientEvents.is_any_available, lambda _, pick: (pick(_SHARES),)),
    EventKind(
        "member_fetches_all",
        2,
        lambda events: events.model.waiting(),
        lambda events, pick: (pick(events.members),),
    ),
    EventKind(
        "member_acknowledges_all",
        2,
        ClientEvents.owners,
        lambda events, pick: (pick(events.owners()), events.type(pick)),
    ),
    EventKind(
        "member_renews_later",
        2,
        lambda events: events.renews and "advance_clock" in events.has and events.times_before_expiry_ms(),
        lambda events, pick: (pick(events.owners()), pick(events.times_before_expiry_ms())),
    ),
    EventKind(
        "member_acknowledges_all",
        2,
        ClientEvents.owners_for_a_while,
        lambda events, pick: (pick(events.owners_for_a_while()), "RENEW"),
    ),
    EventKind(
        "at_once",
        10,
        lambda events: events.overlaps and not events.model.writes_fail,
        ClientEvents.overlapping,
    ),
    EventKind("member_acknowledges", 3, lambda events: events.model.records, ClientEvents.acknowledgement),
    EventKind("producer_sends", 2, ClientEvents.may_produce, ClientEvents.batch),
    EventKind(
        "producer_sends",
        2,
        lambda events: events.model.log_end < min(BULK),
        lambda _, pick: (pick(BULK), None),
        is_rare=True,
    ),
    EventKind(
        "transaction_ends",
        2,
        ClientEvents.producers,
        lambda events, pick: (pick(events.producers()), pick(("abort", "commit"))),
    ),
    EventKind(
        "time_passes",
        3,
        lambda events: "advance_clock" in events.has and events.owners(),
        lambda events, pick: (pick(events.durations_ms()),),
    ),
    EventKind(
        "member_leaves",
        1,
        lambda events: "close_session" in events.has and events.owners(),
        lambda events, pick: (pick(events.owners()),),
    ),
    EventKind(
        "leader_fails_over",
        1,
        lambda events: "fail_over" in events.has and events.was_delivered() and not events.model.writes_fail,
        lambda _events, _pick: (),
    ),
    EventKind(
        "writes_fail",
        1,
        lambda events: "fail_writes" in events.has and not events.model.writes_fail,
        lambda _events, _pick: (),
    ),
    EventKind("writes_succeed", 2, lambda events: events.model.writes_fail, lambda _events, _pick: ()),
    EventKind(
        "records_are_deleted",
        1,
        lambda events: "delete_records" in events.has and events.log_starts(),
        lambda events, pick: (pick(events.log_starts()),),
    ),
)
"""What may happen around a share group; the first may always happen."""


def _overlap_is_possible(events: ClientEvents, _delays: Sequence[int], overlapping: Sequence[Event]) -> bool:
    durations = [ms for name, ms, *_ in overlapping if name == "time_passes"]
    may_pass = all(events.may_pass_meanwhile(ms, overlapping) for ms in durations)
    return events.overlaps and not events.model.writes_fail and may_pass and all(map(events.is_possible, overlapping))


def _is_possible_elsewhere(events: ClientEvents, number: int, event: Event) -> bool:
    return number <= len(events.others) and events.others[number - 1].is_possible(event)


_POSSIBLE: Final[Mapping[str, Callable[..., object]]] = {
    "at_once": _overlap_is_possible,
    "elsewhere": _is_possible_elsewhere,
    "member_acknowledges": lambda events, _, ranges: all(events.is_range(*each) for each in ranges),
    "member_acknowledges_all": lambda events, member, _: member in events.owners(),
    "member_renews_later": ClientEvents.may_renew_after,
    "member_leaves": lambda events, member: member in events.owners(),
    "transaction_ends": lambda events, producer, _: producer in events.producers(),
    "records_are_deleted": lambda events, before: before in events.log_starts(),
    "leader_fails_over": lambda events: not events.model.writes_fail,
    "writes_fail": lambda events: not events.model.writes_fail,
    "writes_succeed": lambda events: events.model.writes_fail,
}
"""When an event may happen, arguments and all, if not always."""

_BY_WEIGHT: Final = tuple(number for number, kind in enumerate(KINDS) for _ in range(kind.weight))

_ALWAYS: Final = frozenset({"member_fetches", "member_acknowledges", "producer_sends", "writes_succeed"})
"""What a run is nothing without."""


def left_out(pick: Pick) -> frozenset[int]:
    """Pick the kinds of events that a run does without: those that are rare, and perhaps half of the others."""
    rare = {number for number, kind in enumerate(KINDS) if kind.is_rare and pick((True,) * (RARELY - 1) + (False,))}
    if pick((True, False)):
        return frozenset(rare)
    others = {number for number, kind in enumerate(KINDS) if kind.method not in _ALWAYS and pick((True, False))}
    return frozenset(rare | others)
