"""The page about assignment has what code and recordings have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from sharestate.broker import groups
from sharestate.broker.groups import read_assignment_input
from sharestate.broker.groups.assignment_json import MAX_MEMBERS, MAX_PARTITIONS, MAX_SUBSCRIPTIONS
from sharestate.conversation import AssignorConversation, BadRequestError
from sharestate.errors import MalformedInputError, ShareStateError

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "assignment.md").read_text()
PACKAGE: Final = Path(groups.__file__).parent  # what is tested, which may be a wheel


def fields(heading: str) -> set[str]:
    """Return the fields that the table below a heading has."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def allowed(refusal: pytest.ExceptionInfo[ShareStateError]) -> set[str]:
    """Return the fields that an object may have, as the refusal of another one lists them."""
    return set(re.findall(r"\w+", str(refusal.value.message).partition("expected one of ")[2])) - {"comment"}


def test_the_fields_of_a_file_are_on_the_page() -> None:
    """All of them, and no others."""
    with pytest.raises(MalformedInputError) as refusal:
        read_assignment_input({"assignment": 1, "unknown": 0})

    assert fields("On the command line") == allowed(refusal)


def test_the_fields_of_a_request_are_on_the_page() -> None:
    """Those of a file but for its version, its operation, and two more."""
    with pytest.raises(BadRequestError) as refusal:
        AssignorConversation().answer({"op": "assign", "unknown": 0}, 1)

    of_file = fields("On the command line") - {"assignment"}
    assert of_file | fields("The line protocol") | {"op"} == allowed(refusal)


def test_the_rules_that_code_cites_are_on_the_page() -> None:
    """Each has its number and an anchor, and each number that stands in the code is that of a rule."""
    numbers = re.findall(r"^\*\*(A\d+)\. ", PAGE, re.MULTILINE)
    code = "".join(file.read_text() for file in PACKAGE.glob("*.py"))

    assert numbers == [f"A{number}" for number in range(1, len(numbers) + 1)]
    assert re.findall(r"^\(rule-(a\d+)\)=$", PAGE, re.MULTILINE) == [number.lower() for number in numbers]
    cited = {
        number
        for rules in re.findall(r"\brules? (A\d+(?:(?: to |, | and )A\d+)*)", code)
        for number in re.findall(r"A\d+", rules)
    }
    assert cited <= set(numbers)
    assert cited >= set(numbers) - {"A13"}


def test_the_limits_are_those_of_the_code() -> None:
    """As the page says them."""
    assert f"may have {MAX_MEMBERS} members, and topics of {MAX_PARTITIONS} partitions" in PAGE
    assert f"members may have {MAX_SUBSCRIPTIONS} topics together" in PAGE
