"""Poison records and outages: which rule holds of each letter, and what letters of the same rule have in common."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from sharestate.dead_letter_topic.contents import QueueContents, ShareKey
from sharestate.dead_letter_topic.pattern_rules import AROUND, PLACES, RULES, Pattern, PatternRule
from sharestate.values.dead_letters import DeadLetterCause

INTERVAL_MS: Final = 60_000
"""How far letters may be from each other in time to be of one interval, if nothing else is asked for. [ms]"""

_LISTED: Final = 20
"""How many ranges of records a finding names, the first ones. [ranges]"""

_FINDINGS: Final = 1000
"""How many findings of each rule are kept: those with the most letters. [findings]"""

_MANY: Final = RULES[PatternRule.MANY_TOGETHER].thresholds
_KEY: Final = RULES[PatternRule.SAME_KEY].thresholds

Finished = Callable[[ShareKey, int, int], int]
"""A function of a share partition, an offset and a distance: how many records within it, that one left out, the group
is known to be done with."""


class RecordRange(NamedTuple):
    """
    Records of a share partition that have letters.

    Attributes:
        key: The share partition.
        first_offset: The first offset.
        last_offset: The last offset, included.
    """

    key: ShareKey
    first_offset: int
    last_offset: int

    @property
    def offsets(self) -> str:
        """Their offsets in words."""
        first, last = self.first_offset, self.last_offset
        return str(first) if first == last else f"{first}-{last}"

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON."""
        return {**self.key._asdict(), "first_offset": self.first_offset, "last_offset": self.last_offset}


class PatternFinding(NamedTuple):
    """
    Letters of which the same rule holds for one reason.

    Attributes:
        rule: The rule.
        group_ids: The groups whose letters they are.
        letters: How many they are; what has several letters counts once for each group. [letters]
        first_ms: When the first one was written; None if that is not known. [ms since 1970]
        last_ms: When the last one was written. [ms since 1970]
        share_partitions: Of how many share partitions they are. [share partitions]
        causes: The letters by their causes.
        facts: What else is known, and is the evidence.
        ranges: Where they are, the first ones.
        key: Their key, if the rule is about it and it is kept.
    """

    rule: PatternRule
    group_ids: tuple[str, ...]
    letters: int
    first_ms: int | None
    last_ms: int | None
    share_partitions: int
    causes: Mapping[str, int]
    facts: Mapping[str, Any]
    ranges: tuple[RecordRange, ...]
    key: bytes | None = None

    @property
    def pattern(self) -> Pattern:
        """What they are of."""
        return RULES[self.rule].pattern


class Patterns(NamedTuple):
    """
    What the letters of a topic are of.

    Attributes:
        interval_ms: How far letters may be from each other to be of one interval. [ms]
        order: The numbers of the letters by share partition and offset.
        rules: The place of the rule that holds of each letter, by its number; 0 of duplicates.
        duplicates: Whether the same record of the same group has a letter before it, by the number of the letter.
        findings: What was found, by rule, and of each the most letters first.
        unlisted: How many findings are not kept, by rule. [findings]
    """

    interval_ms: int
    order: list[int]
    rules: bytearray
    duplicates: bytearray
    findings: tuple[PatternFinding, ...]
    unlisted: Mapping[PatternRule, int]

    def letters(self) -> dict[PatternRule, int]:
        """Return how many letters each rule holds of, duplicates left out. [letters]"""
        counts = Counter(self.rules)
        return {rule: counts[place] for rule, place in PLACES.items() if counts[place]}

    def by_pattern(self) -> dict[Pattern, int]:
        """Return how many letters are of what, duplicates left out. [letters]"""
        found = dict.fromkeys(Pattern, 0)
        for rule, letters in self.letters().items():
            found[RULES[rule].pattern] += letters
        return found


class _Block(NamedTuple):
    """Neighboring letters of one share partition in one interval; *begin* and *end* are places in the order."""

    first_ms: int
    last_ms: int
    begin: int
    end: int
    span: int


class _Search:
    """Asks the rules one after the other; those before have taken their letters."""

    def __init__(self, contents: QueueContents, interval_ms: int, finished: Finished) -> None:
        self.contents = contents
        self.interval_ms = interval_ms
        self.finished = finished
        self.order = contents.in_order()
        self.rules = bytearray(len(contents))
        self.duplicates = bytearray(len(contents))
        self.in_groups = bytearray(len(contents))
        self.near = bytearray(len(contents))
        self.firsts: list[int] = []
        self.slices: list[tuple[ShareKey, int, int]] = []
        self.found: defaultdict[PatternRule, list[PatternFinding]] = defaultdict(list)
        self.outages: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    def run(self) -> Patterns:
        self._look_around()
        self._look_in_other_groups()
        self._find_bursts()
        self._find_in_several_groups()
        self._find_keys()
        self._find_the_rest()
        findings, unlisted = [], {}
        for rule in PatternRule:
            worst = sorted(self.found[rule], key=lambda each: -each.letters)
            findings += worst[:_FINDINGS]
            if len(worst) > _FINDINGS:
                unlisted[rule] = len(worst) - _FINDINGS
        return Patterns(self.interval_ms, self.order, self.rules, self.duplicates, tuple(findings), unlisted)

    # ---- what letters are beside others

    def _look_around(self) -> None:
        """Note the duplicates, the first letter of each record, and those that have others near them."""
        offsets, firsts = self.contents.offsets, self.firsts
        for key, numbers in self.contents.slices(self.order):
            begin, before = len(firsts), None
            for number in numbers:
                if before is not None and offsets[number] == offsets[before]:
                    self.duplicates[number] = 1
                    continue
                if self.contents.times_ms[number] < 0:
                    self.rules[number] = PLACES[PatternRule.NO_TIME]
                firsts.append(number)
                before = number
            self.slices.append((key, begin, len(firsts)))
            self._count_near(begin, len(firsts))

    def _count_near(self, begin: int, end: int) -> None:
        """Note how many other letters of a share partition each one has around it."""
        offsets, firsts = self.contents.offsets, self.firsts
        low = begin
        for place in range(begin, end):
            while offsets[firsts[place]] - offsets[firsts[low]] > AROUND:
                low += 1
            self.near[firsts[place]] += place - low
            for each in range(low, place):
                self.near[firsts[each]] += 1

    def _look_in_other_groups(self) -> None:
        """Note the letters of records of which another group has letters, too."""
        logs: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for key, begin, end in self.slices:
            logs[key.topic, key.partition].append((begin, end))
        offsets = self.contents.offsets
        for places in logs.values():
            if len(places) > 1:
                runs = (self.firsts[begin:end] for begin, end in places)
                in_order = merge(*runs, key=offsets.__getitem__)
                for _, same in groupby(in_order, offsets.__getitem__):
                    numbers = list(same)
                    for number in numbers if len(numbers) > 1 else ():
                        self.in_groups[number] = min(len(numbers), 255)

    # ---- many at once

    def _find_bursts(self) -> None:
        blocks: defaultdict[str, list[_Block]] = defaultdict(list)
        for key, begin, end in self.slices:
            blocks[key.group_id] += self._blocks(begin, end)
        for group_id, of_group in blocks.items():
            of_group.sort()
            burst: list[_Block] = []
            until_ms = 0
            for block in of_group:
                if burst and block.first_ms - until_ms > self.interval_ms:
                    self._judge_burst(group_id, burst)
                    burst = []
                until_ms = max(until_ms, block.last_ms) if burst else block.last_ms
                burst.append(block)
            if burst:
                self._judge_burst(group_id, burst)

    def _blocks(self, begin: int, end: int) -> Iterator[_Block]:
        """Yield the blocks of a share partition that have more than one letter."""
        offsets, times, firsts = self.contents.offsets, self.contents.times_ms, self.firsts
        start = begin
        for place in range(begin + 1, end + 1):
            if place < end:
                number, before = firsts[place], firsts[place - 1]
                is_near = offsets[number] - offsets[before] <= AROUND
                if is_near and abs(times[number] - times[before]) <= self.interval_ms and times[number] >= 0:
                    continue
            if place - start > 1 and times[firsts[start]] >= 0:
                at = [times[firsts[each]] for each in range(start, place)]
                span = offsets[firsts[place - 1]] - offsets[firsts[start]] + 1
                yield _Block(min(at), max(at), start, place, span)
            start = place

    def _judge_burst(self, group_id: str, burst: Sequence[_Block]) -> None:
        numbers = [self.firsts[place] for block in burst for place in range(block.begin, block.end)]
        percent = 100 * len(numbers) // sum(block.span for block in burst)
        if len(numbers) < _MANY["records"] or percent < _MANY["percent"]:
            return
        keys = Counter(self.contents.keys[number] for number in numbers)
        del keys[-1]
        key, most = keys.most_common(1)[0] if keys else (-1, 0)
        in_groups = sum(self.in_groups[number] > 0 for number in numbers)
        of_key, of_groups = 100 * most // len(numbers), 100 * in_groups // len(numbers)
        facts = {"percent": percent, "offsets": sum(block.span for block in burst), "keys": len(keys)}
        if most > 1 and of_key > RULES[PatternRule.ONE_KEY].thresholds["of_key"]:
            rule = PatternRule.ONE_KEY
            facts["of_key"] = of_key
        elif of_groups > RULES[PatternRule.SAME_RECORDS].thresholds["in_groups"]:
            rule = PatternRule.SAME_RECORDS
            facts["in_groups"] = of_groups
        elif all(self.contents.cause(number) is DeadLetterCause.CLIENT_REJECT for number in numbers):
            rule = PatternRule.REJECTED
        else:
            rule = PatternRule.MANY_TOGETHER
        self.outages[group_id].append((burst[0].first_ms, max(block.last_ms for block in burst)))
        self._take(rule, numbers, facts, key if rule is PatternRule.ONE_KEY else None)

    # ---- the same again and again

    def _find_in_several_groups(self) -> None:
        """Find records of several groups; letters of one record stand together by topic, partition and offset."""
        contents, asked = self.contents, RULES[PatternRule.SEVERAL_GROUPS].thresholds
        found = [number for number in self.firsts if self.in_groups[number] and not self.rules[number]]

        def record(number: int) -> tuple[str, int, int]:
            key = contents.share_partition(number)
            return key.topic, key.partition, contents.offsets[number]

        for _, same in groupby(sorted(found, key=record), record):
            numbers = list(same)
            if len(numbers) >= asked["groups"] and all(self.near[number] <= asked["others"] for number in numbers):
                self._take(PatternRule.SEVERAL_GROUPS, numbers, {"groups": len(numbers)})

    def _find_keys(self) -> None:
        contents = self.contents
        left = [number for number in self.firsts if contents.keys[number] != -1 and not self.rules[number]]

        def owner(number: int) -> tuple[str, int]:
            return contents.share_partition(number).group_id, contents.keys[number]

        left.sort(key=lambda number: (*owner(number), contents.times_ms[number]))
        sizes: Counter[str] = Counter()
        keys: Counter[str] = Counter()
        for (group_id, _), same in groupby(left, owner):
            sizes[group_id] += sum(1 for _ in same)
            keys[group_id] += 1
        for (group_id, key), same in groupby(left, owner):
            numbers = list(same)
            others, size = keys[group_id] - 1, len(numbers)
            occasions = self._occasions(numbers)
            if size < _KEY["records"] or occasions < _KEY["occasions"] or not others:
                continue
            average = (sizes[group_id] - size) / others
            if keys[group_id] * tail_of_poisson(size, average) * _KEY["once_in"] < 1:
                facts = {"occasions": occasions, "other_keys": others, "letters_of_other_keys": round(average, 1)}
                self._take(PatternRule.SAME_KEY, numbers, facts, key)

    def _occasions(self, numbers: Sequence[int]) -> int:
        """Return how many times there are, with more than an interval between them; *numbers* are in order of time."""
        times = self.contents.times_ms
        return 1 + sum(times[after] - times[before] > self.interval_ms for before, after in pairwise(numbers))

    # ---- the rest

    def _find_the_rest(self) -> None:
        rest: defaultdict[tuple[PatternRule, str], list[int]] = defaultdict(list)
        least: dict[tuple[PatternRule, str], int] = {}
        for key, begin, end in self.slices:
            outages = self.outages[key.group_id]
            for number in self.firsts[begin:end]:
                rule, finished = self._rule_of_one(key, number, outages)
                if rule is not None:
                    rest[rule, key.group_id].append(number)
                    least[rule, key.group_id] = min(finished, least.get((rule, key.group_id), finished))
        for (rule, group_id), numbers in rest.items():
            is_alone = rule in {PatternRule.ALONE, PatternRule.ALONE_UNKNOWN}
            self._take(rule, numbers, {"finished": least[rule, group_id]} if is_alone else {})

    def _rule_of_one(
        self, key: ShareKey, number: int, outages: Sequence[tuple[int, int]]
    ) -> tuple[PatternRule | None, int]:
        if self.rules[number] and self.rules[number] != PLACES[PatternRule.NO_TIME]:
            return None, 0
        at_ms = self.contents.times_ms[number]
        if at_ms < 0:
            return PatternRule.NO_TIME, 0
        place = bisect_right(outages, (at_ms + self.interval_ms, at_ms + self.interval_ms))
        if any(last + self.interval_ms >= at_ms for _, last in outages[max(0, place - 1) : place]):
            return PatternRule.BESIDE_MANY, 0
        if self.near[number] > RULES[PatternRule.ALONE].thresholds["others"]:
            return PatternRule.SOME_TOGETHER, 0
        finished = max(0, self.finished(key, self.contents.offsets[number], AROUND) - self.near[number])
        is_known = finished >= RULES[PatternRule.ALONE].thresholds["finished"]
        return PatternRule.ALONE if is_known else PatternRule.ALONE_UNKNOWN, finished

    def _take(
        self, rule: PatternRule, numbers: Sequence[int], facts: Mapping[str, Any], key: int | None = None
    ) -> None:
        """Note that *rule* holds of letters."""
        contents, place = self.contents, PLACES[rule]
        for number in numbers:
            self.rules[number] = place
        times = [at_ms for number in numbers if (at_ms := contents.times_ms[number]) >= 0]
        causes = Counter(None if (cause := contents.cause(number)) is None else cause.value for number in numbers)
        self.found[rule].append(
            PatternFinding(
                rule,
                tuple(sorted({contents.share_partition(number).group_id for number in numbers})),
                len(numbers),
                min(times, default=None),
                max(times, default=None),
                len({contents.places[number] for number in numbers}),
                {cause or "not known": count for cause, count in causes.most_common()},
                facts,
                tuple(_first_ranges(contents, numbers)),
                None if key is None else contents.key(next(each for each in numbers if contents.keys[each] == key)),
            )
        )


def _first_ranges(contents: QueueContents, numbers: Sequence[int]) -> Iterator[RecordRange]:
    """Yield the first ranges of neighbors among letters."""
    in_order = sorted(numbers, key=lambda number: (contents.places[number], contents.offsets[number]))
    begin = yielded = 0
    for end in range(1, len(in_order) + 1):
        if end < len(in_order):
            number, before = in_order[end], in_order[end - 1]
            is_next = contents.offsets[number] == contents.offsets[before] + 1
            if is_next and contents.places[number] == contents.places[before]:
                continue
        key = contents.share_partition(in_order[begin])
        yield RecordRange(key, contents.offsets[in_order[begin]], contents.offsets[in_order[end - 1]])
        begin, yielded = end, yielded + 1
        if yielded == _LISTED:
            return


def tail_of_poisson(count: int, average: float) -> float:
    """
    Return how probable *count* or more events are, if they are independent and there are *average* of them.

    >>> round(tail_of_poisson(3, 1.0), 4), tail_of_poisson(0, 1.0)
    (0.0803, 1.0)
    """
    if count <= average:
        return 1.0
    term = math.exp(count * math.log(average) - average - math.lgamma(count + 1))
    total, number = 0.0, count
    while term > total * 1e-12:
        total += term
        number += 1
        term *= average / number
    return min(1.0, total)


def nothing_known(_key: ShareKey, _offset: int, _around: int) -> int:
    """Return that nothing is known of the records around a record."""
    return 0


def find_patterns(
    contents: QueueContents, *, interval_ms: int = INTERVAL_MS, finished: Finished = nothing_known
) -> Patterns:
    """
    Return which letters are of poison records, which of an outage, and of which that is not known.

    Args:
        contents: The letters.
        interval_ms: How far letters may be from each other in time to be of one interval. [ms]
        finished: What is known of the records around a letter; nothing by default.

    Complexity:
        O(n log n) in the letters; memory of 60 bytes for each.
    """
    return _Search(contents, interval_ms, finished).run()


def ranges_of(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """
    Yield the ranges of *offsets*, which ascend.

    >>> list(ranges_of([1, 2, 3, 7]))
    [(1, 3), (7, 7)]
    """
    first = last = None
    for offset in offsets:
        if first is None or last is None:
            first = last = offset
        elif offset == last + 1:
            last = offset
        else:
            yield first, last
            first = last = offset
    if first is not None and last is not None:
        yield first, last
