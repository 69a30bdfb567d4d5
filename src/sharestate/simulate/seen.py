"""What a history shows of a group: the turns of its members, the batches of its log, deliveries and how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from attrs import define, field

from sharestate.explain.replayed import has_expired
from sharestate.history import Event, Replay, ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.effects import Cause
from sharestate.values.records import AcquireMode, RecordState

SETTINGS_OF_GROUPS: Final = {
    "record_lock_duration_ms": "lock_duration_ms",
    "delivery_count_limit": "delivery_count_limit",
    "max_record_locks": "max_record_locks",
}
"""Settings of groups by their names in histories, and in loads."""

_OUTPUTS: Final = frozenset({"acquisition", "transition"})


class Got(NamedTuple):
    """An answer to a fetch with records."""

    at_us: int
    records: int


@define
class SeenAcknowledgement:
    """A request that acknowledges, of one partition or several."""

    at_us: int
    done_us: int
    records: int = 0
    is_refused: bool = False
    renews: bool = False
    fetches: bool = False

    def add_write(self, turns: Turns) -> None:
        """Add how long the write of it has taken; of one that also fetches, the answer may have waited for records."""
        if self.done_us > self.at_us and not (self.is_refused or self.fetches):
            turns.writes_us.append(self.done_us - self.at_us)


@define
class Turns:
    """
    What members do in turns.

    Attributes:
        requests: Records of each request that acknowledges, and the time since the answer before. [µs]
        idle_us: Times from answers to acknowledgements until the next fetch. [µs]
        writes_us: Times from acknowledgements until their answers. [µs]
        renewals_us: Times between renewals of a member. [µs]
        answers: Records of each answer to a fetch. [records]
    """

    requests: list[tuple[int, int]] = field(factory=list)
    idle_us: list[int] = field(factory=list)
    writes_us: list[int] = field(factory=list)
    renewals_us: list[int] = field(factory=list)
    answers: list[int] = field(factory=list)


@define
class SeenMember:
    """What was seen of a member."""

    first_us: int
    last_us: int
    got: dict[object, Got] = field(factory=dict)
    acknowledged: dict[object, SeenAcknowledgement] = field(factory=dict)
    fetched_us: dict[object, int] = field(factory=dict)
    renewed_us: int | None = None

    def add_turns(self, turns: Turns) -> None:
        """Add what the member has done between answers and requests."""
        turns.answers += [got.records for got in self.got.values()]
        for identity, one in self.acknowledged.items():
            one.fetches = identity in self.fetched_us
        steps: list[tuple[int, int, SeenAcknowledgement | None]] = [(got.at_us, 0, None) for got in self.got.values()]
        steps += [(one.at_us, 1, one) for one in self.acknowledged.values()]
        steps += [(at_us, 2, None) for at_us in self.fetched_us.values()]
        free_us: int | None = None
        idle_us: int | None = None
        for at_us, kind, acknowledged in sorted(steps, key=lambda step: step[:2]):
            if acknowledged is not None:
                self._note_renewal(acknowledged, turns)
                if acknowledged.records:
                    if free_us is not None and at_us >= free_us:
                        turns.requests.append((acknowledged.records, at_us - free_us))
                    acknowledged.add_write(turns)
                    free_us = idle_us = acknowledged.done_us
            elif kind == 0:
                free_us, idle_us = at_us, None
            elif idle_us is not None and at_us >= idle_us:
                turns.idle_us.append(at_us - idle_us)
                idle_us = None

    def _note_renewal(self, one: SeenAcknowledgement, turns: Turns) -> None:
        if one.renews:
            if self.renewed_us is not None:
                turns.renewals_us.append(one.at_us - self.renewed_us)
            self.renewed_us = one.at_us

    def sees(self, *times_us: int | None) -> None:
        """Note that the member was there at these times, as far as they are known."""
        for us in times_us:
            if us is not None:
                self.first_us, self.last_us = min(self.first_us, us), max(self.last_us, us)


@define
class SeenGroup:
    """What was seen of a group."""

    group_id: str
    lacks: frozenset[str]
    partitions: list[SeenPartition] = field(factory=list)
    members: dict[str, SeenMember] = field(factory=dict)
    settings: dict[str, Any] = field(factory=dict)
    assumed: set[str] = field(factory=set)
    changed: Counter[str] = field(factory=Counter)
    polls: Counter[int] = field(factory=Counter)
    modes: Counter[str] = field(factory=Counter)
    waits: Counter[int] = field(factory=Counter)
    kinds: Counter[int] = field(factory=Counter)
    requests: dict[object, int] = field(factory=dict)
    causes: Counter[Cause] = field(factory=Counter)
    lost: set[tuple[str, int | None]] = field(factory=set)
    deliveries: int = 0
    duplicates: int = 0
    expired: int = 0
    released_at_limit: int = 0
    begin_us: int | None = None
    end_us: int = 0

    def begin(self, key: tuple[str, str, int], *, lacks: frozenset[str], budget: ReplayBudget) -> SeenPartition:
        """Begin to look at a share partition."""
        self.partitions.append(SeenPartition(self, key, lacks, budget))
        return self.partitions[-1]

    def member(self, member_id: str, *times_us: int | None) -> SeenMember:
        """Return what was seen of a member, which was there at those times."""
        known = [us for us in times_us if us is not None] or [self.end_us]
        member = self.members.setdefault(member_id, SeenMember(known[0], known[0]))
        member.sees(*known)
        return member


class SeenPartition:
    """What was seen of a share partition of the group."""

    def __init__(self, seen: SeenGroup, key: tuple[str, str, int], lacks: frozenset[str], budget: ReplayBudget) -> None:
        """Begin before the first event."""
        self._seen = seen
        self._replay = Replay(key, lacks=lacks, outputs=_OUTPUTS, budget=budget)
        self._has_log = False
        self.start_offset: int | None = None
        self.batches: dict[int, tuple[int, int]] = {}
        """When each batch was appended, by its first offset, and its last offset. [µs]"""

    @property
    def has_log(self) -> bool:
        """Whether the history says when batches were appended."""
        return self._has_log

    def apply(self, event: Event) -> None:
        """Take the next event."""
        rows = self._replay.apply(event)
        seen, at_us = self._seen, event.time_us
        if at_us is not None and event.kind in {"fetch", "acknowledge"}:
            seen.begin_us = at_us if seen.begin_us is None else min(seen.begin_us, at_us)
            seen.end_us = max(seen.end_us, at_us)
        for row in rows:
            self._take_row(event, row)
        match event.kind:
            case "config":
                _take_config(seen, event.request or {})
            case "log":
                self._has_log = True
                self._append((event.request or {})["batches"], event.at_us or event.done_us)
            case "initialize" if self.start_offset is None and event.response and "error" not in event.response:
                self.start_offset = self._replay.partition.start_offset if self._replay.partition else 0
            case "fetch":
                self._take_fetch(event, rows)
            case "acknowledge":
                self._take_acknowledgement(event)
            case _:
                pass

    def _append(self, batches: Iterable[Any], at_us: int | None) -> None:
        for batch in batches:
            if batch.control is None:
                self.batches.setdefault(batch.first_offset, (at_us or 0, batch.last_offset))

    def _take_row(self, event: Event, row: OutputRow) -> None:
        seen = self._seen
        if row.kind == "acquisition":
            first, last, _, count = row.values
            seen.deliveries += last - first + 1
            seen.duplicates += (last - first + 1) * (count > 1)
            return
        first, last, member_id, _, name, before, _, _ = row.values
        cause, records = Cause(name), last - first + 1
        seen.causes[cause] += records
        if cause is Cause.LOCK_EXPIRED and before == RecordState.ACQUIRED:
            seen.expired += records
        elif cause is Cause.ARCHIVED_AT_LIMIT:
            is_given_back = event.kind == "acknowledge" and not has_expired(event, row, event.member_id or "")
            seen.expired += 0 if is_given_back or event.kind in {"close", "disconnect"} else records
            seen.released_at_limit += records * is_given_back
        elif cause is Cause.SESSION_CLOSED:
            seen.lost.add((event.member_id or member_id, event.time_us))

    def _take_fetch(self, event: Event, rows: Iterable[OutputRow]) -> None:
        seen, request = self._seen, event.request or {}
        if event.member_id is None or request.get("max_records") == 0:
            return
        identity = _identity(event)
        member = seen.member(event.member_id, event.at_us, event.done_us)
        if event.at_us is not None:
            member.fetched_us.setdefault(identity, event.at_us)
        if identity not in seen.requests:
            seen.requests[identity] = 1
            seen.polls[request.get("max_records", 500)] += 1
            seen.modes[request.get("mode", AcquireMode.BATCH_OPTIMIZED.value)] += 1
            if "max_wait_ms" in request:
                seen.waits[request["max_wait_ms"]] += 1
        if not self._has_log and request.get("batches"):
            self._append(request["batches"], event.time_us)
        acquired = (event.response or {}).get("acquired")
        if acquired is None:  # a program need not write down what follows from the events
            acquired = [(row.values[0], row.values[1], None) for row in rows if row.kind == "acquisition"]
        records = sum(last - first + 1 for first, last, _ in acquired)
        answered_us = event.done_us or event.time_us
        if records and answered_us is not None:
            before = member.got.get(identity, Got(answered_us, 0))
            member.got[identity] = Got(max(before.at_us, answered_us), before.records + records)

    def _take_acknowledgement(self, event: Event) -> None:
        seen, request = self._seen, event.request or {}
        at_us = event.at_us or event.time_us
        if event.member_id is None or at_us is None:
            return
        member = seen.member(event.member_id, at_us, event.done_us)
        new = SeenAcknowledgement(at_us, event.done_us or at_us)
        one = member.acknowledged.setdefault(_identity(event), new)
        one.done_us = max(one.done_us, event.done_us or at_us)
        is_refused = bool((event.response or {}).get("error"))
        one.is_refused |= is_refused
        for first, last, types in request["batches"]:
            kinds = Counter(types) if len(types) > 1 else Counter({types[0]: last - first + 1})
            renewed = kinds.pop(AcknowledgeType.RENEW, 0)
            one.renews |= renewed > 0
            one.records += sum(kinds.values())
            if not is_refused:
                seen.kinds.update(kinds)


def _identity(event: Event) -> object:
    """Return what names the request of an event, which may be of several partitions."""
    if event.request_no is not None:
        return event.connection, event.request_no
    return event.member_id, event.at_us if event.at_us is not None else event.seq


def _take_config(seen: SeenGroup, request: Mapping[str, Any]) -> None:
    for name in (*SETTINGS_OF_GROUPS, "profile", "isolation", "dlq_topic"):
        if name in request:
            if seen.settings.get(name, request[name]) != request[name]:
                seen.changed[name] += 1
            seen.settings[name] = request[name]
    if "assumed" in request:
        seen.assumed = set(request["assumed"])
