"""
The rules by which letters are called poison records or an outage, as data: what is asked, and why that says so.

A *poison record* fails with every member that gets it: it, or others with its key, comes again and again, while the
records around it succeed. In an *outage* nothing succeeds for a while. What a dead-letter topic says of a letter is
often true of both; then the rule says why it is not known which of them it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Pattern(StrEnum):
    """What letters are of."""

    POISON = "poison record"
    """Records that fail with every member that gets them."""

    OUTAGE = "outage"
    """Records that failed because everything did."""

    UNDECIDED = "cannot be told"
    """Either, as far as it can be seen."""


class PatternRule(StrEnum):
    """The rules, in the order in which they are asked; the first one that holds of a letter counts."""

    NO_TIME = "no time"
    ONE_KEY = "many together, of one key"
    SAME_RECORDS = "many together, in several groups"
    REJECTED = "many together, rejected"
    MANY_TOGETHER = "many together"
    SEVERAL_GROUPS = "several groups"
    SAME_KEY = "same key"
    BESIDE_MANY = "beside many together"
    ALONE = "alone"
    ALONE_UNKNOWN = "alone, neighbors not known"
    SOME_TOGETHER = "some together"


class RuleRow(NamedTuple):
    """
    What a rule asks and concludes.

    Attributes:
        pattern: What the letters are of, where it holds.
        thresholds: The numbers that it asks for, by name.
        asks: What has to be so, with the thresholds in braces.
        reason: Why that says what the letters are of, or why it does not.
    """

    pattern: Pattern
    thresholds: Mapping[str, int]
    asks: str
    reason: str

    @property
    def sentence(self) -> str:
        """What has to be so, with its numbers."""
        return self.asks.format(**self.thresholds)


def _rule(pattern: Pattern, asks: str, reason: str, **thresholds: int) -> RuleRow:
    return RuleRow(pattern, MappingProxyType(thresholds), asks, reason)


_TOGETHER: Final = {"records": 20, "percent": 90}
"""Brokers deliver up to 500 records in one go, and release or reject them one by one: twenty neighbors that fail in one
interval, with hardly one between them that does not, are no accident of single records."""

AROUND: Final = 5
"""How many offsets to either side of a record are those around it. [offsets]"""

_ALONE: Final = {"around": AROUND, "others": 2, "finished": 5}
"""Half of the ten records around it, while two of them may be as bad."""

RULES: Final[Mapping[PatternRule, RuleRow]] = MappingProxyType(
    {
        PatternRule.NO_TIME: _rule(
            Pattern.UNDECIDED,
            "the letter has no timestamp",
            "both are about when letters were written.",
        ),
        PatternRule.ONE_KEY: _rule(
            Pattern.UNDECIDED,
            "{records} letters or more in one interval, {percent} % of the offsets, over {of_key} % with one key",
            "what one key stands for may have been broken, or the topic may have hardly any other key.",
            **_TOGETHER,
            of_key=50,
        ),
        PatternRule.SAME_RECORDS: _rule(
            Pattern.UNDECIDED,
            "{records} letters or more in one interval, {percent} % of the offsets, over {in_groups} % of them in "
            "another group's letters, too",
            "a producer may have written bad records for a while, or what both groups depend on was down.",
            **_TOGETHER,
            in_groups=50,
        ),
        PatternRule.REJECTED: _rule(
            Pattern.UNDECIDED,
            "{records} letters or more in one interval, {percent} % of the offsets, all rejected by members",
            "members reject what they take for bad: a producer may have written bad records for a while, or members "
            "took an error of their own for one of the records.",
            **_TOGETHER,
        ),
        PatternRule.MANY_TOGETHER: _rule(
            Pattern.OUTAGE,
            "{records} letters or more in one interval, {percent} % of the offsets, not all rejected",
            "neighbors that were delivered again and again, and none of which succeeded, have failed for one reason.",
            **_TOGETHER,
        ),
        PatternRule.SEVERAL_GROUPS: _rule(
            Pattern.POISON,
            "the record has letters of {groups} groups or more, and {others} other records or fewer within {around} "
            "offsets have some",
            "groups have consumers of their own, and this record fails with each of them.",
            groups=2,
            others=_ALONE["others"],
            around=AROUND,
        ),
        PatternRule.SAME_KEY: _rule(
            Pattern.POISON,
            "{records} letters or more with the key, on {occasions} occasions or more with an interval between them, "
            "and more than chance gives to any key of a group once in {once_in} times",
            "what has that key fails again and again, and other keys do not.",
            records=3,
            occasions=3,
            once_in=1000,
        ),
        PatternRule.BESIDE_MANY: _rule(
            Pattern.UNDECIDED,
            "the letter was written while many of its group were",
            "it may have failed for the same reason, or by itself.",
        ),
        PatternRule.ALONE: _rule(
            Pattern.POISON,
            "{others} other letters or fewer within {around} offsets, and {finished} or more of the records there are "
            "finished without a letter",
            "others around it succeeded.",
            **_ALONE,
        ),
        PatternRule.ALONE_UNKNOWN: _rule(
            Pattern.UNDECIDED,
            "{others} other letters or fewer within {around} offsets, and fewer than {finished} of the records there "
            "are known to be finished without a letter",
            "whether others around it succeeded is not known: the state topic may say it.",
            **_ALONE,
        ),
        PatternRule.SOME_TOGETHER: _rule(
            Pattern.UNDECIDED,
            "more than {others} other letters within {around} offsets, but fewer than {records} in one interval, or "
            "{percent} % of the offsets",
            "too many for single records, and too few, or too far between, for an outage.",
            others=_ALONE["others"],
            around=AROUND,
            **_TOGETHER,
        ),
    }
)
"""What each rule asks; thresholds are chosen, and each has a case in the tests on either side of it."""

PLACES: Final[Mapping[PatternRule, int]] = MappingProxyType({rule: place for place, rule in enumerate(PatternRule, 1)})
"""The number by which a column has a rule; 0 stands for none."""
