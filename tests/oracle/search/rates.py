"""How often known divergences may be met: so that nothing else hides behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.oracle.search.divergences import DIVERGENCES

if TYPE_CHECKING:
    from sharestate.testing.search import SearchTally

ENOUGH: Final = 10_000
"""How many operations of a mix it takes until a rate means something. [operations]"""


def too_often(tally: SearchTally) -> list[str]:
    """Return what is wrong with how often divergences were met."""
    return [
        f"{row.id} was met {tally.rate(mix, row.id):.2f} times in 1,000 {mix} operations, and {most} are the most"
        for row in DIVERGENCES
        for mix, most in row.most_per_1000.items()
        if tally.operations[mix] >= ENOUGH and tally.rate(mix, row.id) > most
    ]
