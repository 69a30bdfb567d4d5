"""What happened to the records of a share partition: which were delivered again, which were given up, and why."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.explain.members import KnownMembers
from sharestate.explain.outcomes import (
    OUTCOMES,
    WRITTEN_OUTCOMES,
    End,
    Lived,
    ends_in_words,
    filtered_out,
    lived_after,
    outcome_in_words,
)
from sharestate.explain.words import counted, instant
from sharestate.history.events import Event
from sharestate.history.record_states import OffsetRuns
from sharestate.history.rows import OutputRow
from sharestate.values.effects import Cause

LISTED: Final = 10
"""The most ranges of a list of records, if nothing else is asked for. [ranges]"""

LISTS: Final = MappingProxyType(
    {
        "redelivered": "Delivered more than once",
        "archived": "Given up or gone, not accepted",
        "stuck": "Delivered, and not done with",
    }
)
"""The lists of records, and their titles."""

_RANKS: Final = {cause: rank for rank, cause in enumerate(OUTCOMES)}


def without(first: int, last: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """
    Yield what is left of an offset range without *ranges*, which ascend.

    >>> list(without(0, 9, [(2, 3), (9, 12)]))
    [(0, 1), (4, 8)]
    """
    for begin, end in ranges:
        if first <= end and begin <= last:
            if first < begin:
                yield first, begin - 1
            first = end + 1
    if first <= last:
        yield first, last


# ---- counts


class Tally:
    """
    How many records something has happened to.

    Attributes:
        records: The records. [records]
        ends: How often their deliveries have ended how, as far as that led to it.
        members: How often it was of which member.
    """

    def __init__(self) -> None:
        """Count nothing."""
        self.records = 0
        self.ends: Counter[End] = Counter()
        self.members: Counter[str] = Counter()

    def add(self, records: int, member_id: str, end: End | None = None) -> None:
        """Count *records* more, or less if it is below 0."""
        self.records += records
        self.note(records, member_id, end)

    def note(self, records: int, member_id: str, end: End | None) -> None:
        """Count what it was by, and not the records."""
        self.members[member_id] += records if member_id else 0
        if end is not None:
            self.ends[end] += records

    def by_client(self, members: KnownMembers) -> dict[str, int]:
        """Return how often it was of which client, the most often first."""
        counts: Counter[str] = Counter()
        for member_id, count in self.members.items():
            counts[members.client(member_id)] += count
        return {client: count for client, count in counts.most_common() if count > 0}

    def to_json(self, members: KnownMembers) -> dict[str, Any]:
        """Return the counts as JSON; what is empty is left out."""
        fields = {
            "records": self.records,
            "ends": {end.value: count for end, count in self.ends.most_common() if count},
            "by_client": self.by_client(members),
        }
        return {name: each for name, each in fields.items() if each or name == "records"}


class ListedRecords(NamedTuple):
    """
    Records to which the same has happened.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
        lived: What has happened to each.
    """

    first_offset: int
    last_offset: int
    lived: Lived

    @property
    def records(self) -> int:
        """How many they are. [records]"""
        return self.last_offset - self.first_offset + 1

    @property
    def offsets(self) -> str:
        """Their offsets in words."""
        first, last = self.first_offset, self.last_offset
        return str(first) if first == last else f"{first}-{last}"

    def line(self, name: Callable[[str], str]) -> str:
        """Return what happened to them in a line; *name* names a member."""
        lived = self.lived
        if lived.outcome is not None:
            return f"{self.offsets}: {outcome_in_words(lived, name)}"
        ends = ends_in_words(lived, name)
        since = "" if lived.first_us is None else f" since {instant(lived.first_us)}"
        held = f"; held by {name(lived.member_id)}" if lived.is_held else ""
        return f"{self.offsets}: {counted(lived.all_deliveries, 'delivery')}{since}{f', {ends}' if ends else ''}{held}"

    def to_json(self, members: KnownMembers) -> dict[str, Any]:
        """Return them as JSON."""
        return {
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            **self.lived.to_json(members.client_ids),
        }


class HappenedLine(NamedTuple):
    """
    One thing that happened, and to how many records.

    Attributes:
        what: What it was, after the number of records.
        records: The records; deliveries if *is_of_records* is not true, and *what* says so. [records]
        how: How often deliveries have ended how, where that led to it; the most often first.
        by: How often it was of which client; the most often first.
        is_of_records: Whether records are counted.
    """

    what: str
    records: int
    how: tuple[tuple[str, int], ...] = ()
    by: tuple[tuple[str, int], ...] = ()
    is_of_records: bool = True

    @property
    def line(self) -> str:
        """It in a line."""
        parts = "; ".join(_counts(each) for each in (self.how, self.by) if each)
        number = counted(self.records, "record") if self.is_of_records else f"{self.records:,}"
        return f"{number} {self.what}{f': {parts}' if parts else ''}"


_MOST_NAMED: Final = 4
"""The most clients that are named in a line."""


def _counts(counts: tuple[tuple[str, int], ...]) -> str:
    named = [f"{name} {count:,}" for name, count in counts[:_MOST_NAMED]]
    more = len(counts) - _MOST_NAMED
    return ", ".join([*named, *([f"and {more} others"] if more > 0 else [])])


class _Worst:
    """The ranges that rank first, as many as are to be kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, int, int, Lived]] = []
        self._last: ListedRecords | None = None
        self._last_rank = 0

    def add(self, listed: ListedRecords, rank: int) -> None:
        """Add a range; one that goes on where the last one has ended is the same."""
        last = self._last
        if last is not None and last.lived == listed.lived and last.last_offset + 1 == listed.first_offset:
            self._last = last._replace(last_offset=listed.last_offset)
            return
        self._push()
        self._last, self._last_rank = listed, rank

    def _push(self) -> None:
        if self._last is not None:
            entry = (-self._last_rank, -self._last.first_offset, -self._last.last_offset, self._last.lived)
            (heapq.heappushpop if len(self._heap) >= self._most else heapq.heappush)(self._heap, entry)

    def with_others(self, others: Iterable[tuple[ListedRecords, int]]) -> list[ListedRecords]:
        """Return the ranges so far and those of *others* that rank first among all."""
        found = [(-rank, ListedRecords(-first, -last, lived)) for rank, first, last, lived in self._heap]
        found += [(self._last_rank, self._last)] if self._last is not None else []
        found += [(rank, listed) for listed, rank in others]
        found.sort(key=lambda each: (each[0], each[1].first_offset))
        return [listed for _, listed in found[: self._most]]


class WhatHappened:
    """
    What happened to the records of a share partition, by the rows of its replay.

    Args:
        listed: How many ranges to keep of each list.

    Attributes:
        delivered: The records that were delivered; ``deliveries`` of them in all.
        deliveries: How many deliveries there were. [deliveries]
        most_deliveries: The most deliveries of one record. [deliveries]
        redelivered: Those that were delivered more than once, with what has ended the deliveries before.
        outcomes: What has become of records, by ``OUTCOMES``.
        dead_letters: Those that were handed to the dead-letter queue.
        unchecked: How many deliveries fetches were answered with where the state is not known. [deliveries]
        unchecked_again: How many of these were not the first ones, by their delivery counts. [deliveries]
        unknown: Those that were delivered, and passed by the SPSO of another leader, whatever became of them. [records]

    Complexity:
        Linear in rows and in records that change; memory for what is in flight, the lists, and members.
    """

    def __init__(self, listed: int = LISTED) -> None:
        """Begin before the first row."""
        self.delivered = Tally()
        self.deliveries = 0
        self.most_deliveries = 0
        self.redelivered = Tally()
        self.outcomes = {cause: Tally() for cause in OUTCOMES}
        self.dead_letters = Tally()
        self.unchecked = self.unchecked_again = 0
        self.unknown = 0
        self._listed = listed
        self._in_flight = OffsetRuns[Lived]()
        self._passed = OffsetRuns[None]()
        self._pass: tuple[int, int] | None = None
        self._is_lost = False
        self._redelivered = _Worst(listed)
        self._archived = _Worst(listed)

    def apply(self, event: Event, rows: Iterable[OutputRow], start_offset: int | None, *, was_lost: bool) -> None:
        """
        Take the rows of an event.

        Args:
            event: The event.
            rows: Its rows, with the transitions and the dead letters.
            start_offset: The SPSO after it; None if the state is not known.
            was_lost: Whether the state was not known before it, though it had been read.
        """
        rows = list(rows)
        self._is_lost = start_offset is None
        if self._is_lost and event.kind == "fetch":
            for first, last, count in (event.response or {}).get("acquired", ()):
                self.unchecked += last - first + 1
                self.unchecked_again += last - first + 1 if count > 1 else 0
        if event.kind == "initialize" and start_offset is not None:
            self._take_over(rows, start_offset, End.UNKNOWN if was_lost else End.NEW_LEADER)
            return
        aborted = filtered_out(rows)
        for row in rows:
            if row.kind == "dead_letter":
                self._hand_over(row)
            elif row.kind == "transition" and row.values[4] not in _NO_CHANGE:
                ranges = without(row.values[0], row.values[1], aborted if row.values[4] == Cause.ACQUIRED else ())
                for first, last in ranges:
                    self._change(first, last, event, row)
        if start_offset is not None and self._pass is not None and start_offset > self._pass[1]:
            self._pass = self._pass[0], start_offset

    def _change(self, first: int, last: int, event: Event, row: OutputRow) -> None:
        for begin, end, before in self._known(first, last, row):
            after = lived_after(before, event, row)
            self._count(before, after, end - begin + 1)
            if row.values[4] == Cause.PASSED:
                self._finish(begin, end, after)
            else:
                self._in_flight.put(begin, end, after)

    def _known(self, first: int, last: int, row: OutputRow) -> Iterator[tuple[int, int, Lived]]:
        """Take what is known of a range out of what is in flight, and yield it; neighbors to whom the same happened."""
        runs = self._in_flight.take(first, last)
        if not runs and row.values[4] == Cause.PASSED:
            return
        if len(runs) == 1 and runs[0][:2] == (first, last):  # nearly always
            yield runs[0]
            return
        new = list(without(first, last, [(begin, end) for begin, end, _ in runs]))
        again = [run for begin, end in new for run in self._passed.take(begin, end)]
        fresh = [run for gap in new for run in without(*gap, [(begin, end) for begin, end, _ in again])]
        pieces = chain(
            runs,
            ((begin, end, _PASSED) for begin, end, _ in again),
            ((begin, end, _NEW) for begin, end in fresh),
        )
        yield from _joined(sorted(pieces, key=lambda run: run[0]))

    def _count(self, before: Lived, after: Lived, size: int) -> None:
        if after.deliveries > before.deliveries:
            self.deliveries += size
            self.most_deliveries = max(self.most_deliveries, after.all_deliveries)
            if before.deliveries == 0 and before is not _PASSED:
                self.delivered.add(size, after.member_id)
            if after.is_redelivered:
                self.redelivered.records += 0 if before.is_redelivered else size
                self.redelivered.note(size, *after.last_end())
        if after.outcome is not before.outcome:
            for lived, sign in ((before, -1), (after, 1)):
                if lived.outcome is not None:
                    self.outcomes[lived.outcome].add(sign * size, *_outcome_by(lived))

    def _hand_over(self, row: OutputRow) -> None:
        for begin, end, lived in self._in_flight.take(row.values[0], row.values[1]):
            self.dead_letters.add(end - begin + 1, lived.member_id or lived.last_end()[0])
            self._in_flight.put(begin, end, lived._replace(is_dead_letter=True))

    def _finish(self, first: int, last: int, lived: Lived) -> None:
        """Put records that are no longer in flight on the lists."""
        self.unknown += last - first + 1 if lived.deliveries and lived.outcome is None else 0
        for worst, listed, rank in self._ranked(first, last, lived):
            worst.add(listed, rank)

    def _ranked(self, first: int, last: int, lived: Lived) -> Iterator[tuple[_Worst, ListedRecords, int]]:
        listed = ListedRecords(first, last, lived)
        if lived.is_redelivered:
            yield self._redelivered, listed, -lived.all_deliveries
        if lived.outcome not in {None, Cause.ACCEPTED}:
            yield self._archived, listed, _RANKS[lived.outcome]

    # ---- new leaders

    def _take_over(self, rows: list[OutputRow], start_offset: int, how: End) -> None:
        """Note what a leader has read, and what is lost with the one before."""
        read = OffsetRuns[Lived]()
        for row in rows:
            if row.kind == "transition" and row.values[4] == Cause.READ:
                for begin, end, before in self._known(row.values[0], row.values[1], row):
                    after = before.read(row, how)
                    self._count(before, after, end - begin + 1)
                    read.put(begin, end, after)
        self._begin_pass(start_offset)
        for first, last, before in self._in_flight.take_all():
            for begin, end in without(first, last, [(start_offset, last)]):
                self._finish(begin, end, before)
            for begin, end in without(first, last, [(first, start_offset - 1)]):
                after = before.lost(how)
                self._count(before, after, end - begin + 1)
                read.put(begin, end, after)
        self._in_flight = read

    def _begin_pass(self, start_offset: int) -> None:
        """Remember what an SPSO has passed that another leader does not go on from."""
        begin, end = (start_offset, start_offset) if self._pass is None else self._pass
        if begin <= start_offset == end:
            self._pass = begin, end
            return
        if begin < end:
            self._passed.take(begin, end - 1)
            self._passed.put(begin, end - 1, None)
        self._pass = start_offset, start_offset

    # ---- the end

    def happened_lines(self, members: KnownMembers) -> list[HappenedLine]:
        """Return what happened to how many records, without what happened to none; *members* are named by client."""
        most = f", up to {self.most_deliveries} times" if self.redelivered.records else ""
        held = [each for each in self.in_flight() if each.lived.is_held]
        holders = Tally()
        for each in held:
            holders.add(each.records, each.lived.member_id)
        found = [
            HappenedLine(f"delivered, {self.deliveries:,} deliveries in all", self.delivered.records),
            _line(f"delivered more than once{most}", self.redelivered, members),
            *(_line(words, self.outcomes[cause], members) for cause, words in OUTCOMES.items()),
            _line("handed to the dead-letter queue", self.dead_letters, members),
            _line("held, and not known since" if self._is_lost else "still held", holders, members),
            HappenedLine("passed by the SPSO of another leader, what became of them is not known", self.unknown),
        ]
        found = [each for each in found if each.records]
        if self.unchecked:
            again = f", {self.unchecked_again:,} of them not for the first time" if self.unchecked_again else ""
            found.append(
                HappenedLine(f"deliveries in answers that were not checked{again}", self.unchecked, is_of_records=False)
            )
        return found

    def to_json(self, members: KnownMembers) -> dict[str, Any]:
        """Return the counts and the lists as JSON."""
        tallies = {"delivered": self.delivered, "redelivered": self.redelivered, "dead_letters": self.dead_letters}
        tallies |= {cause.value: tally for cause, tally in self.outcomes.items()}
        return {
            "deliveries": self.deliveries,
            "most_deliveries": self.most_deliveries,
            "unknown": self.unknown,
            "unchecked": self.unchecked,
            "unchecked_again": self.unchecked_again,
            **{name: tally.to_json(members) for name, tally in tallies.items()},
            **{f"{name}_records": [each.to_json(members) for each in listed] for name, listed in self.lists().items()},
        }

    def lists(self) -> dict[str, list[ListedRecords]]:
        """Return the lists by the names of ``LISTS``, each with as many ranges as are kept."""
        stuck = sorted(self._stuck(), key=lambda each: (each.lived.first_us or 0, each.first_offset))
        return {
            "redelivered": self._redelivered.with_others(self._ranked_now(self._redelivered)),
            "archived": self._archived.with_others(self._ranked_now(self._archived)),
            "stuck": stuck[: self._listed],
        }

    def listed_in_all(self, name: str) -> int:
        """Return how many records a list would have if it had all. [records]"""
        match name:
            case "redelivered":
                return self.redelivered.records
            case "archived":
                return sum(tally.records for cause, tally in self.outcomes.items() if cause is not Cause.ACCEPTED)
            case _:
                return sum(each.records for each in self._stuck())

    def _ranked_now(self, worst: _Worst) -> Iterator[tuple[ListedRecords, int]]:
        for run in self.in_flight():
            yield from ((listed, rank) for its, listed, rank in self._ranked(*run) if its is worst)

    def in_flight(self) -> list[ListedRecords]:
        """Return what is in flight, in order."""
        runs = self._in_flight.take_all()
        for first, last, lived in runs:
            self._in_flight.put(first, last, lived)
        return [ListedRecords(*run) for run in _joined(runs)]

    def _stuck(self) -> list[ListedRecords]:
        return [each for each in self.in_flight() if each.lived.all_deliveries and each.lived.outcome is None]


def _outcome_by(lived: Lived) -> tuple[str, End | None]:
    """Return the member that an outcome is of, empty for none, and the end of the last delivery if that led to it."""
    if lived.outcome is Cause.ARCHIVED_AT_LIMIT:
        return lived.last_end()
    return lived.member_id if lived.outcome in WRITTEN_OUTCOMES else "", None


def _line(what: str, tally: Tally, members: KnownMembers) -> HappenedLine:
    how = tuple((end.value, count) for end, count in tally.ends.most_common() if count)
    return HappenedLine(what, tally.records, how, tuple(tally.by_client(members).items()))


_NEW: Final = Lived()
_PASSED: Final = Lived(1, ends=(("", End.MOVED_BACK),))
"""What is known of a record that the SPSO has passed before it was moved back."""

_NO_CHANGE: Final = frozenset({Cause.THROTTLED, Cause.CACHED, Cause.CONFIRMED, Cause.RENEWED, Cause.DEAD_LETTERED})
"""The causes by which neither a delivery ends nor an outcome comes about."""


def _joined(runs: Iterable[tuple[int, int, Any]]) -> Iterator[tuple[int, int, Any]]:
    """
    Yield *runs*, which ascend, with neighbors of the same value as one.

    >>> list(_joined([(0, 1, "a"), (2, 3, "a"), (5, 6, "a"), (7, 7, "b")]))
    [(0, 3, 'a'), (5, 6, 'a'), (7, 7, 'b')]
    """
    open_: tuple[int, int, Any] | None = None
    for first, last, value in runs:
        if open_ is not None and open_[1] + 1 == first and open_[2] == value:
            open_ = open_[0], last, value
            continue
        if open_ is not None:
            yield open_
        open_ = first, last, value
    if open_ is not None:
        yield open_
