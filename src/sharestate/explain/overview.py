"""What keeps a share partition from going on: its SPSO, its locks, and the records and members that keep failing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sharestate.explain.members import KnownMembers
from sharestate.explain.sentences import Outlook, StatedReason
from sharestate.explain.totals import HappenedLine, WhatHappened
from sharestate.explain.words import counted, duration, instant
from sharestate.values.records import RecordState

OVERVIEW_VERSION: Final = 1
"""The version of the JSON form."""

_WRITTEN: Final = ("start_offset", "delivery_complete_count")


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
