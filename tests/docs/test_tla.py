"""The page of the TLA+ specification: it says of each bug of Kafka whether TLC finds it, as its models do."""

from __future__ import annotations

import re
from typing import Final

import pytest

from generate.data import read_rows
from generate.pages import DOCS
from tests.tla.models import BUGS

BUGS_OF_KAFKA: Final = [row["id"] for row in read_rows("kafka-bugs.json", "kafka_bugs")]

PAGE: Final = (DOCS / "tla.md").read_text().partition("\n## Kafka's bugs\n")[2].partition("\n## ")[0]


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the table of so many columns, without its head."""
    table = re.findall(rf"^\|{'([^|]+)\|' * columns}$", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row] for row in table[2:]]


def words(cell: str) -> list[str]:
    """Return the ids of a cell."""
    return cell.split(", ")


FOUND: Final = {bug: (words(switches), broken) for bugs, switches, broken in rows(3) for bug in words(bugs)}
NO_SWITCH: Final = [bug for bugs, _ in rows(2) for bug in words(bugs)]


def test_each_bug_of_kafka_is_a_switch_or_has_a_reason() -> None:
    """The two tables have each id of the page of Kafka's bugs once, and no other."""
    assert sorted([*FOUND, *NO_SWITCH]) == sorted(BUGS_OF_KAFKA)


@pytest.mark.parametrize("name", BUGS)
def test_what_breaks_is_what_its_model_breaks(name: str) -> None:
    """Each model's bug is in the table, with what is broken; switched on is what the first model of a bug says."""
    bug, _, part = name.partition(", ")
    switches, broken = FOUND[bug]

    assert f"`{BUGS[name].breaks}`" in broken
    assert part or sorted(switches) == sorted(BUGS[name].quirks)


def test_bugs_without_a_model_share_one() -> None:
    """A bug of the table that no model is named after stands with one that has a model."""
    unnamed = {bug: FOUND[bug] for bug in FOUND if bug not in BUGS}

    assert unnamed.keys() == {"B7", "B17"}
    assert all(found in [FOUND[bug] for bug in BUGS if bug in FOUND] for found in unnamed.values())
