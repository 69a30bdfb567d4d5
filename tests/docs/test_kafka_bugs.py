"""What is said of Kafka's bugs can be shown."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from generate.citations import RULES
from generate.data import DATA, read_rows
from sharestate import KAFKA_4_3, Quirk
from sharestate.conversation.compare import Level
from sharestate.conversation.replay import ReplayVerdict, replay

ROWS: Final = read_rows("kafka-bugs.json", "kafka_bugs")
FIXED: Final = read_rows("kafka-bugs.json", "kafka_bugs", "fixed")
FOUND: Final = [row for row in ROWS if row["found"]]

KEEP_A_FLAG: Final = {"F4", "F6", "F7", "F8"}
"""Bugs in which records are archived: Kafka's class keeps flag ``t`` on them, the library does not."""


@pytest.mark.parametrize("row", [*ROWS, *FIXED], ids=lambda row: row["id"])
def test_the_conversation_of_a_bug_is_recorded(row: dict[str, Any]) -> None:
    """It is among the recordings, which Kafka has answered; bugs outside of the share partition have none."""
    if "conversation" in row:
        assert (DATA / row["conversation"]).is_file()
        prefixes = ("vectors/", "vectors-4.4/", "ours/kafka/", "coordinator/found/", "groups/")
        assert row["conversation"].startswith(prefixes)
    else:
        assert row["id"] in {"B11", "B12", "B19", "B20", "B21", "C3"}


@pytest.mark.parametrize("quirk", Quirk)
def test_every_quirk_is_a_bug_of_the_page(quirk: Quirk) -> None:
    """The page says of each quirk that profiles show it, by its name."""
    (row,) = [row for row in ROWS if row["id"] == quirk.value]

    assert f"`Quirk.{quirk.name}`" in row["profiles"]


def test_every_crash_that_is_not_copied_is_a_bug_of_the_page() -> None:
    """Each row of rule 24.2 that bears the id of a bug is on the page."""
    uncopied = {row["id"] for row in ROWS if "Copied by no profile" in row["profiles"]}
    bugs = re.findall(r"^\| (B\d+'?) \|", RULES.read_text().partition("### 24.2 ")[2], re.MULTILINE)

    assert bugs
    assert uncopied >= set(bugs)


@pytest.mark.parametrize("row", FOUND, ids=lambda row: row["id"])
def test_bugs_found_here_are_shown_by_the_library_too(row: dict[str, Any]) -> None:
    """The profile of the release answers what the release answers."""
    level = Level.OBSERVABLE if row["id"] in KEEP_A_FLAG else Level.FULL
    outcome = replay(DATA / row["conversation"], KAFKA_4_3, level)

    assert outcome.verdict is ReplayVerdict.PASSED, outcome


def test_bugs_found_here_are_those_with_a_recording() -> None:
    """Every recording is of a bug on the page, and each of these bugs has its recording."""
    assert {row["conversation"] for row in FOUND} == {
        f"vectors/found/{file.name}" for file in DATA.glob("vectors/found/*.jsonl")
    }
