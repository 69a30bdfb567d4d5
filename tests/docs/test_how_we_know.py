"""What is said of Kafka's bugs can be shown."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from generate.how_we_know import DATA
from sharestate import KAFKA_4_3
from sharestate.conversation.levels import Level
from sharestate.conversation.replaying import Verdict, replay

ROWS: Final[list[dict[str, Any]]] = json.loads((DATA / "kafka-bugs.json").read_text())["rows"]
FOUND: Final = [row for row in ROWS if row["found"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_each_bug_has_its_conversation(row: dict[str, Any]) -> None:
    """It is among the recordings, which Kafka has answered."""
    assert (DATA / row["conversation"]).is_file()
    assert row["conversation"].startswith("vectors/")


@pytest.mark.parametrize("row", FOUND, ids=lambda row: row["id"])
def test_what_was_found_here_is_shown_by_the_library_too(row: dict[str, Any]) -> None:
    """The profile of the release answers what the release answers."""
    outcome = replay(DATA / row["conversation"], KAFKA_4_3, Level.FULL)

    assert outcome.verdict is Verdict.PASSED, outcome


def test_what_was_found_here_is_among_the_recordings_of_what_was_found() -> None:
    """Every recording is told of, and every one that is told of is there."""
    assert {row["conversation"] for row in FOUND} == {
        f"vectors/found/{file.name}" for file in DATA.glob("vectors/found/*.jsonl")
    }
