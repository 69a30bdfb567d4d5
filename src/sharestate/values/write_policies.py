"""
What a leader puts into its writes: as brokers do it, or as the KIP shows it.

A policy is a frozen part of a profile. What it has to remember belongs to the share partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from attrs import field, frozen

from sharestate.values.checks import expect, integer, rows


class Amendment(StrEnum):
    """
    What the KIP leaves unsaid, and without which the requests do not add up to what has happened.

    None of them changes a row of the KIP's tables.
    """

    A1 = "A1"
    """Own changes are durable: the short form only if the change ends before the new SPSO."""

    A2 = "A2"
    """Plan on confirmed state: records of other unanswered writes count as they were before them."""

    A3 = "A3"
    """StartOffset -1 only once a StartOffset was confirmed, or read back."""

    A4 = "A4"
    """No short form while another unanswered write carries a StartOffset."""


def _amendments(amendments: Iterable[Amendment]) -> frozenset[Amendment]:
    return frozenset(rows(amendments, Amendment, "amendments"))


def _bound(bound: int | None) -> int | None:
    return None if bound is None else integer(bound, "bound", 1)


def _has_short_form(has_short_form: bool) -> bool:  # noqa: FBT001 - a converter
    return expect(has_short_form, bool, "has_short_form")


@frozen
class BrokerWritePolicy:
    """
    The SPSO of before the change, and what has changed, record by record where the batch is split.

    Source:
        SharePartition.writeShareGroupState (Kafka 4.3.1).
    """


@frozen(kw_only=True)
class KipWritePolicy:
    """
    What the KIP shows by example: nothing but a new SPSO where that says it all, else what has changed.

    Raises:
        MalformedInputError: A field is of the wrong type.

    Source:
        KIP-932, "Examples with share-group state" and "Examples with control records".
    """

    amendments: frozenset[Amendment] = field(default=frozenset(Amendment), converter=_amendments)
    """What is done beyond the KIP's text; leave one out to see what it is for."""

    bound: int | None = field(default=None, converter=_bound)
    """How far the SPSO may be ahead of the persisted one before it is written at any price; None: any. [offsets]"""

    has_short_form: bool = field(default=True, converter=_has_short_form)
    """Whether a new SPSO alone may be written; False for control records, of which a delta has no start offset."""

    def has(self, amendment: Amendment) -> bool:
        """Return whether the policy keeps to *amendment*."""
        return amendment in self.amendments


WritePolicy = BrokerWritePolicy | KipWritePolicy
"""What a leader puts into its writes."""
