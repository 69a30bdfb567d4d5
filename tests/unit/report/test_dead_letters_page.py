"""The page of a dead-letter topic: its numbers are those of the JSON form, and nothing in it can run."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.dead_letter_topic import LetterAnalysis, analyze_letters
from sharestate.report import dead_letters_page
from tests.support.dead_letter_topics import MINUTE, SECOND, Planted, contents_of
from tests.support.report_pages import Text

EVIL = "<script>document.title='ran'</script>"


@pytest.fixture(scope="module")
def analysis() -> LetterAnalysis:
    """An outage, a record of two groups, duplicates, and names that are HTML."""
    letters = [
        *(Planted(offset, offset * SECOND, b"%d" % offset) for offset in range(30)),
        *(Planted(offset, MINUTE) for offset in (3, 4)),
        *(Planted(900, 90 * MINUTE, group=group, topic=EVIL) for group in ("g", EVIL)),
    ]
    return analyze_letters("dlq.t", contents_of(letters), not_checked=[f"lost letters: {EVIL}"])


def cells(analysis: LetterAnalysis, section: str) -> list[str]:
    """Return the cells of the tables of a section."""
    return Text(dead_letters_page(analysis)).cells.get(section, [])


def test_its_numbers_are_those_of_the_json_form(analysis: LetterAnalysis) -> None:
    """Of rules, counts, times, duplicates and share partitions."""
    said: Any = analysis.to_json()
    rules = [
        cell
        for name, row in said["rules"].items()
        for cell in (row["pattern"], name, str(row["letters"]), row["asks"], row["reason"])
    ]
    counts = [
        cell
        for of, counted in said["by"].items()
        if counted is not None
        for name, count in counted.items()
        for cell in (of, name, str(count))
    ]

    assert cells(analysis, "patterns") == rules
    assert cells(analysis, "counts") == counts
    assert cells(analysis, "time")[3::4] == [str(part["letters"]) for part in said["over_time"]["parts"]]
    assert cells(analysis, "duplicates")[:5] == ["g", "t", "0", "3-4", "2"]
    assert said["duplicates"] == 2


def test_nothing_that_a_topic_says_becomes_html(analysis: LetterAnalysis) -> None:
    """It stands there as text."""
    page = dead_letters_page(analysis)

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page


def test_equal_analyses_have_equal_pages(analysis: LetterAnalysis) -> None:
    """No time of making is in it."""
    assert dead_letters_page(analysis) == dead_letters_page(analysis)


def test_an_empty_topic_has_a_page() -> None:
    """Without anything to say of letters."""
    page = dead_letters_page(analyze_letters("dlq.t", contents_of([])))

    assert "0 letters of 0 records" in page
    assert 'id="patterns"' not in page
