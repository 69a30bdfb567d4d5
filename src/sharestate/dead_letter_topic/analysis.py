"""What a dead-letter topic says, put together: what it has, what it is of, and whether it has all that it should."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from sharestate.dead_letter_topic.archived import ArchivedRecords
from sharestate.dead_letter_topic.contents import QueueContents, ShareKey
from sharestate.dead_letter_topic.letters import LetterKind, LoggedLetter, read_letter
from sharestate.dead_letter_topic.lives import LetterLife, LetterLives
from sharestate.dead_letter_topic.lost_letters import (
    FinishedRecords,
    LetterCheck,
    LetterIndex,
    QueueGroups,
    QueueReading,
    compare_with_state,
)
from sharestate.dead_letter_topic.pattern_rules import RULES
from sharestate.dead_letter_topic.patterns import (
    INTERVAL_MS,
    PatternFinding,
    Patterns,
    RecordRange,
    find_patterns,
    nothing_known,
    ranges_of,
)
from sharestate.dead_letter_topic.sources import LetterSource

ANALYSIS_VERSION: Final = 1
"""The version of the JSON form."""

_WIDTHS_MS: Final = (60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000)
_MOST_PARTS: Final = 1440
"""A day of minutes; what takes longer is counted by longer parts. [parts]"""

_LISTED: Final = 1000
"""The most share partitions, and ranges of duplicates, that are listed. [rows]"""

_SEVERAL: Final = re.compile(r"(?<=record|letter)s\b")
"""What makes a plural of a reason's first noun."""

_SHOWN_LIVES: Final = 5
"""How many lives a finding shows, the first ones. [ranges]"""


class CountedPartition(NamedTuple):
    """
    The letters of a share partition.

    Attributes:
        key: The share partition.
        letters: How many there are. [letters]
        duplicates: How many of them are of a record that has another one. [letters]
        first_offset: The least offset of their records.
        last_offset: The greatest offset of their records.
    """

    key: ShareKey
    letters: int
    duplicates: int
    first_offset: int
    last_offset: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**self.key._asdict(), **{name: value for name, value in self._asdict().items() if name != "key"}}


class LettersInTime(NamedTuple):
    """
    Letters of a group in a part of time.

    Attributes:
        begin_ms: When the part begins. [ms since 1970]
        group_id: The group.
        cause: Their cause; None if Kafka does not write that text.
        letters: How many they are. [letters]
    """

    begin_ms: int
    group_id: str
    cause: str | None
    letters: int


@frozen(kw_only=True)
class LetterAnalysis:
    """
    What a dead-letter topic says.

    Complexity:
        Each method is O(n log n) at the most, n the letters.
    """

    topic: str
    """The dead-letter topic."""

    contents: QueueContents
    """What it has."""

    patterns: Patterns
    """What the letters are of."""

    checks: tuple[LetterCheck, ...] = ()
    """What they were compared with, and what came out."""

    not_checked: tuple[str, ...] = ()
    """What could not be compared, and why."""

    lives: LetterLives | None = None
    """The lives of the records; None without a history."""

    @property
    def records(self) -> int:
        """How many records have letters, once for each group. [records]"""
        return len(self.contents) - self.duplicates

    @property
    def duplicates(self) -> int:
        """How many letters are of a record that has another one. [letters]"""
        return self.patterns.duplicates.count(1)

    @property
    def lost(self) -> int:
        """How many letters are lost, by the check that has found most. [letters]"""
        return max((check.lost for check in self.checks), default=0)

    @property
    def unarchived(self) -> int:
        """How many letters are of records that were not archived. [letters]"""
        return max((check.unarchived for check in self.checks), default=0)

    @property
    def doubts(self) -> list[str]:
        """What is not known of the checks, each with how many it is about."""
        found = [
            f"{check.source}: {count:,} {_SEVERAL.sub('', reason, count=1) if count == 1 else reason}"
            for check in self.checks
            for reason, count in check.not_checked.most_common()
        ]
        unread = (
            [f"{self.contents.unread:,} letters were counted only: there are too many"] if self.contents.unread else []
        )
        return [*self.not_checked, *found, *unread]

    @property
    def exit_code(self) -> int:
        """1 if letters are lost, or are of records that were not archived; else 2 if something could not be checked."""
        if self.lost or self.unarchived:
            return 1
        return 2 if self.doubts else 0

    # ---- counts

    def share_partitions(self) -> list[CountedPartition]:
        """Return the share partitions that have letters, those with the most first."""
        offsets, duplicates = self.contents.offsets, self.patterns.duplicates
        counted = [
            CountedPartition(
                key, len(numbers), sum(duplicates[each] for each in numbers), offsets[numbers[0]], offsets[numbers[-1]]
            )
            for key, numbers in self.contents.slices(self.patterns.order)
        ]
        return sorted(counted, key=lambda each: (-each.letters, each.key))

    def over_time(self) -> tuple[int, list[LettersInTime]]:
        """Return the letters by time, and how long its parts are: a minute, or what makes them 1,440 at most. [ms]"""
        times = [at_ms for at_ms in self.contents.times_ms if at_ms >= 0]
        if not times:
            return _WIDTHS_MS[0], []
        took = max(times) - min(times)
        width = next((each for each in _WIDTHS_MS if took // each < _MOST_PARTS), _WIDTHS_MS[-1] * (1 + took // 10**11))
        counts = Counter(
            (at_ms - at_ms % width, place, cause)
            for at_ms, place, cause in zip(
                self.contents.times_ms, self.contents.places, self.contents.causes, strict=True
            )
            if at_ms >= 0
        )
        merged: Counter[tuple[int, str, int]] = Counter()
        for (begin_ms, place, cause), letters in counts.items():
            merged[begin_ms, self.contents.share_partitions[place].group_id, cause] += letters
        parts = [
            LettersInTime(begin_ms, group_id, self.contents.cause_named(cause), letters)
            for (begin_ms, group_id, cause), letters in sorted(merged.items())
        ]
        return width, parts

    def by_client(self) -> Counter[str] | None:
        """Return the records by the client that had them last; None without a history. [records]"""
        if self.lives is None:
            return None
        ranges = (
            RecordRange(key, first, last)
            for key, numbers in self.contents.slices(self.patterns.order)
            for first, last in ranges_of(dict.fromkeys(self.contents.offsets[each] for each in numbers))
        )
        return self.lives.by_client(ranges)

    def repeated(self) -> Iterator[tuple[RecordRange, int]]:
        """Yield the records that have more than one letter, and how many letters each has."""
        offsets = self.contents.offsets
        for key, numbers in self.contents.slices(self.patterns.order):
            counts = [(offset, len(list(same))) for offset, same in groupby(numbers, offsets.__getitem__)]
            for letters, of_same in groupby((each for each in counts if each[1] > 1), lambda each: each[1]):
                for first, last in ranges_of(offset for offset, _ in of_same):
                    yield RecordRange(key, first, last), letters

    def lives_of(self, finding: PatternFinding) -> list[LetterLife]:
        """Return the lives of the first records of a finding, as far as the history has them."""
        if self.lives is None:
            return []
        found: list[LetterLife] = []
        for each in finding.ranges:
            found += self.lives.of(each)
            if len(found) >= _SHOWN_LIVES:
                break
        return found[:_SHOWN_LIVES]

    def members_of(self, finding: PatternFinding) -> Counter[str]:
        """Return the members that had the listed records of a finding last; empty without a history. [records]"""
        return Counter() if self.lives is None else self.lives.by_member(finding.ranges)

    # ---- JSON

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, in the names of its parts."""
        contents, patterns = self.contents, self.patterns
        width_ms, parts = self.over_time()
        clients = self.by_client()
        return {
            "dead_letters": ANALYSIS_VERSION,
            "topic": self.topic,
            "kinds": {kind.value: contents.kinds[kind] for kind in LetterKind},
            "no_letters": dict(contents.reasons.most_common()),
            "size": contents.size,
            "copied": contents.copied,
            "unread": contents.unread,
            "partitions": [contents.partitions[number].to_json() for number in sorted(contents.partitions)],
            "records": self.records,
            "duplicates": self.duplicates,
            "by": {
                **{of: _counts(contents.by(of)) for of in ("cause", "group", "topic", "delivery count")},
                "message": _counts(contents.texts),
                "client": None if clients is None else _counts(clients),
            },
            "share_partitions": [each.to_json() for each in self.share_partitions()[:_LISTED]],
            "over_time": {"width_ms": width_ms, "parts": [each._asdict() for each in parts]},
            "interval_ms": patterns.interval_ms,
            "patterns": {pattern.value: count for pattern, count in patterns.by_pattern().items()},
            "rules": {
                rule.value: {
                    "letters": letters,
                    "pattern": RULES[rule].pattern.value,
                    "asks": RULES[rule].sentence,
                    "reason": RULES[rule].reason,
                    "unlisted": patterns.unlisted.get(rule, 0),
                }
                for rule, letters in patterns.letters().items()
            },
            "findings": [self._finding_json(each) for each in patterns.findings],
            "duplicate_records": [
                {**each.to_json(), "letters": letters}
                for (each, letters), _ in zip(self.repeated(), range(_LISTED), strict=False)
            ],
            "checks": [check.to_json() for check in self.checks],
            "lost": self.lost,
            "without_archived_record": self.unarchived,
            "not_checked": self.doubts,
        }

    def _finding_json(self, finding: PatternFinding) -> dict[str, Any]:
        lives = {"lives": [each.to_json() for each in self.lives_of(finding)]} if self.lives is not None else {}
        members = {"members": dict(self.members_of(finding))} if self.lives is not None else {}
        return {
            "rule": finding.rule.value,
            "pattern": finding.pattern.value,
            "groups": list(finding.group_ids),
            "letters": finding.letters,
            "first_ms": finding.first_ms,
            "last_ms": finding.last_ms,
            "share_partitions": finding.share_partitions,
            "causes": dict(finding.causes),
            **finding.facts,
            **({} if finding.key is None else {"key": finding.key.decode(errors="replace")}),
            "records": [each.to_json() for each in finding.ranges],
            **members,
            **lives,
        }


def _counts(counts: Counter[Any]) -> dict[str, int]:
    """Return counts as JSON, the greatest first; what has no name is *none*."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    return {"none" if name is None else str(name): count for name, count in ordered}


# ---- making one


@frozen(kw_only=True)
class StateGiven:
    """The state topic that letters are compared with."""

    archived: ArchivedRecords
    """What it has said."""

    names: Mapping[str, str] = field(factory=dict)
    """The names of topics by their ids, as far as they are known."""


def analyze_letters(  # noqa: PLR0913 - what can be given
    topic: str,
    contents: QueueContents,
    *,
    interval_ms: int = INTERVAL_MS,
    groups: QueueGroups = QueueGroups(),  # noqa: B008 - frozen
    state: StateGiven | None = None,
    reading: QueueReading | None = None,
    lives: Callable[[QueueContents], LetterLives] | None = None,
    not_checked: Sequence[str] = (),
) -> LetterAnalysis:
    """
    Return what the letters of a dead-letter topic say.

    Args:
        topic: The dead-letter topic.
        contents: What was read of it.
        interval_ms: How far letters may be from each other in time to be of one interval. [ms]
        groups: Which groups have the queue, besides those that have letters in it.
        state: The state topic; None if it is not given.
        reading: How the queue was read; by default nothing is known of that.
        lives: Returns the lives of the records; None without a history.
        not_checked: What could not be compared, and why.

    Complexity:
        O(n log n) in the letters, and what the others say of themselves.
    """
    finished = nothing_known if state is None else FinishedRecords(state.archived, state.names)
    patterns = find_patterns(contents, interval_ms=interval_ms, finished=finished)
    index = LetterIndex(contents, patterns, QueueReading() if reading is None else reading)
    checks = [] if state is None else [compare_with_state(index, state.archived, state.names, groups)]
    found = None if lives is None else lives(contents)
    if found is not None:
        checks.append(found.compare(index, groups))
    return LetterAnalysis(
        topic=topic,
        contents=contents,
        patterns=patterns,
        checks=tuple(checks),
        not_checked=tuple(not_checked),
        lives=found,
    )


def read_contents(
    source: LetterSource, watch: Callable[[LetterSource], Iterable[LoggedLetter]] = iter
) -> QueueContents:
    """
    Return what a dead-letter topic has.

    Args:
        source: Its records.
        watch: Yields the records of the source, such as a function that shows how far it is.

    Raises:
        UnreadableFileError: The source cannot be read.
        ExternalError: The cluster refuses, or cannot be reached.
    """
    contents = QueueContents()
    contents.read(map(read_letter, watch(source)))
    contents.finish(source.spans)
    return contents
