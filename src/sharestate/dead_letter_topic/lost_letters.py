"""
What the state topic, or a history, says of dead letters, and what the queue has: lost letters, and letters too many.

A leader stores records as ARCHIVING, hands them to the queue, and stores them as ARCHIVED when it has answered, be it
with success or not. So each record that was ARCHIVING has a letter, or has lost it; and each letter is of a record that
was ARCHIVING. Where either may be so without a fault, nothing is said but why that is not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from attrs import Factory, define, field, frozen

from sharestate.dead_letter_topic.archived import ArchivedRecords, StoredRecords
from sharestate.dead_letter_topic.contents import QueueContents, QueuePartition, ShareKey
from sharestate.dead_letter_topic.patterns import Patterns, RecordRange, ranges_of
from sharestate.explain.totals import without
from sharestate.values.records import SharePartitionKey

CLOCKS_MS: Final = 5000
"""By how much the clocks of brokers may differ without a word of it; NTP keeps them closer by far. [ms]"""

_LISTED: Final = 1000
"""How many ranges of records are listed. [ranges]"""

LOST_BECAUSE: Final = (
    "the group's errors.deadletterqueue.topic.name was another one, or none, when they were handed over",
    "the brokers refused: no such topic, or not one for dead letters, or without the prefix (rule 21.5)",
    "a letter was larger than the topic takes (max.message.bytes), even without the record",
    "the brokers failed five times to write them, or to make the topic",
    "somebody has deleted them from the queue",
)
"""Why letters may be lost: the queue is best effort, and which it was only the source leader's log says, at ERROR."""

UNARCHIVED_BECAUSE: Final = (
    "the write of ARCHIVING failed after the lock had expired, and the letters were written all the same (rule 21.2)",
    "a leader that another one had replaced went on (rule 21.3)",
    "the state of the group was deleted, or its offsets were reset, in between",
    "something that writes like a broker has written them",
)
"""Why letters may be of records that were never ARCHIVING in the state topic."""


@frozen
class QueueReading:
    """How the queue was read, for what can be concluded from what it does not have."""

    is_after_state: bool = False
    """Whether its end was looked up after that of the state topic, so that nothing handed over before is missing."""

    ends_before_state: Mapping[int, int] | None = None
    """Where its partitions ended before the state topic was read; None if that is not known."""

    partition_count: int | None = None
    """How many partitions it has; None if that is not known. [partitions]"""


class HandedRecords(NamedTuple):
    """
    Records that were handed to the queue.

    Attributes:
        records: The records.
        at_ms: When; None if that is not known. [ms since 1970]
        answered_ms: When the queue had answered; None if that is not known. [ms since 1970]
        is_under_way: Whether the queue may not have answered yet.
    """

    records: RecordRange
    at_ms: int | None
    answered_ms: int | None
    is_under_way: bool


@define
class LetterCheck:
    """What came out of comparing the letters with one other source."""

    source: str
    """What they were compared with."""

    handed: int = 0
    """The records that were handed to a queue by groups that are looked at. [records]"""

    found: int = 0
    """Those of them that have a letter. [records]"""

    under_way: int = 0
    """Those that have none, and are still ARCHIVING. [records]"""

    lost: int = 0
    """Those that have none. [records]"""

    unarchived: int = 0
    """Letters of records that were not archived by what the source says. [letters]"""

    later: int = 0
    """Letters that were written after the source was read. [letters]"""

    direct: int = 0
    """Records that were archived at once, and need no letter. [records]"""

    lost_ranges: list[HandedRecords] = Factory(list)
    """Those that are lost, the first ones."""

    under_way_ranges: list[HandedRecords] = Factory(list)
    """Those that are under way, the first ones."""

    unarchived_ranges: list[RecordRange] = Factory(list)
    """The letters of records that were not archived, the first ones."""

    not_checked: Counter[str] = Factory(Counter)
    """How many records, or letters, cannot be judged, by the reason."""

    other_groups: Counter[str] = Factory(Counter)
    """Records that groups handed to another queue; they are not looked at. [records]"""

    unknown_groups: Counter[str] = Factory(Counter)
    """Records that groups without a letter here handed to a queue, which may be this one. [records]"""

    def note_lost(self, handed: HandedRecords) -> None:
        """Add lost letters."""
        self.lost += handed.records.last_offset - handed.records.first_offset + 1
        if len(self.lost_ranges) < _LISTED:
            self.lost_ranges.append(handed)

    def note_under_way(self, handed: HandedRecords) -> None:
        """Add records whose letters are under way."""
        self.under_way += handed.records.last_offset - handed.records.first_offset + 1
        if len(self.under_way_ranges) < _LISTED:
            self.under_way_ranges.append(handed)

    def note_unknown_group(self, group_id: str, records: int, reason: str) -> None:
        """Add records of a group of which it is not known whether this is its queue."""
        self.unknown_groups[group_id] += records
        self.not_checked[f"records of groups without a letter here: {reason}"] += records

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "source": self.source,
            "handed_over": self.handed,
            "found": self.found,
            "under_way": self.under_way,
            "lost": self.lost,
            "without_archived_record": self.unarchived,
            "later": self.later,
            "archived_at_once": self.direct,
            "lost_records": [_handed_json(each) for each in self.lost_ranges],
            "under_way_records": [_handed_json(each) for each in self.under_way_ranges],
            "letters_without_archived_record": [each.to_json() for each in self.unarchived_ranges],
            "not_checked": dict(self.not_checked.most_common()),
            "other_groups": dict(self.other_groups.most_common()),
            "unknown_groups": dict(self.unknown_groups.most_common()),
        }


class LetterIndex:
    """
    Which records have letters, and what of the queue can be relied on.

    Args:
        contents: The letters.
        patterns: What they are of, with their order.
        reading: How the queue was read.
    """

    def __init__(self, contents: QueueContents, patterns: Patterns, reading: QueueReading) -> None:
        """Look through the letters once."""
        self.contents = contents
        self.reading = reading
        self.numbers = dict(contents.slices(patterns.order))
        self.ranges = {
            key: list(ranges_of(dict.fromkeys(contents.offsets[number] for number in numbers)))
            for key, numbers in self.numbers.items()
        }
        self._queues: defaultdict[int, set[int]] = defaultdict(set)
        for key, numbers in self.numbers.items():
            self._queues[key.partition].update(contents.queue_partitions[number] for number in numbers)

    @property
    def group_ids(self) -> set[str]:
        """The groups that have letters."""
        return {key.group_id for key in self.numbers}

    def of(self, names: Iterable[ShareKey]) -> list[tuple[int, int]]:
        """Return the ranges of records that have letters, under any of the *names* of a share partition."""
        return sorted(each for name in names for each in self.ranges.get(name, ()))

    def doubt(self, partition: int, at_ms: int | None, answered_ms: int | None) -> str | None:
        """
        Return why it is not known whether records were lost that have no letter; None if they were.

        Args:
            partition: The partition of the source topic.
            at_ms: When they were handed over. [ms since 1970]
            answered_ms: When the queue had answered. [ms since 1970]
        """
        if self.contents.unread:
            return "there are more letters than are looked at"
        count = self.reading.partition_count
        numbers = self._queues[partition] | (set() if count is None else {partition % count})
        if not numbers:
            return "which partition of the queue they belong to is not known: none here has letters of that partition"
        doubts = (self._doubt_of(self.contents.partitions.get(each), at_ms, answered_ms) for each in sorted(numbers))
        return next(filter(None, doubts), None)

    def _doubt_of(self, queue: QueuePartition | None, at_ms: int | None, answered_ms: int | None) -> str | None:
        if queue is None:
            return "the partition of the queue that they belong to was not read"
        if queue.missing:
            return "offsets are missing in the queue: it was compacted, or its files are not all there"
        if queue.has_lost_the_beginning:
            first_ms = queue.first_ms
            if at_ms is None or first_ms is None or at_ms <= first_ms + CLOCKS_MS:
                return "the beginning of the queue was deleted, and they may have been there"
        if not self.reading.is_after_state:
            last_ms = queue.last_ms
            if answered_ms is None or last_ms is None or answered_ms + CLOCKS_MS >= last_ms:
                return "the files of the queue may be older than that (--queue-copied-last)"
        return None


def find_missing(
    index: LetterIndex, handed: HandedRecords, letters: Sequence[tuple[int, int]], check: LetterCheck
) -> None:
    """Add to *check* what is so of records that were handed over; *letters* are the ranges that have some."""
    key, first, last = handed.records
    check.handed += last - first + 1
    missing = list(without(first, last, letters))
    check.found += last - first + 1 - sum(end - begin + 1 for begin, end in missing)
    for begin, end in missing:
        part = handed._replace(records=RecordRange(key, begin, end))
        if handed.is_under_way:
            check.note_under_way(part)
            continue
        doubt = index.doubt(key.partition, handed.at_ms, handed.answered_ms)
        if doubt is None:
            check.note_lost(part)
        else:
            check.not_checked[f"records without a letter: {doubt}"] += end - begin + 1


@frozen(kw_only=True)
class QueueGroups:
    """Which groups have a queue, besides those that have letters in it, as far as that is known."""

    group_ids: Collection[str] = ()
    """Groups that have it."""

    other_group_ids: Collection[str] = ()
    """Groups that have another one."""

    unknown_because: Mapping[str, str] = field(factory=dict)
    """Why neither is known of a group; where nothing is said, nobody was asked."""

    def reason(self, group_id: str) -> str:
        """Return why it is not known whether a group has the queue."""
        return self.unknown_because.get(group_id, "whether this is their queue is not known (--group, --other-group)")


def compare_with_state(
    index: LetterIndex,
    archived: ArchivedRecords,
    names: Mapping[str, str],
    groups: QueueGroups,
) -> LetterCheck:
    """
    Return what the state topic has archived and the queue does not have, and the other way round.

    Args:
        index: The letters.
        archived: What the state topic has said.
        names: The names of topics by their ids, as far as they are known.
        groups: Which groups have this queue, besides those that have letters in it.

    Complexity:
        O(n log n) in the letters and in the ranges that were archived.
    """
    check = LetterCheck("state topic")
    wanted = index.group_ids | set(groups.group_ids)
    known: defaultdict[ShareKey, list[StoredRecords]] = defaultdict(list)
    for key, stored in archived.stored.items():
        keys = _names_of(key, names)
        for name in keys:
            known[name].append(stored)
        runs = list(stored.handed_over())
        if key.group_id not in wanted:
            records = sum(last - first + 1 for first, last, _ in runs)
            if records and key.group_id in groups.other_group_ids:
                check.other_groups[key.group_id] += records
            elif records:
                check.note_unknown_group(key.group_id, records, groups.reason(key.group_id))
            continue
        check.direct += stored.direct
        if stored.unclear:
            reason = "archived records: the oldest record that is left of their share partition has them as ARCHIVED"
            check.not_checked[reason] += stored.unclear
        letters = index.of(keys)
        nameless = len(keys) == 1 and not letters and bool(runs)
        for first, last, when in runs:
            if nameless:
                check.handed += last - first + 1
                check.not_checked["records of a topic whose name is not known (--topic-id)"] += last - first + 1
                continue
            handed = HandedRecords(RecordRange(keys[0], first, last), when.at_ms, when.answered_ms, when.is_under_way)
            find_missing(index, handed, letters, check)
    for name, numbers in index.numbers.items():
        _find_unarchived(index, name, numbers, known.get(name, []), archived, check)
    return check


def _names_of(key: SharePartitionKey, names: Mapping[str, str]) -> list[ShareKey]:
    """Return how letters may name a share partition: by the name of its topic, or by its id."""
    known = [names[key.topic_id]] if key.topic_id in names else []
    return [ShareKey(key.group_id, topic, key.partition) for topic in (*known, key.topic_id)]


def _find_unarchived(  # noqa: PLR0913 - what is compared, and with what
    index: LetterIndex,
    name: ShareKey,
    numbers: Sequence[int],
    stored: Sequence[StoredRecords],
    archived: ArchivedRecords,
    check: LetterCheck,
) -> None:
    if not stored:
        why = "the state topic has nothing of their share partition, or the id of the topic is not known (--topic-id)"
        check.not_checked[f"letters: {why}"] += len(numbers)
        return
    contents = index.contents
    found = []
    for number in numbers:
        offset = contents.offsets[number]
        if any(each.has_archived(offset) for each in stored):
            continue
        doubt = _doubt_of_letter(index, number, stored, archived)
        if doubt is None:
            found.append(offset)
        elif doubt == _LATER:
            check.later += 1
        else:
            check.not_checked[f"letters: {doubt}"] += 1
    for first, last in ranges_of(dict.fromkeys(found)):
        check.unarchived += last - first + 1
        if len(check.unarchived_ranges) < _LISTED:
            check.unarchived_ranges.append(RecordRange(name, first, last))


_LATER: Final = "later"


def _doubt_of_letter(
    index: LetterIndex, number: int, stored: Sequence[StoredRecords], archived: ArchivedRecords
) -> str | None:
    """Return why it is not known whether a letter is of an archived record; None if it is not of one."""
    contents = index.contents
    at_ms = contents.time_ms(number)
    ends = index.reading.ends_before_state
    if ends is not None:
        if contents.queue_offsets[number] >= ends.get(contents.queue_partitions[number], 0):
            return _LATER
    else:
        last_ms = max((archived.last_ms.get(each.state_partition) or -1 for each in stored), default=-1)
        if at_ms is None or at_ms + CLOCKS_MS >= last_ms:
            return "the files of the state topic may be older than they are"
    if any(at_ms is None or each.first_ms is None or at_ms <= each.first_ms + CLOCKS_MS for each in stored):
        return "they are older than what the state topic still has of their share partition"
    return None


def _handed_json(handed: HandedRecords) -> dict[str, Any]:
    return {**handed.records.to_json(), "handed_over_ms": handed.at_ms, "answered_ms": handed.answered_ms}


class FinishedRecords:
    """
    How many of the records around one the state topic says to be finished: passed by the SPSO, or accepted behind it.

    Args:
        archived: What the state topic has said.
        names: The names of topics by their ids.
    """

    def __init__(self, archived: ArchivedRecords, names: Mapping[str, str]) -> None:
        """Look up the state of each share partition once."""
        starts, accepted = archived.start_offsets(), archived.accepted()
        self._known: dict[ShareKey, list[tuple[int, int]]] = {}
        for key, stored in archived.stored.items():
            passed = [] if stored.first_start is None else [(stored.first_start, starts.get(key, 0) - 1)]
            ranges = [each for each in (*passed, *accepted.get(key, ())) if each[0] <= each[1]]
            for name in _names_of(key, names):
                self._known[name] = ranges

    def __call__(self, key: ShareKey, offset: int, around: int) -> int:
        """Return how many records within *around* offsets of the one at *offset* are finished."""
        near = (range(max(0, offset - around), offset), range(offset + 1, offset + around + 1))
        ranges = self._known.get(key, ())
        return sum(
            max(0, min(last, span.stop - 1) - max(first, span.start) + 1) for first, last in ranges for span in near
        )
