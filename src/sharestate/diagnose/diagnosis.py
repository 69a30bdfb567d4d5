"""The rules applied: findings about the share partitions of a history, and what could not be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from sharestate.diagnose.delivery_rules import DELIVERY_RULES
from sharestate.diagnose.durations import Durations
from sharestate.diagnose.group_rules import GROUP_RULES, GroupFacts
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.diagnose.progress_rules import PROGRESS_RULES
from sharestate.diagnose.rule import (
    DiagnosisFinding,
    DiagnosisPlace,
    DiagnosisRule,
    NotChecked,
    RuleNeed,
    Severity,
    lasting,
)
from sharestate.errors import HistoryOrderError, MalformedInputError
from sharestate.explain.outcomes import End
from sharestate.explain.words import counted
from sharestate.history import Header
from sharestate.history.events import Event
from sharestate.history.files import HistoryReader, expect_causal, open_history
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.runner import at_event
from sharestate.values.profiles import LATEST, Profile

DIAGNOSIS_VERSION: Final = 1
"""The version of the JSON form."""

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

PARTITION_RULES: Final[tuple[DiagnosisRule[PartitionFacts], ...]] = (*PROGRESS_RULES, *DELIVERY_RULES)
"""The rules on share partitions."""


class Diagnosis(NamedTuple):
    """
    What was found out.

    Attributes:
        summary: What was done, a line for each group; nothing of the state topic.
        findings: What is wrong, the gravest first.
        not_checked: The rules that could not be judged.
        notes: What else has to be known to read it.
        topics: The names of topics by their ids.
        share_partitions: How many were looked at.
        events: How many events they have; records of the state topic if it was that. [events]
    """

    summary: tuple[str, ...]
    findings: tuple[DiagnosisFinding, ...]
    not_checked: tuple[NotChecked, ...]
    notes: tuple[str, ...]
    topics: Mapping[str, str]
    share_partitions: int
    events: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "diagnosis": DIAGNOSIS_VERSION,
            "share_partitions": self.share_partitions,
            "events": self.events,
            "summary": list(self.summary),
            "findings": [each.to_json(self.topics) for each in self.findings],
            "not_checked": [each.to_json(self.topics) for each in self.not_checked],
            "notes": list(self.notes),
        }


class HistoryFacts:
    """
    The facts about the share partitions of a history.

    Args:
        header: What the history says of itself.
        profile: The rules of Kafka where it names none.

    Attributes:
        partitions: The facts about each, in the order in which they came up.
        events: How many events were taken. [events]
    """

    def __init__(self, header: Header, *, profile: Profile = LATEST) -> None:
        """Begin before the first event."""
        self.header: Final = header
        self.partitions: dict[Key, PartitionFacts] = {}
        self.events = 0
        self._profile: Final = profile
        self._budget: Final = ReplayBudget()

    def apply(self, event: Event) -> None:
        """
        Take the next event.

        Raises:
            HistoryOrderError: An event is missing.
            MalformedInputError: A field is not what it has to be, or the replay costs too much.
        """
        facts = self.partitions.get(event.key)
        if facts is None:
            facts = PartitionFacts(event.key, profile=self._profile, lacks=self.header.lacks, budget=self._budget)
            self.partitions[event.key] = facts
        facts.apply(event)
        self.events += 1

    def groups(self) -> list[GroupFacts]:
        """Return the facts by group."""
        found: dict[str, list[PartitionFacts]] = {}
        for key, facts in self.partitions.items():
            found.setdefault(key[0], []).append(facts)
        return [GroupFacts(group_id, partitions, self.header.topics) for group_id, partitions in found.items()]


def read_facts(
    source: Path,
    *,
    profile: Profile = LATEST,
    wanted: Callable[[Header, Key], bool] = lambda _header, _key: True,
    watch: Callable[[HistoryReader], Iterable[Event]] = iter,
) -> HistoryFacts:
    """
    Read a history once, and return the facts about its share partitions.

    Args:
        source: The file.
        profile: The rules of Kafka where the history names none.
        wanted: Whether a share partition is to be looked at.
        watch: Yields the events of the history; a place to show progress.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryError: It is no history, is in order of arrival, an event is malformed, or the replay costs too much.

    Complexity:
        That of ``PartitionFacts``; no event is kept.
    """
    number = 0
    with open_history(source) as history:
        expect_causal(history.header.order, source)
        facts = HistoryFacts(history.header, profile=profile)
        try:
            for number, event in enumerate(watch(history), 1):  # noqa: B007 - an error names it
                if wanted(history.header, event.key):
                    facts.apply(event)
        except HistoryOrderError:
            raise
        except MalformedInputError as error:
            raise at_event(error, number, source) from error
    return facts


def diagnose(facts: HistoryFacts) -> Diagnosis:
    """Judge what is known of the share partitions of a history by all rules."""
    findings: list[DiagnosisFinding] = []
    not_checked: list[NotChecked] = []
    notes: list[str] = []
    for partition in facts.partitions.values():
        place = DiagnosisPlace(*partition.key)
        notes += (f"{place.named(facts.header.topics)}: {note}" for note in _notes(partition))
        _judge(PARTITION_RULES, partition, (partition,), place, findings, not_checked)
    for group in facts.groups():
        _judge(GROUP_RULES, group, group.partitions, DiagnosisPlace(group.group_id), findings, not_checked)
    return Diagnosis(
        tuple(map(_summary, facts.groups())),
        tuple(by_severity(findings)),
        tuple(not_checked),
        tuple(notes),
        facts.header.topics,
        len(facts.partitions),
        facts.events,
    )


def by_severity(findings: Iterable[DiagnosisFinding]) -> list[DiagnosisFinding]:
    """Return *findings*, the gravest first, and those of a rule together."""
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    ordered = sorted(findings, key=lambda each: ranks[each.rule.severity])
    rules = list(dict.fromkeys(each.rule.name for each in ordered))
    return sorted(ordered, key=lambda each: rules.index(each.rule.name))


def _judge(  # noqa: PLR0913 - where the results go
    rules: Iterable[DiagnosisRule[Any]],
    facts: Any,  # noqa: ANN401 - what the rules judge
    partitions: Iterable[PartitionFacts],
    place: DiagnosisPlace,
    findings: list[DiagnosisFinding],
    not_checked: list[NotChecked],
) -> None:
    partitions = tuple(partitions)
    missing = {need: reason for need in RuleNeed if (reason := _missing(need, partitions)) is not None}
    if RuleNeed.STATE in missing:  # which nearly all rules need
        not_checked.append(NotChecked(None, place, missing[RuleNeed.STATE]))
        rules = [rule for rule in rules if RuleNeed.STATE not in rule.needs]
    for rule in rules:
        reason = next((missing[need] for need in rule.needs if need in missing), None)
        if reason is not None:
            not_checked.append(NotChecked(rule, place, reason))
        elif (evidence := rule.judge(facts)) is not None:
            at_us = max((each.at_us for each in partitions if each.at_us is not None), default=None)
            findings.append(DiagnosisFinding(rule, place, evidence, at_us))


def _missing(need: RuleNeed, partitions: Iterable[PartitionFacts]) -> str | None:
    """Return why something is not known that a rule needs; None if it is, of one share partition at least."""
    reasons = [_missing_of(need, each) for each in partitions]
    return None if None in reasons else next(iter(reasons), None)


def _missing_of(need: RuleNeed, facts: PartitionFacts) -> str | None:
    match need:
        case RuleNeed.STATE if facts.life.partition is None and not facts.deliveries.in_all:
            lost = facts.life.lost
            return "the history does not say what a leader has read" if lost is None else f"its state is {lost.reason}"
        case RuleNeed.TIMES if facts.first_us is None:
            return "events have no times"
        case RuleNeed.LOG_END if facts.life.log_end_offset is None:
            return "the history does not say what the log had"
        case RuleNeed.AGREEMENT if facts.overview.differences:
            return f"{counted(facts.overview.differences, 'time')} something was observed and computed otherwise"
        case _:
            return None


def _summary(group: GroupFacts) -> str:
    """Return what members of a group have done, in a line."""
    records = sum(map(group.delivered, group.partitions))
    deliveries = sum(each.life.happened.deliveries for each in group.partitions)
    ends, durations = Counter[End](), Durations()
    for each in group.partitions:
        ends.update(each.life.happened.redelivered.ends)
        durations.merge(each.deliveries.processing)
    again = ", ".join(f"{end.value} {count:,}" for end, count in ends.most_common() if count > 0)
    members = len({name for each in group.partitions for name in each.deliveries.members})
    lags = [each.lag.last() for each in group.partitions]
    known = [each.lag for each in lags if each is not None]
    times = f"{lasting(durations.percentile(0.5))}, 99 % within {lasting(durations.percentile(0.99))}"
    parts = (
        f"{counted(records, 'record')} delivered, {counted(deliveries, 'delivery')}",
        f"again after: {again}" if again else "",
        f"half were done within {times}" if durations.count else "",
        counted(members, "member"),
        f"lag {sum(known):,} at the end" if known and len(known) == len(lags) else "",
    )
    return f"group {group.group_id}: {'; '.join(filter(None, parts))}"


def _notes(facts: PartitionFacts) -> Iterator[str]:
    happened = facts.life.happened
    if happened.unchecked:
        yield f"{counted(happened.unchecked, 'delivery')} in answers that were not checked: findings do not count them"
    if facts.life.partition is not None and facts.overview.differences:
        times = counted(facts.overview.differences, "time")
        yield f"{times} something was observed and computed otherwise: what comes after it is not certain"
