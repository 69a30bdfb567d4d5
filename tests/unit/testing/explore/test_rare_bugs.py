"""An exploration finds bugs that ten thousand random runs do not meet, by shortest ways."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_4
from sharestate.testing.explore import Bounds, explore
from tests.planted.rare import RARE, RareBug

PAGE: Final = Path(__file__).parents[4] / "docs/explore.md"


@pytest.mark.parametrize("bug", RARE.values(), ids=list(RARE))
def test_finds_a_rare_bug(bug: RareBug) -> None:
    """The bug is found by a shortest way, and without it what it breaks holds in the states that were looked at."""
    with bug.at_work():
        exploration = explore(bug.configuration, KAFKA_4_4.healed)
    found = exploration.counterexample
    assert found is not None
    assert (found.name, len(found.steps) - 1) == (bug.breaks, bug.steps)
    healthy = explore(bug.configuration, KAFKA_4_4.healed, bounds=Bounds(states=exploration.states))
    assert healthy.counterexample is None, str(healthy.counterexample)


def test_the_page_has_them() -> None:
    """The page has a row for each of them, with what it does, what it breaks and the length of the way."""
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    for bug in RARE.values():
        assert sum(row.startswith(f"| {bug.does} | {bug.breaks} | {bug.steps} |") for row in rows) == 1
