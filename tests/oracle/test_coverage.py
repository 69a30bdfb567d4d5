"""What is said of the branches of Kafka's class that a search has reached."""

from __future__ import annotations

import json

import pytest

from tests.oracle.coverage import FILE, Coverage, Line, unreachable

LINES = (Line(10, 1, 3), Line(20, 2, 30), Line(30, 0, 4))


def test_unreachable_branches_are_not_missed() -> None:
    """Branches that are named unreachable do not count, and the others are told by their lines."""
    found = Coverage(lines=LINES, unreachable={20: 1})

    assert (found.total, found.covered, found.reachable) == (40, 37, 39)
    assert found.missing == ((10, 1), (20, 1))


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ({30: 1}, "line 30 was reached"),
        ({40: 1}, "line 40 was reached"),
        ({}, "less than 95 %"),
        ({10: 1, 20: 6}, "more than 15 %"),
    ],
)
def test_a_wrong_list_is_told(named: dict[int, int], complaint: str) -> None:
    """Names of what was reached, too few and too many names are complaints."""
    assert any(told.startswith(complaint) for told in Coverage(lines=LINES, unreachable=named).complaints)


def test_every_line_has_its_reason() -> None:
    """No line is named twice, and each has a method and a reason in one sentence."""
    for list_ in json.loads(FILE.read_text())["lists"]:
        rows = list_["rows"]

        assert len(unreachable(list_["kafka"])) == len(rows)
        assert all(row["method"] and row["reason"].endswith(".") for row in rows)
