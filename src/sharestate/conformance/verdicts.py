"""What became of vectors, and of the rules that they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Final

from attrs import define, frozen

from sharestate.conformance.vectors import Vector, Vectors
from sharestate.conversation.compare import Level
from sharestate.json_lines import Json, write_json

CONFORMANCE_VERSION: Final = 1
"""The version of what `Conformance.to_json` returns."""


class ConformanceVerdict(Enum):
    """What became of a vector, or of a rule."""

    PASSED = "passed"
    """All answers are those of Kafka; of a rule: so are those of all its vectors that are supported."""

    FAILED = "failed"
    """An answer differs; of a rule: in one of its vectors."""

    UNSUPPORTED = "not supported"
    """The peer does not know a request, or cannot be asked it; of a rule: in each of its vectors, or it has none."""

    UNJUDGED = "not judged"
    """The peer was not asked any more, it has differed before what shows the rule, or no vector shows the rule."""


@frozen(kw_only=True)
class VectorOutcome:
    """What became of a vector."""

    vector: Vector
    """The vector."""

    verdict: ConformanceVerdict
    """What became of it."""

    place: int | None = None
    """The index of the exchange at which it ended: the first that differs or is not supported; None for others."""

    differences: tuple[str, ...] = ()
    """What differs there, a line for each place."""

    got: Json = None
    """What a broker has answered there; None for other peers."""

    reason: str | None = None
    """Why it is not supported, as far as that is known."""


@frozen(kw_only=True)
class FailedVector:
    """A conversation that is cut off at its first difference."""

    name: str
    """The vector."""

    source: str
    """What was recorded."""

    exchanges: tuple[tuple[Json, Json], ...]
    """The requests with Kafka's responses; the peer has answered the last one otherwise."""

    got: Json
    """What a broker has answered to the last one; None for other peers."""

    differences: tuple[str, ...]
    """What differs in the last one, a line for each place."""

    @property
    def trace(self) -> str:
        """The conversation for ``sharestate replay``: a header, then one exchange per line."""
        header = {"trace": 1, "name": self.name, "source": "a vector, cut off at the first difference"}
        steps = [{"request": request, "response": response} for request, response in self.exchanges]
        return "".join(f"{write_json(line)}\n" for line in (header, *steps))


@frozen(kw_only=True)
class RuleConformance:
    """What became of a rule."""

    number: str
    """The rule's number in ``docs/rules.md``; empty for the vectors of which no rule is known."""

    heading: str
    """What it is about."""

    verdict: ConformanceVerdict
    """The verdict."""

    counts: Counter[ConformanceVerdict]
    """How many of its vectors have which verdict."""

    shortest: FailedVector | None = None
    """The shortest conversation that fails."""

    reason: str | None = None
    """Why the rule is not supported, or is not asked, as far as that is known."""

    def to_json(self) -> Json:
        """Return it as JSON."""
        shortest: Json = None
        if self.shortest is not None:
            shortest = {
                "vector": self.shortest.name,
                "source": self.shortest.source,
                "exchanges": [[request, response] for request, response in self.shortest.exchanges],
                "got": self.shortest.got,
                "differences": [*self.shortest.differences],
            }
        return {
            "rule": self.number,
            "about": self.heading,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "vectors": {verdict.value: self.counts[verdict] for verdict in ConformanceVerdict},
            "shortest": shortest,
        }


WHOLE_RECORDINGS: Final = "whole recordings, of which no rule is known"
"""The heading of the vectors without a rule."""


@define(kw_only=True, slots=False)
class Conformance:
    """What became of all vectors of a release."""

    release: str
    """The release of Kafka whose answers are expected."""

    level: Level
    """What was compared."""

    index: Vectors
    """The vectors with their index."""

    outcomes: tuple[VectorOutcome, ...]
    """What became of each vector of the release, accidents among them."""

    limit: str | None = None
    """Why some vectors were not asked; None if all were."""

    @cached_property
    def rules(self) -> tuple[RuleConformance, ...]:
        """What became of each rule, in their order; last the whole recordings."""
        by_rule: dict[str, list[VectorOutcome]] = {number: [] for number in (*self.index.rules, "")}
        for outcome in self.outcomes:
            if outcome.vector.accident is None:
                for number in outcome.vector.rules or ("",):
                    by_rule[number].append(outcome)
        headings = {**self.index.rules, "": WHOLE_RECORDINGS}
        return tuple(_judged(number, headings[number], outcomes, self.index) for number, outcomes in by_rule.items())

    @property
    def accidents(self) -> tuple[VectorOutcome, ...]:
        """The vectors that nobody has to answer as Kafka did."""
        return tuple(each for each in self.outcomes if each.vector.accident is not None)

    @property
    def verdict(self) -> ConformanceVerdict:
        """
        The verdict on all.

        Failed if a rule or a whole recording is; not judged if vectors were not asked, or nothing has passed; passed
        otherwise.
        """
        verdicts = {rule.verdict for rule in self.rules}
        if ConformanceVerdict.FAILED in verdicts:
            return ConformanceVerdict.FAILED
        unjudged = any(outcome.verdict is ConformanceVerdict.UNJUDGED for outcome in self.outcomes)
        if unjudged or self.limit is not None or ConformanceVerdict.PASSED not in verdicts:
            return ConformanceVerdict.UNJUDGED
        return ConformanceVerdict.PASSED

    def count(self, verdict: ConformanceVerdict) -> int:
        """Return how many rules have *verdict*; whole recordings are no rule."""
        return sum(rule.verdict is verdict for rule in self.rules if rule.number)

    @property
    def summary(self) -> str:
        """How many rules passed, of those that can be judged: the text of a badge."""
        passed, failed = self.count(ConformanceVerdict.PASSED), self.count(ConformanceVerdict.FAILED)
        return f"{passed} of {passed + failed} rules of {self.release}"

    def to_json(self) -> Json:
        """Return all as JSON."""
        accidents = Counter(each.verdict for each in self.accidents)
        return {
            "conformance": CONFORMANCE_VERSION,
            "release": self.release,
            "level": self.level.value,
            "verdict": self.verdict.value,
            "limit": self.limit,
            "vectors": len(self.outcomes),
            "rules": [rule.to_json() for rule in self.rules],
            "accidents": {verdict.value: accidents[verdict] for verdict in ConformanceVerdict},
        }


def _judged(number: str, heading: str, outcomes: Sequence[VectorOutcome], index: Vectors) -> RuleConformance:
    counts = Counter(each.verdict for each in outcomes)
    order = (ConformanceVerdict.FAILED, ConformanceVerdict.UNJUDGED, ConformanceVerdict.PASSED)
    unasked = index.unasked.get(number)
    is_unsupported = outcomes or (unasked and index.are_scripts)
    fallback = ConformanceVerdict.UNSUPPORTED if is_unsupported else ConformanceVerdict.UNJUDGED
    verdict = next((each for each in order if counts[each]), fallback)
    reasons = [unasked, *(each.reason for each in outcomes if each.verdict is verdict)]
    return RuleConformance(
        number=number,
        heading=heading,
        verdict=verdict,
        counts=counts,
        shortest=_shortest(outcomes),
        reason=next(filter(None, reasons), None),
    )


def _shortest(outcomes: Iterable[VectorOutcome]) -> FailedVector | None:
    failed = [(each.place, each) for each in outcomes if each.place is not None and each.differences]
    if not failed:
        return None
    place, shortest = min(failed, key=lambda each: each[0])
    return FailedVector(
        name=shortest.vector.name,
        source=shortest.vector.source,
        exchanges=shortest.vector.exchanges[: place + 1],
        got=shortest.got,
        differences=shortest.differences,
    )
