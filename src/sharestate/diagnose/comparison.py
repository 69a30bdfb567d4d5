"""Two histories compared, such as a good run and a bad one: what differs most, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import Any, Final, NamedTuple

from attrs import frozen

from sharestate.diagnose.diagnosis import Diagnosis, HistoryFacts, diagnose
from sharestate.diagnose.durations import Durations
from sharestate.diagnose.group_rules import GroupFacts
from sharestate.diagnose.rule import lasting
from sharestate.explain.outcomes import End
from sharestate.values.effects import Cause

COMPARISON_VERSION: Final = 1
"""The version of the JSON form."""

_CHANGED: Final = 1.5
"""From which factor on a measure has changed: less happens between any two runs."""

_SAME_LENGTH: Final = 3
"""Up to which factor of their lengths totals of two histories are compared without a word."""

_US_PER_S: Final = 10**6


@frozen(kw_only=True)
class Measure:
    """What is compared."""

    name: str
    """Its name, in lower case with hyphens."""

    title: str
    """What it says, and its unit."""

    of: Callable[[GroupFacts], float | None]
    """Returns it; None if it is not known."""

    least: float = 1.0
    """What is added to both before they are divided, so that little things do not come out as great changes."""

    is_duration: bool = False
    """Whether it is in microseconds."""

    def shown(self, value: float | None) -> str:
        """Return a value in words."""
        if value is None:
            return "not known"
        return lasting(round(value)) if self.is_duration else f"{value:,.1f}".removesuffix(".0")


class Change(NamedTuple):
    """
    A measure in both histories.

    Attributes:
        group_id: The group.
        measure: The measure.
        here: Its value in the history that is diagnosed; None if it is not known.
        there: Its value in the other one.
    """

    group_id: str
    measure: Measure
    here: float | None
    there: float | None

    @property
    def factor(self) -> float:
        """By what it has grown; below 1 if it has become less."""
        if self.here is None or self.there is None:
            return 1.0
        return (max(self.here, 0) + self.measure.least) / (max(self.there, 0) + self.measure.least)

    @property
    def has_changed(self) -> bool:
        """Whether that is more than happens between any two runs."""
        return abs(log(self.factor)) >= log(_CHANGED)

    @property
    def line(self) -> str:
        """The change in a line."""
        here, there = self.measure.shown(self.here), self.measure.shown(self.there)
        return f"{self.measure.title}: {here}, where it was {there}"


class Comparison(NamedTuple):
    """
    What differs between two histories.

    Attributes:
        changes: All measures of the groups that both have, those that have changed most first.
        settings: The settings that differ: group, name, value here, value there.
        found: The rules that only the diagnosed history breaks, by name.
        gone: The rules that only the other one breaks.
        limits: What limits the comparison.
        groups: The groups that both have.
    """

    changes: tuple[Change, ...]
    settings: tuple[tuple[str, str, Any, Any], ...]
    found: tuple[str, ...]
    gone: tuple[str, ...]
    limits: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def changed(self) -> tuple[Change, ...]:
        """The measures that have changed."""
        return tuple(each for each in self.changes if each.has_changed)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "comparison": COMPARISON_VERSION,
            "groups": list(self.groups),
            "changes": [
                {
                    "group_id": each.group_id,
                    "measure": each.measure.name,
                    "here": each.here,
                    "there": each.there,
                    "factor": round(each.factor, 3),
                    "has_changed": each.has_changed,
                }
                for each in self.changes
            ],
            "settings": [dict(zip(("group_id", "name", "here", "there"), each, strict=True)) for each in self.settings],
            "found": list(self.found),
            "gone": list(self.gone),
            "limits": list(self.limits),
        }


def compare(here: HistoryFacts, there: HistoryFacts) -> Comparison:
    """
    Compare two histories, group by group.

    Args:
        here: The history that is diagnosed, such as that of a bad run.
        there: The one that it is compared with, such as that of a good run.
    """
    groups = {each.group_id: each for each in here.groups()}
    others = {each.group_id: each for each in there.groups()}
    names = [name for name in groups if name in others]
    changes = [
        Change(name, measure, measure.of(groups[name]), measure.of(others[name]))
        for name in names
        for measure in MEASURES
    ]
    changes.sort(key=lambda each: -abs(log(each.factor)))
    found, gone = _rules_of(diagnose(here)), _rules_of(diagnose(there))
    return Comparison(
        tuple(changes),
        tuple(each for name in names for each in _settings(name, groups[name], others[name])),
        tuple(each for each in found if each not in gone),
        tuple(each for each in gone if each not in found),
        tuple(_limits(groups, others)),
        tuple(names),
    )


def _rules_of(diagnosis: Diagnosis) -> list[str]:
    return list(dict.fromkeys(each.rule.name for each in diagnosis.findings))


def _settings(name: str, here: GroupFacts, there: GroupFacts) -> Iterator[tuple[str, str, Any, Any]]:
    ours, theirs = here.partitions[0].settings, there.partitions[0].settings
    for setting in sorted(ours.keys() | theirs.keys()):
        if setting != "leader_epoch" and ours.get(setting) != theirs.get(setting):
            yield name, setting, ours.get(setting), theirs.get(setting)


def _limits(here: dict[str, GroupFacts], there: dict[str, GroupFacts]) -> Iterator[str]:
    """Yield what keeps the histories from being comparable."""
    for name in here.keys() ^ there.keys():
        yield f"group {name} is in one of them only"
    for name in here.keys() & there.keys():
        ours, theirs = here[name], there[name]
        if _topics(ours) != _topics(theirs):
            yield f"group {name} consumes other topics or partitions: {_listed(ours)}, and {_listed(theirs)}"
        lasted, other = _lasted(ours), _lasted(theirs)
        if not lasted or not other:
            yield f"group {name}: how long a history is is not known, so there are no rates"
        elif max(lasted, other) > _SAME_LENGTH * min(lasted, other):
            yield (
                f"group {name}: one is {lasting(lasted)} long, the other {lasting(other)}: look at rates and parts, and"
                " not at totals"
            )


def _topics(group: GroupFacts) -> set[tuple[str, int]]:
    return {(group.topics.get(each.key[1], each.key[1]), each.key[2]) for each in group.partitions}


def _listed(group: GroupFacts) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(_topics(group))[:5])


# ---- measures


def _lasted(group: GroupFacts) -> int:
    return max((each.lasted_us for each in group.partitions), default=0)


def _sum(group: GroupFacts, of: Callable[[Any], float]) -> float:
    return sum(of(each) for each in group.partitions)


def _rate(of: Callable[[Any], float]) -> Callable[[GroupFacts], float | None]:
    """Return what computes how often something was in a second."""

    def rate(group: GroupFacts) -> float | None:
        lasted = _lasted(group)
        return _sum(group, of) * _US_PER_S / lasted if lasted else None

    return rate


def _percent(of: Callable[[Any], float], whole: Callable[[Any], float]) -> Callable[[GroupFacts], float | None]:
    """Return what computes a part in percent."""

    def percent(group: GroupFacts) -> float | None:
        total = _sum(group, whole)
        return 100 * _sum(group, of) / total if total else None

    return percent


def _percentile(part: float) -> Callable[[GroupFacts], float | None]:
    def percentile(group: GroupFacts) -> float | None:
        durations = Durations()
        for facts in group.partitions:
            durations.merge(facts.deliveries.processing)
            durations.merge(facts.deliveries.late)
        return durations.percentile(part) if durations.count else None

    return percentile


def _ended(end: End) -> Callable[[GroupFacts], float | None]:
    return _percent(lambda facts: facts.deliveries.ended[end], _deliveries)


def _deliveries(facts: Any) -> int:  # noqa: ANN401 - PartitionFacts, as the others
    count: int = facts.life.happened.deliveries
    return count


def _outcome(cause: Cause) -> Callable[[GroupFacts], float | None]:
    return _percent(
        lambda facts: facts.life.happened.outcomes[cause].records, lambda facts: facts.life.happened.delivered.records
    )


def _lag(group: GroupFacts) -> float | None:
    lags = [each.lag.last() for each in group.partitions]
    known = [each.lag for each in lags if each is not None]
    return sum(known) if len(known) == len(lags) else None


def _members(group: GroupFacts) -> float:
    return len({name for each in group.partitions for name in each.deliveries.members})


def _longest(of: Callable[[Any], int]) -> Callable[[GroupFacts], float | None]:
    return lambda group: max((of(each) for each in group.partitions), default=0)


MEASURES: Final[Sequence[Measure]] = (
    Measure(
        name="delivered",
        title="records delivered a second",
        of=_rate(lambda facts: facts.life.happened.delivered.records),
    ),
    Measure(name="done", title="records done a second", of=_rate(lambda facts: facts.deliveries.done)),
    Measure(name="deliveries", title="deliveries a second", of=_rate(_deliveries)),
    Measure(
        name="again",
        title="records delivered more than once, in percent",
        of=_percent(
            lambda facts: facts.life.happened.redelivered.records, lambda facts: facts.life.happened.delivered.records
        ),
    ),
    Measure(name="expired", title="deliveries ended by an expired lock, in percent", of=_ended(End.LOCK_EXPIRED)),
    Measure(name="released", title="deliveries ended by a release, in percent", of=_ended(End.RELEASED)),
    Measure(name="closed", title="deliveries ended with a session, in percent", of=_ended(End.SESSION_CLOSED)),
    Measure(name="taken-over", title="deliveries ended by a new leader, in percent", of=_ended(End.NEW_LEADER)),
    Measure(name="given-up", title="records given up at the limit, in percent", of=_outcome(Cause.ARCHIVED_AT_LIMIT)),
    Measure(name="rejected", title="records rejected, in percent", of=_outcome(Cause.REJECTED)),
    Measure(
        name="p50",
        title="processing, late ones included, the median",
        of=_percentile(0.5),
        least=10_000,
        is_duration=True,
    ),
    Measure(
        name="p99",
        title="processing, late ones included, the 99th percentile",
        of=_percentile(0.99),
        least=10_000,
        is_duration=True,
    ),
    Measure(name="members", title="members", of=_members, least=0.5),
    Measure(
        name="a-fetch",
        title="records a fetch that has any",
        of=lambda group: (
            _sum(group, lambda facts: facts.fetches.records)
            / max(_sum(group, lambda facts: facts.fetches.with_records), 1)
        ),
    ),
    Measure(
        name="throttled",
        title="fetches with records that were throttled, in percent",
        of=_percent(lambda facts: facts.fetches.throttled, lambda facts: facts.fetches.with_records),
    ),
    Measure(name="lag", title="the lag at the end, in records", of=_lag, least=100),
    Measure(
        name="spso-stood",
        title="the longest stay of an SPSO with records behind it done",
        of=_longest(lambda facts: facts.start.longest.us),
        least=_US_PER_S,
        is_duration=True,
    ),
    Measure(
        name="full",
        title="time without room for more records in flight",
        of=_longest(lambda facts: facts.room.full_us),
        least=_US_PER_S,
        is_duration=True,
    ),
    Measure(
        name="failed-writes",
        title="writes of state that failed, in percent",
        of=_percent(lambda facts: facts.failed_writes.total(), lambda facts: facts.writes),
    ),
    Measure(
        name="refused",
        title="acknowledgements refused, in percent",
        of=_percent(lambda facts: facts.refused.total(), lambda facts: facts.acknowledgements),
    ),
    Measure(name="leaders", title="changes of leaders", of=_longest(lambda facts: facts.leaders)),
)
"""What is compared."""
