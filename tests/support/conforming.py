"""Peers for ``sharestate conform``, and a file of vectors of one's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[2]

HEADER: Final = {"vectors": 1, "license": "Apache-2.0", "releases": ["4.4.0"], "rules": [["1", "Data model"]]}
VECTOR: Final = {
    "name": "one",
    "source": "by hand",
    "releases": ["4.4.0"],
    "rules": ["1"],
    "accident": None,
    "exchanges": [[{"op": "open"}, {}]],
}

PLANTED: Final = """
import sys
sys.path.insert(0, {top!r})
from tests.planted.rules.{plant} import plant
plant()
from sharestate.cli.commands import run
sys.argv = ["sharestate", "serve"]
run()
"""


def served(profile: str) -> list[str]:
    """Return the command of the library with a profile."""
    return [sys.executable, "-m", "sharestate", "serve", "--profile", profile]


def planted(plant: str) -> list[str]:
    """Return the command of the library with a rule that Kafka does not follow."""
    return [sys.executable, "-c", PLANTED.format(top=str(TOP), plant=plant)]
