"""How long members have held what they were delivered, how that has ended, and which of them did what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

from attrs import Factory, define

from sharestate.diagnose.durations import Durations
from sharestate.explain.outcomes import End
from sharestate.explain.replayed import has_expired
from sharestate.history.events import Event
from sharestate.history.record_states import OffsetRuns
from sharestate.history.rows import OutputRow
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState

_MOST_EXPIRED: Final = 4096
"""The most ranges of records whose locks have expired that are remembered, to know when they are acknowledged late."""

_DONE: Final = frozenset({Cause.ACCEPTED, Cause.REJECTED, Cause.GAP})
_ENDS: Final = MappingProxyType(
    {
        Cause.LOCK_EXPIRED: End.LOCK_EXPIRED,
        Cause.RELEASED: End.RELEASED,
        Cause.SESSION_CLOSED: End.SESSION_CLOSED,
    }
)


class HeldSince(NamedTuple):
    """
    What is known of records that a member holds.

    Attributes:
        member_id: The member.
        since_us: When it has acquired them; None if that is not known. [µs since 1970]
        renewals: How often it has renewed their lock.
        has_acknowledged: Whether it has acknowledged them, and the write of that has failed.
    """

    member_id: str
    since_us: int | None
    renewals: int = 0
    has_acknowledged: bool = False


@define
class MemberFacts:
    """What a member has done with the records of a share partition."""

    acquired: int = 0
    """The records that it has acquired, each as often as that was. [deliveries]"""

    acknowledgements: int = 0
    """Its acknowledgements, refused ones included. [requests]"""

    released: int = 0
    """Its deliveries that it has given back. [deliveries]"""

    expired: int = 0
    """Its deliveries that have ended because the lock had expired. [deliveries]"""

    expired_since: int = 0
    """Those since its last acknowledgement, or since it came. [deliveries]"""

    rounds_since: int = 0
    """At how many instants these have expired."""

    round_us: int | None = None
    """The last of these instants. [µs since 1970]"""

    renewed: int = 0
    """The records whose locks it has renewed, each as often as that was."""

    fetches: int = 0
    """Its fetches. [requests]"""

    last_fetch_us: int | None = None
    """When it has fetched last. [µs since 1970]"""

    last_acknowledged_us: int | None = None
    """When it has acknowledged last. [µs since 1970]"""


@define
class Renewals:
    """What has become of records whose locks were renewed."""

    used: int = 0
    """Those that were accepted or rejected then. [deliveries]"""

    in_vain: int = 0
    """Those that were given back, or whose locks have expired all the same. [deliveries]"""

    longest_us: int = 0
    """How long one was held at the most, by renewals. [µs]"""

    most: int = 0
    """How often a lock was renewed at the most."""


@define
class Deliveries:
    """
    The deliveries of a share partition.

    Complexity:
        Logarithmic in what is in flight for each range that changes; memory for what is in flight, for members, and for
        4,096 ranges of which locks have expired.
    """

    members: dict[str, MemberFacts] = Factory(dict)
    """What each member has done."""

    processing: Durations = Factory(Durations)
    """How long records were held until they were accepted or rejected."""

    late: Durations = Factory(Durations)
    """How long members took for what they acknowledged only after its lock had expired."""

    ended: dict[End, int] = Factory(lambda: dict.fromkeys(End, 0))
    """How many deliveries have ended how, but for those whose records were done. [deliveries]"""

    done: int = 0
    """How many have ended with a record that was done. [deliveries]"""

    renewals: Renewals = Factory(Renewals)
    """What has become of records whose locks were renewed."""

    lost_sessions: int = 0
    """How many connections were lost with records held. [sessions]"""

    lost_with_sessions: int = 0
    """The deliveries that have ended so. [deliveries]"""

    _held: OffsetRuns[HeldSince] = Factory(OffsetRuns)
    _expired: OffsetRuns[HeldSince] = Factory(OffsetRuns)
    _pending: OffsetRuns[tuple[HeldSince, End | None, int | None]] = Factory(OffsetRuns)

    def member(self, member_id: str) -> MemberFacts:
        """Return what a member has done so far."""
        return self.members.get(member_id) or self.members.setdefault(member_id, MemberFacts())

    @property
    def in_all(self) -> int:
        """How many deliveries have ended by what a member or its lock has done. [deliveries]"""
        return self.done + sum(self.ended.values())

    def held(self) -> Iterator[HeldSince]:
        """Yield what members hold, in the order of offsets."""
        for _, _, held in self._held:
            yield held

    def apply(self, event: Event, rows: Iterable[OutputRow], at_us: int | None) -> None:
        """Take an event and its rows; *at_us* is its time."""
        closed = self.ended[End.SESSION_CLOSED]
        for row in rows:
            if row.kind == "transition":
                self._changed(event, row)
        match event.kind:
            case "initialize" | "stop":  # locks that were due have expired before, as before an acknowledgement
                self._lose_all()
            case "fetch" if event.member_id:
                member = self.member(event.member_id)
                member.fetches += 1
                member.last_fetch_us = at_us
            case "acknowledge" if event.member_id:
                self._acknowledged(event, event.member_id, at_us)
            case "disconnect":
                lost = self.ended[End.SESSION_CLOSED] - closed
                self.lost_sessions += lost > 0
                self.lost_with_sessions += lost
            case _:
                pass

    def _lose_all(self) -> None:
        for first, last, _ in self._held.take_all():
            self.ended[End.NEW_LEADER] += last - first + 1
        self._expired.take_all()
        self._pending.take_all()

    def _changed(self, event: Event, row: OutputRow) -> None:
        first, last, member_id, _, name, before, after, _ = row.values
        cause = Cause(name)
        if cause is Cause.ROLLED_BACK and after == RecordState.ACQUIRED:
            self._roll_back(first, last)
        elif after == RecordState.ACQUIRED:
            self._acquired(first, last, member_id, cause, row.at_us)
        elif before == RecordState.ACQUIRED:
            for begin, stop, held in self._held.take(first, last):
                if cause is Cause.ABORTED and held.since_us == row.at_us:  # filtered out, and never delivered
                    self.member(held.member_id).acquired -= stop - begin + 1
                else:
                    self._ended(begin, stop, held, _end_of(event, row, cause, held), row.at_us)
        elif cause in {Cause.CONFIRMED, Cause.PASSED}:
            self._pending.take(first, last)

    def _acquired(self, first: int, last: int, member_id: str, cause: Cause, at_us: int | None) -> None:
        size = last - first + 1
        if cause is Cause.RENEWED:
            self.member(member_id).renewed += size
            for begin, stop, held in self._held.take(first, last):
                self._held.put(begin, stop, held._replace(renewals=held.renewals + 1))
            return
        self.member(member_id).acquired += size
        self._held.replace(first, last, HeldSince(member_id, at_us))
        self._pending.take(first, last)
        self._take_expired(first, last, member_id)

    def _ended(self, first: int, last: int, held: HeldSince, end: End | None, at_us: int | None) -> None:
        us = None if at_us is None or held.since_us is None else max(0, at_us - held.since_us)
        self._count(held, end, last - first + 1, us)
        self._pending.replace(first, last, (held, end, us))
        if end is End.LOCK_EXPIRED and not held.has_acknowledged:
            member = self.member(held.member_id)
            if at_us is None or at_us != member.round_us:
                member.rounds_since, member.round_us = member.rounds_since + 1, at_us
            self._expired.replace(first, last, held)
            if len(self._expired) > _MOST_EXPIRED:
                self._expired.take(0, first - 1)

    def _roll_back(self, first: int, last: int) -> None:
        """Take back how deliveries have ended, as the write of that has failed: their members hold the records."""
        for begin, stop, (held, end, us) in self._pending.take(first, last):
            self._count(held, end, begin - stop - 1, us)
            self._held.put(begin, stop, held._replace(has_acknowledged=True))

    def _count(self, held: HeldSince, end: End | None, size: int, us: int | None) -> None:
        """Count deliveries that have ended; fewer if *size* is below 0."""
        if held.renewals:
            self._count_renewals(held, end, size, us)
        if end is None:
            self.done += size
            if us is not None:
                self.processing.add(us, size)
            return
        self.ended[end] += size
        if end is End.RELEASED:
            self.member(held.member_id).released += size
        elif end is End.LOCK_EXPIRED and not held.has_acknowledged:
            self.member(held.member_id).expired += size
            self.member(held.member_id).expired_since += size

    def _count_renewals(self, held: HeldSince, end: End | None, size: int, us: int | None) -> None:
        renewals = self.renewals
        if end is None:
            renewals.used += size
        elif end in {End.RELEASED, End.LOCK_EXPIRED}:
            renewals.in_vain += size
        renewals.longest_us = max(renewals.longest_us, us or 0)
        renewals.most = max(renewals.most, held.renewals)

    # ---- late acknowledgements

    def _acknowledged(self, event: Event, member_id: str, at_us: int | None) -> None:
        member = self.member(member_id)
        member.acknowledgements += 1
        member.expired_since = member.rounds_since = 0
        member.last_acknowledged_us = at_us
        if not len(self._expired):
            return
        for first, last, *_ in (event.request or {})["batches"]:
            for begin, end, held in self._take_expired(first, last, member_id):
                if at_us is not None and held.since_us is not None:
                    self.late.add(max(0, at_us - held.since_us), end - begin + 1)

    def _take_expired(self, first: int, last: int, member_id: str) -> list[tuple[int, int, HeldSince]]:
        """Forget, and return, which records of a range a member has lost to an expired lock."""
        found = self._expired.take(first, last)
        for begin, end, held in found:
            if held.member_id != member_id:
                self._expired.put(begin, end, held)
        return [each for each in found if each[2].member_id == member_id]


def _end_of(event: Event, row: OutputRow, cause: Cause, held: HeldSince) -> End | None:
    """Return how a delivery has ended by a transition; None if its record is done."""
    if cause is Cause.ARCHIVED_AT_LIMIT:
        if has_expired(event, row, held.member_id):
            return End.LOCK_EXPIRED
        return End.RELEASED if event.kind == "acknowledge" else End.SESSION_CLOSED
    return None if cause in _DONE else _ENDS.get(cause, End.UNKNOWN)
