"""The lives of records that have letters, where a history has them: how their deliveries ended, and whose they were."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from sharestate.dead_letter_topic.contents import ShareKey
from sharestate.dead_letter_topic.lost_letters import (
    HandedRecords,
    LetterCheck,
    LetterIndex,
    QueueGroups,
    find_missing,
)
from sharestate.dead_letter_topic.patterns import RecordRange
from sharestate.explain import KnownMembers, ListedRecords, Overview, PartitionLife, Survey
from sharestate.history.replay_budget import ReplayBudget
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile

_LISTED: Final = 100_000
"""The most ranges of records that were given up, of each share partition: 60 MB of memory for each. [ranges]"""

_HANDED: Final = frozenset({Cause.REJECTED, Cause.ARCHIVED_AT_LIMIT})


class LetterLife(NamedTuple):
    """
    What has happened to records that have letters, and to each of them the same.

    Attributes:
        key: The share partition, as letters name it.
        listed: The records, and what has happened to each.
        members: Who the members are.
    """

    key: ShareKey
    listed: ListedRecords
    members: KnownMembers

    @property
    def client(self) -> str:
        """The client whose member rejected them, or had them last."""
        return self.members.client(self._member_id)

    @property
    def member(self) -> str:
        """That member, as sentences name it."""
        return self.members.name(self._member_id)

    @property
    def _member_id(self) -> str:
        return self.listed.lived.member_id or self.listed.lived.last_end()[0]

    @property
    def sentence(self) -> str:
        """It in words, as ``explain`` has them."""
        return self.listed.line(self.members.name)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**self.key._asdict(), **self.listed.to_json(self.members), "text": self.sentence}


class LetterLives:
    """
    The lives of the records of a history that were given up, by share partition.

    Args:
        survey: The history.
        wanted: The share partitions that have letters, and the groups that may have lost some. Of the others is
            counted what they have handed to a queue.
        profile: The rules to follow where the history names none.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryError: It is no history, or not in causal order.

    Complexity:
        One replay of the history; memory for up to 100,000 ranges of each share partition.
    """

    def __init__(self, survey: Survey, wanted: Iterable[ShareKey], profile: Profile = LATEST) -> None:
        """Replay the history."""
        groups = {key.group_id for key in wanted}

        def begin(key: tuple[str, str, int], *, lacks: frozenset[str], budget: ReplayBudget) -> PartitionLife:
            listed = _LISTED if key[0] in groups else 0
            return PartitionLife(key, profile=profile, lacks=lacks, listed=listed, budget=budget)

        lives = survey.lives(survey.keys, begin)
        self._handed_by_others: Counter[str] = Counter()
        for key in [key for key in lives if key[0] not in groups]:
            self._handed_by_others[key[0]] += lives.pop(key).happened.dead_letters.records
        self._lives: dict[ShareKey, tuple[list[ListedRecords], KnownMembers]] = {}
        self.unlisted = 0
        """Records that were given up, and are not among those that are kept. [records]"""
        for (group_id, topic_id, number), life in lives.items():
            overview = life.overview()
            listed = sorted(overview.happened.lists()["archived"], key=lambda each: each.first_offset)
            self.unlisted += _left(overview, listed)
            for topic in dict.fromkeys((survey.header.topic(topic_id), topic_id)):
                self._lives[ShareKey(group_id, topic, number)] = listed, overview.members
        self._named = {
            ShareKey(group_id, survey.header.topic(topic_id), number) for group_id, topic_id, number in lives
        }

    @property
    def share_partitions(self) -> int:
        """How many share partitions of groups with letters the history has. [share partitions]"""
        return len(self._named)

    def members(self, group_ids: Iterable[str]) -> set[str]:
        """Return the members of groups, as sentences name them."""
        groups = set(group_ids)
        known = (members for key, (_, members) in self._lives.items() if key.group_id in groups)
        return {members.name(member_id) for members in known for member_id in members.client_ids}

    def of(self, records: RecordRange) -> Iterator[LetterLife]:
        """Yield what has happened to records, as far as the history has it, in order."""
        key, first, last = records
        listed, members = self._lives.get(key, ((), KnownMembers()))
        place = bisect_right(listed, first, key=lambda each: each.first_offset) - 1
        for each in listed[max(place, 0) :]:
            if each.first_offset > last:
                return
            if each.last_offset >= first:
                begin, end = max(first, each.first_offset), min(last, each.last_offset)
                yield LetterLife(key, each._replace(first_offset=begin, last_offset=end), members)

    def by_client(self, records: Iterable[RecordRange]) -> Counter[str]:
        """Return of how many records which client had them last; those that the history does not have are left out."""
        return self._by(records, lambda life: life.client)

    def by_member(self, records: Iterable[RecordRange]) -> Counter[str]:
        """Return of how many records which member was the last one that had them, as sentences name it."""
        return self._by(records, lambda life: life.member)

    def _by(self, records: Iterable[RecordRange], who: Callable[[LetterLife], str]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for each in records:
            for life in self.of(each):
                counts[who(life)] += life.listed.records
        return counts

    def compare(self, index: LetterIndex, groups: QueueGroups) -> LetterCheck:
        """Return which records were handed to the queue by the history, and have no letter, and the other way round."""
        check = LetterCheck("history")
        for key in sorted(self._named):
            letters = index.of([key])
            for each in self._lives[key][0]:
                lived = each.lived
                if lived.is_dead_letter and lived.outcome in _HANDED:
                    at_ms = None if lived.outcome_us is None else lived.outcome_us // 1000
                    records = RecordRange(key, each.first_offset, each.last_offset)
                    find_missing(index, HandedRecords(records, at_ms, at_ms, is_under_way=False), letters, check)
                elif lived.outcome is not None:
                    check.direct += each.records
        for key, ranges in index.ranges.items():
            known = [(each.first_offset, each.last_offset) for each in self._lives.get(key, ((), None))[0]]
            without_life = sum(last - first + 1 for first, last in ranges) - _common(ranges, known)
            if without_life:
                check.not_checked["letters of records whose end is not in the history"] += without_life
        for group_id, handed in (+self._handed_by_others).items():
            if group_id in groups.other_group_ids:
                check.other_groups[group_id] += handed
            else:
                check.note_unknown_group(group_id, handed, groups.reason(group_id))
        if self.unlisted:
            check.not_checked["records that were given up, beyond those that are kept of the history"] += self.unlisted
        return check


def _left(overview: Overview, listed: list[ListedRecords]) -> int:
    return overview.happened.listed_in_all("archived") - sum(each.records for each in listed)


def _common(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> int:
    """Return how many offsets are in both of two lists of ranges, which ascend."""
    count = place = 0
    for first, last in left:
        while place < len(right) and right[place][1] < first:
            place += 1
        at = place
        while at < len(right) and right[at][0] <= last:
            count += min(last, right[at][1]) - max(first, right[at][0]) + 1
            at += 1
    return count
