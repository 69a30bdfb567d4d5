"""What keeps a share partition from going on: its SPSO, its locks, and the records and members that keep failing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from sharestate.explain.members import KnownMembers
from sharestate.explain.miscounts import Miscounts
from sharestate.explain.replayed import ReplayedPartition, has_expired
from sharestate.explain.sentences import Outlook, StatedReason
from sharestate.explain.totals import LISTED, HappenedLine, WhatHappened
from sharestate.explain.why_not_delivered import Present, StateLost
from sharestate.explain.words import counted, duration, instant
from sharestate.history.events import Event
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.partition.record_machine import TERMINAL
from sharestate.partition.share_partition import SharePartition
from sharestate.partition.views import RecordRun
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import RecordState

OVERVIEW_VERSION: Final = 1
"""The version of the JSON form."""

_WRITTEN: Final = ("start_offset", "delivery_complete_count")
_KEPT: Final = 64
"""The acquisitions from which on those below the SPSO are forgotten, and again at twice what is left: linear in all."""


class HeldRecords(NamedTuple):
    """
    Records that a member has acquired together, and holds.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
        member_id: The member.
        delivery_count: The deliveries of each so far. [deliveries]
        since_us: When it has acquired them; None if that is not known. [µs since 1970]
        locked_until_us: The last instant at which their lock holds; None without one. [µs since 1970]
    """

    first_offset: int
    last_offset: int
    member_id: str
    delivery_count: int
    since_us: int | None
    locked_until_us: int | None


class NearLimit(NamedTuple):
    """
    Records with one delivery left, or none, that are not terminal.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
        state: Their state.
        delivery_count: The deliveries of each so far. [deliveries]
        limit: The delivery count limit. [deliveries]
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    limit: int


class Overview(NamedTuple):
    """
    A share partition after the last event of its history.

    Attributes:
        key: The share partition: group id, topic id and partition.
        events: The number of its events. [events]
        at_us: The time of the last one; None if none had a time. [µs since 1970]
        start_offset: The SPSO; None if the state is not known.
        start_since_us: When the SPSO has got there; None if that is not known. [µs since 1970]
        end_offset: The SPEO; None if the state is not known.
        in_flight: The number of offsets in flight, gaps and terminal records included. [offsets]
        room: How many records more may be acquired beyond the SPEO. [records]
        delivery_complete_count: The delivery complete count; None if the state is not known. [records]
        log_end_offset: The offset after the last record of the log; None if the history does not say.
        last_write: The SPSO and the delivery complete count of the last write of the state; None without one.
        last_fetch_us: When a member has fetched last; None if that is not known. [µs since 1970]
        last_fetch_by: The member that has fetched last; None if none has.
        start_findings: What keeps the SPSO where it is.
        new_offset: The first offset beyond what is in flight; None if the state is not known.
        new_findings: Why the record there is or is not deliverable.
        bug_findings: Bugs of Kafka that have made the delivery complete count wrong, or that have shown in a log.
        held: What members hold, the longest held first.
        near_limit: The records that are near the delivery count limit, in order.
        expiries: How many records each member has lost to expired locks, the most first.
        differences: How much was observed and computed otherwise.
        members: Who the members are.
        named: Those that are named.
        happened: What happened to its records.
    """

    key: tuple[str, str, int]
    events: int
    at_us: int | None
    start_offset: int | None
    start_since_us: int | None
    end_offset: int | None
    in_flight: int
    room: int
    delivery_complete_count: int | None
    log_end_offset: int | None
    last_write: tuple[int, int] | None
    last_fetch_us: int | None
    last_fetch_by: str | None
    start_findings: tuple[StatedReason, ...]
    new_offset: int | None
    new_findings: tuple[StatedReason, ...]
    bug_findings: tuple[StatedReason, ...]
    held: tuple[HeldRecords, ...]
    near_limit: tuple[NearLimit, ...]
    expiries: tuple[tuple[str, int], ...]
    differences: int
    members: KnownMembers
    named: tuple[str, ...]
    happened: WhatHappened

    @property
    def lag(self) -> int | None:
        """How many records are still to be delivered or finished (KIP-1226); None if that is not known. [records]"""
        if self.log_end_offset is None or self.start_offset is None or self.delivery_complete_count is None:
            return None
        return self.log_end_offset - self.start_offset - self.delivery_complete_count

    @property
    def is_stalled(self) -> bool:
        """Whether nothing that is under way will move the SPSO."""
        return any(finding.verdict is Outlook.STALLED for finding in self.start_findings)

    @property
    def happened_title(self) -> str:
        """What stands above what happened: whether that is all."""
        return f"What happened to its records{', as far as that is known' if self.start_offset is None else ''}"

    def happened_lines(self) -> list[HappenedLine]:
        """Return what happened to how many records, and how many are near the delivery count limit now."""
        near = sum(each.last_offset - each.first_offset + 1 for each in self.near_limit)
        found = self.happened.happened_lines(self.members)
        return [*found, HappenedLine("near the delivery count limit", near)] if near else found

    def to_json(self) -> dict[str, Any]:
        """Return the overview as JSON; what is null is left out."""
        group_id, topic_id, partition = self.key
        names = self._fields[1:13]
        fields = {
            "overview": OVERVIEW_VERSION,
            "group_id": group_id,
            "topic_id": topic_id,
            "partition": partition,
            **{name: getattr(self, name) for name in names},
            "last_write": None if self.last_write is None else dict(zip(_WRITTEN, self.last_write, strict=True)),
            "lag": self.lag,
            "start": [finding.to_json() for finding in self.start_findings],
            "new_offset": self.new_offset,
            "new": [finding.to_json() for finding in self.new_findings],
            "bugs": [finding.to_json() for finding in self.bug_findings],
            "held": [each._asdict() for each in self.held],
            "near_limit": [each._asdict() | {"state": each.state.name} for each in self.near_limit],
            "expiries": [{"member_id": member_id, "records": records} for member_id, records in self.expiries],
            "differences": self.differences,
            "happened": self.happened.to_json(self.members),
            **self.members.to_json(self.named),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def lines(self, most: int = 10) -> list[str]:
        """Return the overview in plain words, line by line, with *most* lines of each list."""
        found = [f"  {each.line}" for each in self.happened_lines()]
        lines = [f"{self.happened_title}:", *found, ""] if found else []
        lines += self.facts()
        at = "" if self.start_offset is None or not self.in_flight else f", record {self.start_offset}"
        lines += [f"At the SPSO{at}:", *(f"  {finding.text}" for finding in self.start_findings)]
        if self.new_findings:
            lines += [
                f"Next new record, {self.new_offset}:",
                *(f"  {finding.text}" for finding in self.new_findings),
            ]
        lines += _listed("Held longest:", map(self._held_line, self.held), most)
        lines += _listed("Near the delivery count limit:", map(_near_line, self.near_limit), most)
        expiries = (f"{self._located(member_id)}: {counted(records, 'record')}" for member_id, records in self.expiries)
        lines += _listed("Lost to expired locks:", expiries, most)
        return lines

    def facts(self) -> list[str]:
        """Return the numbers and times in plain words, line by line."""
        lines = [f"{counted(self.events, 'event')}, the last at {_at(self.at_us)}."]
        if self.start_offset is not None:
            end = f", SPEO {self.end_offset}" if self.in_flight else ""
            in_flight = counted(self.in_flight, "offset") if self.in_flight else "nothing"
            room = f"room for {counted(self.room, 'record')} more" if self.room else "no room for more"
            lines.append(f"SPSO {self.start_offset}{end}: {in_flight} in flight, {room}.")
            if self.start_since_us is not None and self.at_us is not None:
                since = duration(max(0, self.at_us - self.start_since_us))
                lines.append(f"The SPSO has been there since {instant(self.start_since_us)}, for {since}.")
        if self.log_end_offset is not None:
            lag = "" if self.lag is None else f", the lag is {self.lag}"
            lines.append(f"The log ends at {self.log_end_offset}{lag}.")
        if self.start_offset is None and self.last_write is not None:
            start, complete = self.last_write
            lines.append(f"The last write of the state says SPSO {start}, delivery complete count {complete}.")
        if self.last_fetch_us is not None and self.at_us is not None:
            before = duration(max(0, self.at_us - self.last_fetch_us))
            lines.append(
                f"The last fetch was that of {self._located(self.last_fetch_by or '')}, {before} before the last event."
            )
        lines += [finding.text for finding in self.bug_findings]
        if self.differences:
            lines.append(f"{counted(self.differences, 'time')} something was observed and computed otherwise.")
        return lines

    def _located(self, member_id: str) -> str:
        """Return how a line names a member: with its address, if that is known."""
        return self.members.place(member_id)

    def _held_line(self, held: HeldRecords) -> str:
        until = "" if held.locked_until_us is None else f", locked until {instant(held.locked_until_us)}"
        since = "" if held.since_us is None or self.at_us is None else f", for {duration(self.at_us - held.since_us)}"
        return f"{_range(held)} by {self._located(held.member_id)}{since}, delivery {held.delivery_count}{until}"


def _near_line(near: NearLimit) -> str:
    return f"{_range(near)} {near.state.name}, delivery count {near.delivery_count} of {near.limit}"


def _range(records: HeldRecords | NearLimit) -> str:
    first, last = records.first_offset, records.last_offset
    return str(first) if first == last else f"{first}-{last}"


def _at(at_us: int | None) -> str:
    return "a time that is not known" if at_us is None else instant(at_us)


def _listed(title: str, items: Iterator[str], most: int) -> list[str]:
    """Return *title* and the first *most* of *items*; nothing if there is none."""
    lines = [f"  {item}" for item in items]
    more = [f"  and {len(lines) - most} more"] if len(lines) > most else []
    return [title, *lines[:most], *more] if lines else []


class _Acquisition(NamedTuple):
    first_offset: int
    last_offset: int
    member_id: str
    at_us: int | None


class PartitionLife:
    """
    The life of one share partition, event by event, for an overview.

    Complexity:
        That of a replay with its transitions; for each lock that expires, linear in the acquisitions in flight.
    """

    def __init__(  # noqa: PLR0913 - as ``Replay``
        self,
        key: tuple[str, str, int],
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        listed: int = LISTED,
        budget: ReplayBudget | None = None,
    ) -> None:
        """
        Begin before the first event of the share partition *key*.

        *listed* ranges of records are kept of each list of ``WhatHappened``; the other arguments are those of
        ``Replay``.
        """
        self._replayed = ReplayedPartition(key, 0, profile=profile, config=config, lacks=lacks, budget=budget)
        self._acquisitions: list[_Acquisition] = []
        self._kept = _KEPT
        self._expiries: Counter[str] = Counter()
        self._miscounts = Miscounts()
        self._happened = WhatHappened(listed)
        self._start: tuple[int, int | None] | None = None
        self._last_fetch: tuple[int | None, str | None] = None, None

    @property
    def partition(self) -> SharePartition | None:
        """The share partition, to read; None as long as its state is not known."""
        return self._replayed.partition

    @property
    def log_end_offset(self) -> int | None:
        """The offset after the last record of the log; None if the history does not say."""
        return self._replayed.log.end_offset

    @property
    def members(self) -> KnownMembers:
        """Who the members are."""
        return self._replayed.members

    @property
    def lost(self) -> StateLost | None:
        """From when on the state is not known; None if it is, or was never known."""
        return self._replayed.lost

    def apply(self, event: Event) -> list[OutputRow]:
        """
        Apply the next event of the share partition, and return what it led to.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        was_lost = self._replayed.lost is not None
        rows = self._replayed.apply(event)
        partition = self._replayed.partition
        self._happened.apply(event, rows, None if partition is None else partition.start_offset, was_lost=was_lost)
        if event.kind == "initialize":
            self._acquisitions.clear()
            self._start = None
            self._miscounts.clear()
        elif event.kind == "fetch":
            self._last_fetch = self._replayed.at_us, event.member_id
        for row in rows:
            self._take_row(event, row)
        if partition is not None:
            for row in rows:
                self._miscounts.take(row, partition)
            if self._start is not None:
                self._miscounts.take_start(self._start[0], partition)
        if partition is not None and (self._start is None or self._start[0] != partition.start_offset):
            self._start = partition.start_offset, self._replayed.at_us
            self._forget_below(partition.start_offset)
        return rows

    def overview(self) -> Overview:
        """Return the share partition as it is after the last event."""
        replayed = self._replayed
        present, partition = replayed.present(), replayed.partition
        start_findings, new_offset = present.start_findings(), present.new_offset
        runs = () if partition is None else tuple(run for batch in partition.batches() for run in batch.runs)
        held = [self._held(run) for run in runs if run.state is RecordState.ACQUIRED]
        held.sort(key=lambda each: (each.since_us is None, each.since_us, each.first_offset))
        return Overview(
            key=replayed.key,
            events=replayed.events,
            at_us=replayed.at_us,
            start_offset=None if partition is None else partition.start_offset,
            start_since_us=None if self._start is None else self._start[1],
            end_offset=None if partition is None else partition.end_offset,
            in_flight=present.in_flight,
            room=present.room,
            delivery_complete_count=None if partition is None else partition.delivery_complete_count,
            log_end_offset=replayed.log.end_offset,
            last_write=replayed.last_write,
            last_fetch_us=self._last_fetch[0],
            last_fetch_by=self._last_fetch[1],
            start_findings=start_findings,
            new_offset=new_offset,
            new_findings=() if new_offset is None else self._new_findings(present, new_offset, start_findings),
            bug_findings=tuple(self._bug_findings()),
            held=tuple(held),
            near_limit=() if partition is None else tuple(_near_limit(partition, runs)),
            expiries=tuple(self._expiries.most_common()),
            differences=replayed.differences,
            members=replayed.members,
            named=tuple(dict.fromkeys(filter(None, self._named(held)))),
            happened=self._happened,
        )

    def _new_findings(
        self, present: Present, offset: int, others: tuple[StatedReason, ...]
    ) -> tuple[StatedReason, ...]:
        """Return why the record at *offset* is or is not deliverable, without what *others* say already."""
        findings = present.standing(offset, self._replayed.log).findings
        return tuple(finding for finding in findings if finding not in others)

    def _named(self, held: Iterable[HeldRecords]) -> Iterator[str]:
        """Yield the members that an overview names."""
        yield self._last_fetch[1] or ""
        yield from (each.member_id for each in held)
        yield from (member_id for member_id, _ in self._expiries.most_common())

    def _take_row(self, event: Event, row: OutputRow) -> None:
        if row.kind == "acquisition":
            first, last, member_id, _ = row.values
            self._acquisitions.append(_Acquisition(first, last, member_id, row.at_us))
        elif row.kind == "transition":
            first, last, _, _, name, *_ = row.values
            acquisition = self._last_acquisition(first)
            owner = "" if acquisition is None else acquisition.member_id
            if name == Cause.LOCK_EXPIRED or (name == Cause.ARCHIVED_AT_LIMIT and has_expired(event, row, owner)):
                self._expiries[owner] += last - first + 1

    def _bug_findings(self) -> Iterator[StatedReason]:
        yield from self._replayed.bug_findings()
        partition = self._replayed.partition
        if partition is not None:
            yield from self._miscounts.findings(partition, self._replayed.at_us)

    def _last_acquisition(self, offset: int) -> _Acquisition | None:
        for each in reversed(self._acquisitions):
            if each.first_offset <= offset <= each.last_offset:
                return each
        return None

    def _held(self, run: RecordRun) -> HeldRecords:
        acquisition = self._last_acquisition(run.first_offset)
        until_us = None if run.lock_deadline_ms is None else run.lock_deadline_ms * 1000
        since_us = None if acquisition is None else acquisition.at_us
        return HeldRecords(run.first_offset, run.last_offset, run.member_id, run.delivery_count, since_us, until_us)

    def _forget_below(self, offset: int) -> None:
        """Forget acquisitions below *offset* once there are twice as many as were kept: amortized constant time."""
        if len(self._acquisitions) > self._kept:
            partition = self._replayed.partition
            batches = () if partition is None else partition.batches()
            first = min(offset, batches[0].first_offset) if batches else offset  # it may lie below the SPSO
            self._acquisitions = [each for each in self._acquisitions if each.last_offset >= first]
            self._kept = max(_KEPT, 2 * len(self._acquisitions))


def _near_limit(partition: SharePartition, runs: tuple[RecordRun, ...]) -> Iterator[NearLimit]:
    limit = partition.config.delivery_count_limit
    for run in runs:
        if run.state not in TERMINAL and run.delivery_count >= limit - 1 > 0:
            yield NearLimit(run.first_offset, run.last_offset, run.state, run.delivery_count, limit)
