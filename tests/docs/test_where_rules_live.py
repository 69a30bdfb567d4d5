"""Every section has one home, and the page says which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generate.homes import Module, claims, homes, modules
from generate.sections import SECTIONS
from sharestate import Quirk

PAGE = Path(__file__).parents[2] / "docs/where-rules-live.md"
HOMES = homes(modules(), SECTIONS)


def numbers(first: int, last: int, chapter: int) -> list[str]:
    """Return the sections from *first* to *last* of *chapter*."""
    return [f"{chapter}.{number}" for number in range(first, last + 1)]


def test_the_list_holds_every_section_with_rules() -> None:
    """Sections 1 to 16 with all their parts, and those parts of 20 and 24 that are rules of the leader."""
    parts = {1: 7, 4: 4, 7: 11, 8: 3}
    expected = [
        section for chapter in range(1, 17) for section in [str(chapter), *numbers(1, parts.get(chapter, 0), chapter)]
    ]

    assert list(SECTIONS) == [*expected, *numbers(1, 4, 20), "24.1", "24.3", "24.5"]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_has_one_home(section: str) -> None:
    """Exactly one module names it in the first line of its docstring."""
    assert len(HOMES[section]) == 1, HOMES[section]


@pytest.mark.parametrize(
    ("first_line", "expected"),
    [
        ("Spec 5: one.", ["5"]),
        ("Spec 7.8, 7.9 and 20.1: three.", ["7.8", "7.9", "20.1"]),
        ("Spec 4 to 4.3: a range, in the order of the list.", ["4", "4.1", "4.2", "4.3"]),
        ("Spec 1.6 to 2 and 5: a range and another.", ["1.6", "1.7", "2", "5"]),
        ("What one write carries (spec 11).", []),
    ],
)
def test_the_first_line_names_sections(first_line: str, expected: list[str]) -> None:
    """Sections are listed one by one or as ranges; a mention elsewhere in the line is none."""
    assert list(claims(Module("here.py", first_line), SECTIONS)) == expected


@pytest.mark.parametrize(
    ("first_line", "why"),
    [
        ("Spec 5 (in part): a remark between.", "should begin as in"),
        ("Spec 5, a list without an end.", "should begin as in"),
        ("Spec 1 and 24.2: not in the list.", r"not in the list: \['24.2'\]"),
    ],
)
def test_a_first_line_that_cannot_be_read_is_refused(first_line: str, why: str) -> None:
    """A line that begins like a claim and is none would leave a section without a home, so it says why."""
    with pytest.raises(ValueError, match=f"^here.py .*{why}"):
        claims(Module("here.py", first_line), SECTIONS)


def test_two_homes_are_noticed() -> None:
    """A section that two modules name has both, and one that nobody names has none."""
    found = homes([Module("a.py", "Spec 5: a."), Module("b.py", "Spec 5: b.")], SECTIONS)

    assert [module.path for module in found["5"]] == ["a.py", "b.py"]
    assert found["6"] == []


def test_the_page_has_every_section_once() -> None:
    """The first table has one row for each section, in order."""
    rows = re.findall(r"^\| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE)

    assert rows == list(SECTIONS)


@pytest.mark.parametrize("quirk", Quirk)
def test_the_page_says_who_asks_for_a_bug(quirk: Quirk) -> None:
    """Each bug that a profile may show is asked for somewhere, and the page links to where."""
    assert re.search(rf"^\| {quirk.value} \| .+ \| \[`partition/", PAGE.read_text(), re.MULTILINE)
