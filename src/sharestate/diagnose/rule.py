"""What a rule is, what it finds, and what it says where it cannot judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from attrs import field, frozen

from sharestate.explain.words import duration, sentence

Facts = TypeVar("Facts")

Evidence = Mapping[str, Any]
"""The facts of a finding's sentences."""

_US_PER_S: Final = 10**6


class Severity(StrEnum):
    """How grave a finding is, the gravest first."""

    CRITICAL = "critical"
    """Records are lost, or nothing is delivered."""

    WARNING = "warning"
    """Work is done again, or goes slowly."""

    NOTICE = "notice"
    """It may become one of these."""


class RuleNeed(StrEnum):
    """What a rule has to know."""

    STATE = "the state"
    TIMES = "times"
    AGREEMENT = "agreement"
    LOG_END = "the log end"


@frozen(kw_only=True)
class DiagnosisRule(Generic[Facts]):
    """
    A rule: when something is wrong, what shows it, and what to do.

    A sentence is a format string, as those of explanations: what stands in brackets is there only if its facts are.
    """

    name: str
    """Its name, in lower case with hyphens."""

    title: str
    """What is wrong, in a few words."""

    severity: Severity
    """How grave that is."""

    when: str
    """From when on, with the reason for the bound."""

    source: str
    """Where it comes from, in Markdown: a rule, a section of a KIP, a setting of Kafka's, or a bug."""

    evidence: str
    """The sentence that shows it."""

    advice: str
    """The sentence that says what to do."""

    needs: tuple[RuleNeed, ...] = (RuleNeed.STATE,)
    """What it has to know."""

    judge: Callable[[Facts], Evidence | None] = field(repr=False)
    """Returns the facts of its sentences where something is wrong; else None."""


class DiagnosisPlace(NamedTuple):
    """
    What a finding is about.

    Attributes:
        group_id: The share group.
        topic_id: The topic's id; None for all topics of the group.
        partition: The partition; None for all of them.
    """

    group_id: str
    topic_id: str | None = None
    partition: int | None = None

    def named(self, topics: Mapping[str, str]) -> str:
        """Return it in words, with the names of *topics* by their ids."""
        if self.topic_id is None:
            return f"group {self.group_id}"
        topic = topics.get(self.topic_id, self.topic_id)
        return f"group {self.group_id}, {topic}{'' if self.partition is None else f'-{self.partition}'}"


class DiagnosisFinding(NamedTuple):
    """
    Something that is wrong, with what shows it.

    Attributes:
        rule: The rule.
        place: What it is about.
        facts: The facts of its sentences.
        at_us: The time of the last event, from which sentences count; None if it is not known. [µs since 1970]
        computed: What settings were computed to change, in sentences; or why nothing was.
    """

    rule: DiagnosisRule[Any]
    place: DiagnosisPlace
    facts: Evidence
    at_us: int | None = None
    computed: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """What shows it, in a sentence."""
        return sentence(self.rule.evidence, self.facts, self.at_us)

    @property
    def advice(self) -> str:
        """What to do, in a sentence."""
        return sentence(self.rule.advice, self.facts, self.at_us)

    def to_json(self, topics: Mapping[str, str]) -> dict[str, Any]:
        """Return the finding as JSON; what is null is left out."""
        fields = {
            "rule": self.rule.name,
            "severity": self.rule.severity.value,
            "title": self.rule.title,
            **_place_json(self.place, topics),
            "facts": {name: each for name, each in self.facts.items() if each is not None},
            "evidence": self.evidence,
            "advice": self.advice,
            "computed": list(self.computed) or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def computed_lines(findings: Iterable[DiagnosisFinding]) -> Iterator[str]:
    """Yield what was computed about findings of a rule, once for each group, which is named if there are several."""
    groups: dict[str, list[str]] = {}
    for each in findings:
        groups.setdefault(each.place.group_id, []).extend(each.computed)
    for group_id, lines in groups.items():
        yield from (f"group {group_id}: {line}" if len(groups) > 1 else line for line in lines)


class NotChecked(NamedTuple):
    """
    A rule that could not be judged.

    Attributes:
        rule: The rule; None for all that need the state.
        place: What it is about.
        reason: Why, after "because".
    """

    rule: DiagnosisRule[Any] | None
    place: DiagnosisPlace
    reason: str

    def to_json(self, topics: Mapping[str, str]) -> dict[str, Any]:
        """Return it as JSON; what is null is left out."""
        fields = {
            "rule": None if self.rule is None else self.rule.name,
            **_place_json(self.place, topics),
            "reason": self.reason,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _place_json(place: DiagnosisPlace, topics: Mapping[str, str]) -> dict[str, Any]:
    return {**place._asdict(), "topic": topics.get(place.topic_id or "")}


def share(count: int, of: int) -> str:
    """
    Return a part in percent.

    >>> share(1, 3), share(1, 1000), share(0, 0)
    ('33 %', '0.1 %', '0 %')
    """
    percent = 100 * count / of if of else 0
    return f"{percent:.0f} %" if percent >= 1 or not percent else f"{percent:.1g} %"


def lasting(us: int) -> str:
    """
    Return a duration as people say it: to a tenth of a second, or a millisecond below one.

    >>> lasting(1_234_567), lasting(45_678), lasting(3_723_000_000)
    ('1.2 s', '46 ms', '1 h 2 min')
    """
    if us < _US_PER_S:
        return f"{round(us / 1000)} ms"
    return duration(round(us, -5) if us < 60 * _US_PER_S else round(us, -6))
