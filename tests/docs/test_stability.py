"""What of the library can be relied on."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import sharestate
from generate.stability import INTERNAL, ROOMS, STABLE
from tests.support.api_snapshot import RECORDED, api_of

ROOT = Path(__file__).parents[2]

IMPORT = re.compile(r"^(?:>>> |\s*)(?:from (sharestate[\w.]*) import (\w+)|import (sharestate[\w.]+))", re.MULTILINE)


def test_what_is_stable_is_what_was_recorded() -> None:
    """Names, signatures, members: a change of these is meant, or a mistake."""
    stable = [name for name, room in ROOMS.items() if room.stability == STABLE]

    assert api_of(stable) == json.loads(RECORDED.read_text()), "python -m tests.support.api_snapshot, if it is meant"


def test_each_package_has_a_row() -> None:
    """Also those that are internal."""
    packages = {module.name for module in walk_packages(sharestate.__path__, "sharestate.") if module.ispkg}

    assert packages - set(ROOMS) == set()


def test_what_is_taught_is_at_least_provisional() -> None:
    """Whatever pages, examples and the README import has a row, and none of it may change in any release."""
    taught = set()
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.*"))):
        text = file.read_text().replace('"from ', "from ").replace("\\n", "\n")
        for package, name, module in IMPORT.findall(text):
            is_module = package and f"{package}.{name}" in ROOMS
            taught.add(f"{package}.{name}" if is_module else package or module)

    assert {name for name in taught if name not in ROOMS or ROOMS[name].stability == INTERNAL} == set()
    assert {"sharestate", "sharestate.testing.groups", "sharestate.spark"} <= taught


def test_each_row_is_of_a_module() -> None:
    """Some need an extra to be imported, but all of them are there."""
    assert [name for name in ROOMS if find_spec(name) is None] == []
