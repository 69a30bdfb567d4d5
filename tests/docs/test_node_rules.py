"""The rules of nodes: each has a heading and code, and every bug is on the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import sharestate
from sharestate.broker.node import NodeQuirk

PAGE: Final = (Path(__file__).parents[2] / "docs" / "node.md").read_text()
CITATION: Final = re.compile(r"\(node (\d+)\)")


def test_each_heading_has_the_anchor_of_its_number() -> None:
    """A link to node-4 leads to rule 4; numbers ascend."""
    anchors = re.findall(r"^\(node-(\d+)\)=\n### (\d+) ", PAGE, re.MULTILINE)

    assert anchors == [(str(number), str(number)) for number in range(1, 11)]


def test_each_rule_has_code() -> None:
    """Every number that code cites is a heading, and every heading is cited."""
    files = (Path(sharestate.__file__).parent / "broker/node").glob("*.py")
    cited = {int(number) for file in files for number in CITATION.findall(file.read_text())}

    assert cited == set(range(1, 11))


def test_every_quirk_is_on_the_page() -> None:
    """With its name in the list of bugs, in order."""
    rows = re.findall(r"^\| (N\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)

    assert rows == [(quirk.value, quirk.name) for quirk in NodeQuirk]
