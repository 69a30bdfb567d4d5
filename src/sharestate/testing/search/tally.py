"""Counting what a search has compared, and what it has met."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from attrs import Factory, define

from sharestate.json_checks import Field, an_object, integer, list_of, record, row, text

if TYPE_CHECKING:
    from sharestate.json_lines import Json
    from sharestate.testing.search.judging import Judgement


@define
class SearchTally:
    """What was compared, by kind of sequence, and which known divergences were met, by kind and row."""

    operations: Counter[str] = Factory(Counter)
    """Requests that both have answered."""

    sequences: Counter[str] = Factory(Counter)
    """Sequences of them."""

    shown: Counter[tuple[str, str]] = Factory(Counter)
    """Divergences that showed, as they are described."""

    latent: Counter[tuple[str, str]] = Factory(Counter)
    """Divergences that were set off and did not show."""

    def add_sequence(self, kind: str, operations: int) -> None:
        """Count a sequence of *kind*."""
        self.operations[kind] += operations
        self.sequences[kind] += 1

    def add(self, kind: str, verdict: Judgement) -> None:
        """Count the divergence in *verdict*, if there is one."""
        if verdict.row is not None:
            (self.latent if verdict.is_latent else self.shown)[kind, verdict.row.id] += 1

    def merge(self, other: SearchTally) -> None:
        """Add all that *other* has counted."""
        self.operations.update(other.operations)
        self.sequences.update(other.sequences)
        self.shown.update(other.shown)
        self.latent.update(other.latent)

    @property
    def total(self) -> int:
        """All operations."""
        return self.operations.total()

    @property
    def met(self) -> int:
        """How often a known divergence was met."""
        return self.shown.total() + self.latent.total()

    def rate(self, kind: str, row: str) -> float:
        """Return how often *row* was met in sequences of *kind*. [per 1,000 operations]"""
        met = self.shown[kind, row] + self.latent[kind, row]
        return 1000 * met / self.operations[kind] if self.operations[kind] else 0.0

    def as_json(self) -> Json:
        """Return it as JSON; see `tally_of`."""
        return {
            "operations": self.operations,
            "sequences": self.sequences,
            "shown": [[*key, count] for key, count in self.shown.items()],
            "latent": [[*key, count] for key, count in self.latent.items()],
        }


def _counts(value: Json, path: str) -> Counter[str]:
    return Counter({kind: integer(0)(count, f"{path}.{kind}") for kind, count in an_object(value, path).items()})


def _met(kind: str, row: str, count: int) -> tuple[tuple[str, str], int]:
    return (kind, row), count


_all_met: Final = list_of(row(text, text, integer(0), make=_met))

_FIELDS: Final = {"operations": _counts, "sequences": _counts, "shown": _all_met, "latent": _all_met}

tally_of: Final = record(
    {name: Field(check) for name, check in _FIELDS.items()},
    lambda operations, sequences, shown, latent: SearchTally(
        operations, sequences, Counter(dict(shown)), Counter(dict(latent))
    ),
)
"""The check for what `SearchTally.as_json` has written, and of which it makes the tally again."""
