"""
A redrive plan: which records of which source partitions to process again, in order, as a file; nothing is written.

A file of JSON lines, the first of them a header with the version. A line is a range of neighboring records of which the
same is so: whether to redrive them, the rule that says what they are of, and how many letters each has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from sharestate.dead_letter_topic.analysis import LetterAnalysis
from sharestate.dead_letter_topic.contents import ShareKey
from sharestate.dead_letter_topic.pattern_rules import PLACES, RULES, Pattern, PatternRule
from sharestate.json_line_files import JsonLinesFile

REDRIVE_VERSION: Final = 1
"""The version of the format."""

MARK: Final = "sharestate_redrive_plan"
"""The field of the header that carries the version."""

_RULES: Final = {place: rule for rule, place in PLACES.items()}


class RedriveRange(NamedTuple):
    """
    Neighboring records of a share partition, of which the same is so.

    Attributes:
        key: The share partition.
        first_offset: The first offset in the source topic.
        last_offset: The last one, included.
        letters_of_each: How many letters each of them has: process it once all the same.
        rule: The rule that says what they are of.
    """

    key: ShareKey
    first_offset: int
    last_offset: int
    letters_of_each: int
    rule: PatternRule

    @property
    def records(self) -> int:
        """How many they are. [records]"""
        return self.last_offset - self.first_offset + 1

    @property
    def is_redriven(self) -> bool:
        """Whether the plan has them processed again; poison records would only come back."""
        return RULES[self.rule].pattern is not Pattern.POISON

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            **self.key._asdict(),
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "records": self.records,
            "letters_of_each": self.letters_of_each,
            "redrive": self.is_redriven,
            "pattern": RULES[self.rule].pattern.value,
            "rule": self.rule.value,
            **({} if self.is_redriven else {"excluded_because": RULES[self.rule].reason}),
        }


class RedriveCounts(NamedTuple):
    """
    What a redrive plan has.

    Attributes:
        redriven: The records to process again. [records]
        excluded: The records that are left out. [records]
        duplicates: The letters that are of a record that has another one. [letters]
        ranges: The ranges of neighboring records. [ranges]
    """

    redriven: int
    excluded: int
    duplicates: int
    ranges: int


def redrive_ranges(analysis: LetterAnalysis) -> Iterator[RedriveRange]:
    """
    Yield the ranges of a plan by group, topic, partition and offset.

    Complexity:
        O(n) in the letters, which are in order already.
    """
    contents, rules = analysis.contents, analysis.patterns.rules
    for key, numbers in sorted(contents.slices(analysis.patterns.order)):
        records = [(offset, list(same)) for offset, same in groupby(numbers, contents.offsets.__getitem__)]
        begin = 0
        for end in range(1, len(records) + 1):
            first, of_first = records[begin]
            if end < len(records):
                offset, of_next = records[end]
                is_same = len(of_next) == len(of_first) and rules[of_next[0]] == rules[of_first[0]]
                if is_same and offset == records[end - 1][0] + 1:
                    continue
            yield RedriveRange(key, first, records[end - 1][0], len(of_first), _RULES[rules[of_first[0]]])
            begin = end


def write_redrive_plan(analysis: LetterAnalysis, path: Path | str) -> RedriveCounts:
    """
    Write the redrive plan of what was analyzed to a file, compressed if its name ends with ``.gz``.

    Returns:
        What it has.

    Raises:
        OSError: The file cannot be written.
    """
    redriven = excluded = ranges = 0
    for each in redrive_ranges(analysis):
        ranges += 1
        redriven += each.records if each.is_redriven else 0
        excluded += 0 if each.is_redriven else each.records
    counts = RedriveCounts(redriven, excluded, analysis.duplicates, ranges)
    header = {
        MARK: REDRIVE_VERSION,
        "queue": analysis.topic,
        "queue_partitions": [
            {"partition": number, "start_offset": span.start, "end_offset": span.stop}
            for number, each in sorted(analysis.contents.partitions.items())
            if (span := each.span) is not None
        ],
        **counts._asdict(),
    }
    file = JsonLinesFile(path, header)
    try:
        file.write_lines(each.to_json() for each in redrive_ranges(analysis))
    finally:
        file.close()
    return counts
