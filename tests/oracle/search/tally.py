"""Counting what a search has compared, and what it has met."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from attrs import Factory, define

from tests.oracle.search.divergences import DIVERGENCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sharestate.json_lines import Json
    from sharestate.testing.search.judging import Verdict

ENOUGH: Final = 10_000
"""How many operations of a mix it takes until a rate means something. [operations]"""


@define
class Tally:
    """What was compared, by mix, and which known divergences were met, by mix and row."""

    operations: Counter[str] = Factory(Counter)
    """Requests that both have answered."""

    sequences: Counter[str] = Factory(Counter)
    """Sequences of them."""

    shown: Counter[tuple[str, str]] = Factory(Counter)
    """Divergences that showed, as they are described."""

    latent: Counter[tuple[str, str]] = Factory(Counter)
    """Divergences that were set off and did not show."""

    def add_sequence(self, mix: str, operations: int) -> None:
        """Count a sequence of *mix*."""
        self.operations[mix] += operations
        self.sequences[mix] += 1

    def add(self, mix: str, verdict: Verdict) -> None:
        """Count the divergence in *verdict*, if there is one."""
        if verdict.row is not None:
            (self.latent if verdict.is_latent else self.shown)[mix, verdict.row.id] += 1

    def merge(self, other: Tally) -> None:
        """Add all that *other* has counted."""
        self.operations.update(other.operations)
        self.sequences.update(other.sequences)
        self.shown.update(other.shown)
        self.latent.update(other.latent)

    @property
    def total(self) -> int:
        """All operations."""
        return self.operations.total()

    def rate(self, mix: str, row: str) -> float:
        """Return how often *row* was met in *mix*. [per 1,000 operations]"""
        met = self.shown[mix, row] + self.latent[mix, row]
        return 1000 * met / self.operations[mix] if self.operations[mix] else 0.0

    def too_often(self) -> list[str]:
        """Return what is wrong with how often divergences were met: so often that something else hides behind them."""
        return [
            f"{row.id} was met {self.rate(mix, row.id):.2f} times in 1,000 {mix} operations, and {most} are the most"
            for row in DIVERGENCES
            for mix, most in row.most_per_1000.items()
            if self.operations[mix] >= ENOUGH and self.rate(mix, row.id) > most
        ]

    def as_json(self) -> Json:
        """Return it as JSON; see `tally_of`."""
        return {
            "operations": self.operations,
            "sequences": self.sequences,
            "shown": [[*key, count] for key, count in self.shown.items()],
            "latent": [[*key, count] for key, count in self.latent.items()],
        }


def tally_of(value: Mapping[str, Json]) -> Tally:
    """Return the tally that `Tally.as_json` has written."""
    met = (Counter({(mix, row): count for mix, row, count in value[name]}) for name in ("shown", "latent"))
    return Tally(Counter(value["operations"]), Counter(value["sequences"]), *met)
