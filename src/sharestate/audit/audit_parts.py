"""What was found out about one share partition, and the sum of that: so share partitions can be judged apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from attrs import Factory, define, field

from sharestate.audit.duplicates import DuplicateCounts
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_log import SharePartitionName
from sharestate.audit.verdicts import Audit, GuaranteeTally, verdicts_of


def _no_tallies() -> defaultdict[Guarantee, GuaranteeTally]:
    return defaultdict(GuaranteeTally)


@define
class AuditPart:
    """What was found out about a share partition, so far."""

    key: SharePartitionName
    """The share partition."""

    duplicates: DuplicateCounts
    """The records that were delivered again."""

    tallies: defaultdict[Guarantee, GuaranteeTally] = field(factory=_no_tallies)
    """What was found out about each guarantee."""

    records: int = 0
    """How many records something was done to."""

    ambiguous: int = 0
    """How many of them have a life that rests on what was not answered, on a crash or on a fault."""

    notes: list[str] = Factory(list)
    """What limits the judgment, in words."""


def sum_of_parts(  # noqa: PLR0913 - what all parts have in common
    parts: Iterable[AuditPart],
    duplicates: DuplicateCounts,
    *,
    operations: int,
    clients: int,
    clocks: tuple[str, ...],
    notes: tuple[str, ...],
) -> Audit:
    """
    Return what was found out in all.

    Args:
        parts: What was found out about each share partition, in the order of their names.
        duplicates: None yet, which those of all parts are added to.
        operations: How many operations there are.
        clients: How many clients.
        clocks: What is known of differences between clocks.
        notes: What limits the judgment of all parts.
    """
    tallies, keys, all_notes = _no_tallies(), [], [*notes]
    records = ambiguous = 0
    for part in parts:
        keys.append(part.key)
        records += part.records
        ambiguous += part.ambiguous
        all_notes += part.notes
        duplicates.add(part.duplicates)
        for guarantee, tally in part.tallies.items():
            tallies[guarantee].add(tally)
    return Audit(
        operations=operations,
        clients=clients,
        share_partitions=tuple(keys),
        verdicts=verdicts_of(tallies),
        records=records,
        ambiguous=ambiguous,
        duplicates=duplicates.result(),
        clocks=clocks,
        notes=tuple(all_notes),
    )
