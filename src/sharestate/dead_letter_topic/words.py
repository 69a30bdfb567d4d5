"""What a dead-letter topic says, in sentences: for the command line and for pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from sharestate.dead_letter_topic.analysis import LetterAnalysis
from sharestate.dead_letter_topic.letters import LetterKind
from sharestate.dead_letter_topic.lost_letters import LOST_BECAUSE, UNARCHIVED_BECAUSE, HandedRecords, LetterCheck
from sharestate.dead_letter_topic.pattern_rules import PatternRule
from sharestate.dead_letter_topic.patterns import PatternFinding, RecordRange
from sharestate.explain.words import counted, duration, instant

_RANGES: Final = 5
"""How many ranges of records a sentence names. [ranges]"""

_NAMED: Final = 4
"""How many members, or groups, a sentence names."""


def headline(analysis: LetterAnalysis) -> str:
    """Return what the topic has, in a sentence."""
    contents = analysis.contents
    said = f"{counted(contents.kinds[LetterKind.LETTER], 'letter')} of {counted(analysis.records, 'record')}"
    parts = [
        f"{said}, {counted(analysis.duplicates, 'duplicate')}",
        *(
            f"{counted(contents.kinds[kind], 'record')} {kind.value}"
            for kind in (LetterKind.OTHER_TOOL, LetterKind.MALFORMED)
            if contents.kinds[kind]
        ),
        f"{contents.size:,} bytes",
    ]
    first = min((each.first_ms for each in contents.partitions.values() if each.first_ms is not None), default=None)
    last = max((each.last_ms for each in contents.partitions.values() if each.last_ms is not None), default=None)
    if first is not None and last is not None:
        parts.append(f"from {instant(first * 1000)} to {instant(last * 1000)}")
    return "; ".join(parts)


def copied_line(analysis: LetterAnalysis) -> str:
    """Return whether letters have the records that they are of, in a sentence."""
    copied, letters = analysis.contents.copied, analysis.contents.kinds[LetterKind.LETTER]
    if copied == 0 < letters:
        return (
            "No letter has a copy of its record (errors.deadletterqueue.copy.record.enable), so keys are not known, "
            "and records have to be taken from the source topics."
        )
    return f"{copied:,} of {letters:,} letters have a copy of their record."


def finding_line(finding: PatternFinding) -> str:
    """Return a finding with its evidence, in a sentence."""
    by = f"{', '.join(finding.group_ids)}: {counted(finding.letters, 'letter')}"
    of = f" of {counted(finding.share_partitions, 'share partition')}" if finding.share_partitions > 1 else ""
    causes = ", ".join(f"{cause} {count:,}" for cause, count in finding.causes.items())
    facts = _FACTS[finding.rule](finding.facts) if finding.rule in _FACTS else ""
    key = "" if finding.key is None else f", key {finding.key.decode(errors='backslashreplace')!r}"
    return f"{by}{of}{_when(finding)}{key}{facts}; {causes}; {ranges_line(finding.ranges)}"


def members_line(analysis: LetterAnalysis, finding: PatternFinding) -> str | None:
    """Return whose the records of a finding were, in a sentence; None if the history does not say."""
    members = analysis.members_of(finding)
    if analysis.lives is None or not members:
        return None
    named = ", ".join(f"{member} {count:,}" for member, count in members.most_common(_NAMED))
    more = f", and {len(members) - _NAMED} others" if len(members) > _NAMED else ""
    everyone = analysis.lives.members(finding.group_ids)
    of = f"{len(members)} of the {len(everyone)} members" if len(everyone) > len(members) else "all members"
    return f"the last to have them were {of} that the history knows: {named}{more}"


def ranges_line(ranges: tuple[RecordRange, ...]) -> str:
    """Return the first of some ranges of records in words."""
    shown: dict[tuple[str, int], list[str]] = {}
    for each in ranges[:_RANGES]:
        shown.setdefault((each.key.topic, each.key.partition), []).append(each.offsets)
    parts = [f"{topic}-{partition}: {', '.join(offsets)}" for (topic, partition), offsets in shown.items()]
    return "; ".join(parts) + (" ..." if len(ranges) > _RANGES else "")


def check_lines(check: LetterCheck) -> Iterator[str]:
    """Yield what came out of comparing the letters with another source, in sentences."""
    handed = f"{counted(check.handed, 'record')} {'was' if check.handed == 1 else 'were'} handed to the queue"
    found = f"{check.found:,} have a letter, {check.lost:,} have lost it, {check.under_way:,} are under way"
    yield f"By the {check.source}, {handed}: {found}; {counted(check.direct, 'record')} archived at once need none."
    for each in check.under_way_ranges[:_RANGES]:
        yield f"  under way since {_at(each.at_ms)}: {_place(each)}"
    if check.under_way > 0:
        yield "  Either the queue has not answered yet, or it never will: the next leader hands them over again."
    if check.lost:
        yield f"Lost letters: {check.lost:,}"
        yield from (f"  {_place(each)}, handed over at {_at(each.at_ms)}" for each in check.lost_ranges[:_RANGES])
        yield from _and_more(len(check.lost_ranges))
        yield "  It may be that:"
        yield from (f"  - {reason}" for reason in LOST_BECAUSE)
    if check.unarchived:
        yield f"Letters of records that were never archived by the {check.source}: {check.unarchived:,}"
        yield from (f"  {each.key}: {each.offsets}" for each in check.unarchived_ranges[:_RANGES])
        yield from _and_more(len(check.unarchived_ranges))
        yield "  It may be that:"
        yield from (f"  - {reason}" for reason in UNARCHIVED_BECAUSE)
    if check.later:
        yield f"{counted(check.later, 'letter')} came after the {check.source} was read."
    if check.other_groups:
        yield f"Not looked at are records of groups with another queue: {_groups(check.other_groups)}."
    if check.unknown_groups:
        yield f"Whether this is the queue of groups without a letter is not known: {_groups(check.unknown_groups)}."
        yield "  Name those whose queue this is (--group), and those that have another one (--other-group)."


def _groups(records: Counter[str]) -> str:
    named = ", ".join(f"{group} {count:,}" for group, count in records.most_common(_NAMED))
    return named + (f", and {len(records) - _NAMED} more" if len(records) > _NAMED else "")


def _and_more(ranges: int) -> Iterator[str]:
    if ranges > _RANGES:
        yield f"  and {ranges - _RANGES:,} more ranges (--json)"


def _place(handed: HandedRecords) -> str:
    return f"{handed.records.key}: {handed.records.offsets}"


def _at(ms: int | None) -> str:
    return "a time that is not known" if ms is None else instant(ms * 1000)


def _when(finding: PatternFinding) -> str:
    if finding.first_ms is None or finding.last_ms is None:
        return ""
    if finding.first_ms == finding.last_ms:
        return f" at {instant(finding.first_ms * 1000)}"
    return f" in {duration((finding.last_ms - finding.first_ms) * 1000)} from {instant(finding.first_ms * 1000)}"


def _together(facts: Mapping[str, Any]) -> str:
    of_key = f", {facts['of_key']} % with one key" if "of_key" in facts else ""
    in_groups = f", {facts['in_groups']} % in other groups' letters, too" if "in_groups" in facts else ""
    keys = f", {facts['keys']:,} keys" if facts["keys"] else ""
    return f", {facts['percent']} % of {counted(facts['offsets'], 'offset')}{keys}{of_key}{in_groups}"


def _same_key(facts: Mapping[str, Any]) -> str:
    others = f"{facts['other_keys']:,} other keys have {facts['letters_of_other_keys']} on average"
    return f", on {facts['occasions']:,} occasions; {others}"


def _alone(facts: Mapping[str, Any]) -> str:
    return f", each with {facts['finished']} or more of the records around it finished"


_FACTS: Final[Mapping[PatternRule, Callable[[Mapping[str, Any]], str]]] = MappingProxyType(
    {
        PatternRule.MANY_TOGETHER: _together,
        PatternRule.REJECTED: _together,
        PatternRule.ONE_KEY: _together,
        PatternRule.SAME_RECORDS: _together,
        PatternRule.SEVERAL_GROUPS: lambda facts: f", the same record in {facts['groups']} groups",
        PatternRule.SAME_KEY: _same_key,
        PatternRule.ALONE: _alone,
        PatternRule.ALONE_UNKNOWN: _alone,
    }
)
"""The evidence of each rule in words."""
