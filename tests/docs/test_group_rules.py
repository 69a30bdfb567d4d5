"""The rules of share groups and their administration: each has a heading, and tables are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import sharestate
from sharestate.broker.groups import ADMINISTRATION_CHECKS, HEARTBEAT_CHECKS, GroupQuirk
from tests.docs.test_state_machines import arrows, groups
from tests.support.protocol_pages import sections

DOCS: Final = Path(__file__).parents[2] / "docs"
SOURCES: Final = [
    path.read_text() for path in sorted((Path(sharestate.__file__).parent / "broker" / "groups").glob("*.py"))
]


def rows(page: str, number: int) -> list[list[str]]:
    """Return the rows of the tables in a rule."""
    text = next(body for heading, body in sections(page).items() if heading.startswith(f"{number} "))
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@pytest.mark.parametrize(("page", "count"), [("groups", 11), ("offsets", 5)])
def test_each_heading_has_the_anchor_of_its_number(page: str, count: int) -> None:
    """A link to groups-4 leads to rule 4; numbers ascend."""
    anchors = re.findall(rf"^\({page}-(\d+)\)=\n### (\d+) ", (DOCS / f"{page}.md").read_text(), re.MULTILINE)

    assert anchors == [(str(number), str(number)) for number in range(1, count + 1)]


@pytest.mark.parametrize("page", ["groups", "offsets"])
def test_each_rule_that_code_cites_is_on_the_page(page: str) -> None:
    """Every number that code cites is a heading, or a paragraph that begins with it."""
    text = (DOCS / f"{page}.md").read_text()
    cited = {number for source in SOURCES for number in re.findall(rf"\b{page} (\d+(?:\.\d+)?)", source)}

    assert cited
    assert {number for number in cited if f"### {number} " not in text and f"**{number}** " not in text} == set()


def test_the_table_of_errors_is_that_of_the_code() -> None:
    """Each error of a heartbeat is in its place; that of blank ids is one row of three."""
    codes = [error.error_code.name for error, _ in HEARTBEAT_CHECKS]

    assert [row[2] for row in rows("groups.md", 3)] == [*codes[:5], *codes[7:]]


def test_the_table_of_administrators_errors_is_that_of_the_code() -> None:
    """All four errors are in their order, as altering and deleting offsets have them."""
    longest = max(ADMINISTRATION_CHECKS.values(), key=len)

    assert [row[2] for row in rows("offsets.md", 1)] == [code.name for code, _ in longest]


def test_the_bugs_of_the_page_are_the_quirks() -> None:
    """Each has its name and its member."""
    assert [(row[0], row[1]) for row in rows("groups.md", 11)] == [
        (quirk.value, f"`{quirk.name}`") for quirk in GroupQuirk
    ]


def test_what_becomes_of_a_group_is_drawn() -> None:
    """Who joins makes a group, as altered offsets do (offsets 2.1); only an empty one is deleted (offsets 5.1)."""
    assert sorted(arrows("share-group.svg")) == sorted(
        [
            ("no group", "Stable", "a member joins"),
            ("no group", "Empty", "offsets are altered"),
            ("Empty", "Stable", "a member joins"),
            ("Empty", "no group", "it is deleted"),
            ("Stable", "Empty", "the last member leaves"),
            ("Stable", "Empty", "the last session ends"),
        ]
    )
    assert "begin: no group" in dict(groups("share-group.svg"))
