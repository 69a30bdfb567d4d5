"""The page of the TLA+ specification: it says of each bug of Kafka whether TLC finds it, as its models do."""

from __future__ import annotations

import re
from typing import Final

import pytest

from generate.data import read_rows
from generate.pages import DOCS
from tests.tla.models import BUGS, STALLS, BugModel
from tests.tla.tlc import SPECIFICATIONS

BUGS_OF_KAFKA: Final = {row["id"] for row in read_rows("kafka-bugs.json", "kafka_bugs")}

PAGE: Final = (DOCS / "tla.md").read_text().partition("\n## Kafka's bugs\n")[2].partition("\n## ")[0]

_QUIRKS: Final = re.compile(r"^ASSUME Quirks \\subseteq \{([^}]+)\}", re.MULTILINE)


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the table of so many columns, without its head."""
    table = re.findall("^[|]" + "([^|]+)[|]" * columns + "$", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row] for row in table[2:]]


def words(cell: str) -> set[str]:
    """Return the ids of a cell."""
    return {*cell.split(", ")}


FOUND: Final = [(words(bugs), words(quirks), module, broken) for bugs, quirks, module, broken in rows(4)]
"""For each row the bugs, what is switched on, the module, and what is broken."""

WITH_A_SWITCH: Final = {bug for bugs, *_ in FOUND for bug in bugs}

WITHOUT: Final = {bug for bugs, _ in rows(2) for bug in words(bugs)}

MODELS: Final = [*BUGS.items(), *STALLS.items()]


def rows_of(name: str, model: BugModel) -> list[str]:
    """Return what is broken by the rows that have a model's bug, quirks and module."""
    asked = (name.partition(", ")[0], {*model.quirks}, f"`{model.model.module}`")
    return [broken for bugs, quirks, module, broken in FOUND if asked[0] in bugs and (quirks, module) == asked[1:]]


def test_each_bug_of_kafka_is_a_switch_or_has_a_reason() -> None:
    """The two tables have all ids of the page of Kafka's bugs and no other, and none is in both."""
    assert WITH_A_SWITCH | WITHOUT == BUGS_OF_KAFKA
    assert not WITH_A_SWITCH & WITHOUT


def test_each_quirk_of_the_specification_is_found() -> None:
    """What a module can switch on is switched on in a row, and a row switches on nothing else."""
    quirks = [_QUIRKS.findall(module.read_text()) for module in sorted(SPECIFICATIONS.glob("*.tla"))]
    named = {name for texts in quirks for text in texts for name in re.findall(r'"([^"]+)"', text)}

    assert named == {quirk for _, switched_on, _, _ in FOUND for quirk in switched_on}


@pytest.mark.parametrize(("name", "model"), MODELS, ids=[f"{name} {model.breaks}" for name, model in MODELS])
def test_what_tlc_finds_is_on_the_page(name: str, model: BugModel) -> None:
    """Each model of a bug has a row, with what it breaks."""
    assert any(f"`{model.breaks}`" in broken for broken in rows_of(name, model))


def test_each_row_is_found_by_tlc() -> None:
    """What a row says to be broken is what a model of its bug has TLC find."""
    found = {(frozenset(each.quirks), each.model.module, each.breaks) for _, each in MODELS}
    said = {
        (frozenset(quirks), module.strip("`"), name)
        for _, quirks, module, broken in FOUND
        for name in re.findall("`([^`]+)`", broken)
    }

    assert said == found
