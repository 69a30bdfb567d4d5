"""What was found out: a verdict on each guarantee, with findings, and what is undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import Factory, define, frozen

from sharestate.audit.duplicates import Duplicates
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_log import LogPlace, SharePartitionName
from sharestate.json_lines import Json

AUDIT_VERSION: Final = 1
"""The version of the JSON form of an audit."""

_MOST_FINDINGS: Final = 100
"""How many findings of a guarantee are kept, the first ones; all are counted. [findings]"""

_MOST_REASONS: Final = 100
"""How many reasons of a guarantee are kept; those that come later are counted together. [reasons]"""

_OTHER_REASONS: Final = "other reasons"

JUDGED: Final[Mapping[Guarantee, str]] = MappingProxyType(
    {
        Guarantee.ONE_OWNER: "records delivered",
        Guarantee.NO_REPEATS: "answers",
        Guarantee.RECORD_ORDER: "answers",
        Guarantee.ONLY_PRODUCED: "records delivered",
        Guarantee.ONLY_COMMITTED: "records of transactions delivered",
        Guarantee.NOTHING_DELETED: "records delivered",
        Guarantee.ACCEPTED_IS_FINAL: "records accepted",
        Guarantee.REJECTED_IS_FINAL: "records rejected",
        Guarantee.DELIVERY_LIMIT: "records delivered",
        Guarantee.DELIVERY_COUNT: "records delivered",
        Guarantee.OWNER_MAY_ACKNOWLEDGE: "acknowledgements refused",
        Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE: "records acknowledged",
        Guarantee.RECORD_LOCKS: "share partitions",
        Guarantee.NOTHING_LOST: "records produced",
    }
)
"""The guarantees that are judged, and what is counted of each."""


CONFORMANCE: Final[Mapping[Guarantee, str]] = MappingProxyType(
    {
        Guarantee.THROTTLED_REDELIVERY: "answers with records at half of the limit",
        Guarantee.LAST_DELIVERY_ALONE: "answers with records at the limit",
    }
)
"""What Kafka does beyond its guarantees, which is judged if a release is named, and how many of what are checked."""


class AuditVerdict(StrEnum):
    """What was found out about a guarantee."""

    HELD = "held"
    """All that there is to check follows from the rules."""

    BROKEN = "broken"
    """Something does not follow from the rules, whatever the clocks and the order of what overlaps."""

    DIFFERENT = "not as Kafka"
    """No guarantee, but Kafka does it otherwise."""

    UNDECIDED = "cannot tell"
    """Nothing is broken as far as it was checked, and something could not be checked."""

    NOTHING = "nothing to check"
    """There is nothing to check."""


@frozen(kw_only=True)
class AuditFinding:
    """A guarantee that is broken, and where."""

    guarantee: Guarantee
    """The guarantee."""

    key: SharePartitionName
    """The share partition."""

    first_offset: int
    """The first record that shows it."""

    last_offset: int
    """The last of the records next to it of which the same is true, included."""

    what: str
    """What is wrong, in one sentence."""

    places: tuple[LogPlace, ...] = ()
    """Where the operations stand that show it."""

    life: tuple[str, ...] = ()
    """What was done to the records, a sentence for each operation."""

    known_bugs: tuple[str, ...] = ()
    """The ids of bugs of Kafka that look so: see ``docs/kafka-bugs.md``."""

    @property
    def records(self) -> int:
        """How many records show it."""
        return self.last_offset - self.first_offset + 1

    def line(self) -> str:
        """Return it in a line: the place, the share partition, and what is wrong."""
        offsets = str(self.first_offset) if self.records == 1 else f"{self.first_offset}-{self.last_offset}"
        place = f"{self.places[0]}: " if self.places else ""
        return f"{place}{self.key}, offset {offsets}: {self.guarantee}: {self.what}"

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {
            "guarantee": self.guarantee.value,
            **self.key._asdict(),
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "what": self.what,
            "places": [place._asdict() for place in self.places],
            "life": [*self.life],
            "known_bugs": [*self.known_bugs],
        }


@define
class GuaranteeTally:
    """What was found out about a guarantee so far."""

    checked: int = 0
    """How many were checked."""

    broken: int = 0
    """How many findings there are."""

    findings: list[AuditFinding] = Factory(list)
    """The first of them."""

    unknown: Counter[str] = Factory(Counter)
    """How many could not be checked, by the reason."""

    def find(self, finding: Callable[[], AuditFinding]) -> None:
        """Add a finding, which is made if it is one of the first."""
        self.broken += 1
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(finding())

    def undecided(self, reason: str, count: int) -> None:
        """Add what could not be checked."""
        if count:
            known = reason in self.unknown or len(self.unknown) < _MOST_REASONS
            self.unknown[reason if known else _OTHER_REASONS] += count

    def add(self, other: GuaranteeTally) -> None:
        """Add what was found out elsewhere."""
        self.checked += other.checked
        self.broken += other.broken
        self.findings = [*self.findings, *other.findings][:_MOST_FINDINGS]
        for reason, count in other.unknown.items():
            self.undecided(reason, count)


@frozen
class GuaranteeVerdict:
    """What was found out about a guarantee."""

    guarantee: Guarantee
    """The guarantee."""

    checked: int
    """How many were checked, of what JUDGED says."""

    broken: int
    """How many findings there are."""

    findings: tuple[AuditFinding, ...]
    """The first hundred of them."""

    unknown: Mapping[str, int]
    """How many could not be checked, by the reason."""

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict."""
        if self.broken:
            return AuditVerdict.DIFFERENT if self.guarantee in CONFORMANCE else AuditVerdict.BROKEN
        if self.unknown:
            return AuditVerdict.UNDECIDED
        return AuditVerdict.HELD if self.checked else AuditVerdict.NOTHING

    @property
    def counted(self) -> str:
        """Of what ``checked`` says how many were checked."""
        return CONFORMANCE.get(self.guarantee) or JUDGED[self.guarantee]

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {
            "guarantee": self.guarantee.value,
            "verdict": self.verdict.value,
            "checked": self.checked,
            "counted": self.counted,
            "broken": self.broken,
            "cannot_tell": dict(self.unknown),
            "findings": [finding.to_json() for finding in self.findings],
        }


@frozen(kw_only=True)
class Audit:
    """What was found out about all that clients wrote down."""

    operations: int
    """How many operations there are."""

    clients: int
    """How many clients."""

    share_partitions: tuple[SharePartitionName, ...]
    """The share partitions."""

    verdicts: tuple[GuaranteeVerdict, ...]
    """The verdicts on the guarantees, in the order of JUDGED."""

    records: int
    """How many records something was done to, once for each group."""

    ambiguous: int
    """How many of them have a life that rests on what was not answered, on a crash or on a fault."""

    duplicates: Duplicates
    """The records that were delivered again, and why."""

    clocks: tuple[str, ...] = ()
    """What is known of differences between clocks, in words."""

    notes: tuple[str, ...] = ()
    """What limits the judgment, in words."""

    @property
    def findings(self) -> Iterable[AuditFinding]:
        """The findings of all guarantees."""
        return (finding for verdict in self.verdicts for finding in verdict.findings)

    def verdict(self, guarantee: Guarantee) -> GuaranteeVerdict:
        """Return the verdict on a guarantee that is judged."""
        return next(each for each in self.verdicts if each.guarantee is guarantee)

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {
            "audit": AUDIT_VERSION,
            "operations": self.operations,
            "clients": self.clients,
            "records": self.records,
            "ambiguous": self.ambiguous,
            "share_partitions": [key._asdict() for key in self.share_partitions],
            "clocks": [*self.clocks],
            "notes": [*self.notes],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "duplicates": self.duplicates.to_json(),
        }


def verdicts_of(tallies: Mapping[Guarantee, GuaranteeTally]) -> tuple[GuaranteeVerdict, ...]:
    """Return the verdicts, in the order of JUDGED, and of CONFORMANCE as far as that was judged."""
    empty = GuaranteeTally()
    found = ((guarantee, tallies.get(guarantee, empty)) for guarantee in _judged(tallies))
    return tuple(
        GuaranteeVerdict(
            guarantee, each.checked, each.broken, tuple(each.findings), MappingProxyType(dict(each.unknown))
        )
        for guarantee, each in found
    )


def _judged(tallies: Mapping[Guarantee, GuaranteeTally]) -> Iterator[Guarantee]:
    yield from JUDGED
    yield from (guarantee for guarantee in CONFORMANCE if guarantee in tallies)
