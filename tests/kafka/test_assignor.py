"""What Kafka's assignor itself answered: replayed, and compared in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import PROFILES, Profile
from sharestate.conversation import AssignorConversation, Level, ReplayVerdict, replay

DATA: Final = Path(__file__).parents[1] / "data" / "coordinator"
RECORDINGS: Final = (DATA / "assignor.jsonl", DATA / "assignor-tests.jsonl", DATA / "assignor-found.jsonl")


def exchanges(file: Path) -> list[Any]:
    """Return the requests of a recording with their responses."""
    return [json.loads(line) for line in file.read_text().splitlines()[1:]]


def test_all_recordings_are_here() -> None:
    """There are 150 requests, 11 of Kafka's own tests, and one that a search has found (tests/data/README.md)."""
    assert [len(exchanges(file)) for file in RECORDINGS] == [150, 11, 1]


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_we_answer_as_kafka_did(file: Path, profile: Profile) -> None:
    """Each target and each numbering comes out as it did in Kafka, whatever the profile."""
    outcome = replay(file, profile, Level.FULL)

    assert (outcome.verdict, outcome.deviation) == (ReplayVerdict.PASSED, None)


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
def test_another_answer_is_a_difference(file: Path, tmp_path: Path) -> None:
    """A recording in which a member has one partition more does not pass."""
    header, first, *rest = file.read_text().splitlines()
    step = json.loads(first)
    members = step["response"]["result"]["members"]
    next(iter(members.values()))["AAECAwQFBgcICQoLDA0ODw"] = [7]
    changed = tmp_path / file.name
    changed.write_text("\n".join([header, json.dumps(step), *rest]))

    outcome = replay(changed, PROFILES["kafka-4.4"], Level.ANSWERS)

    assert outcome.verdict is ReplayVerdict.FAILED
    assert outcome.deviation is not None
    assert outcome.deviation.line == 2


def test_the_recordings_tell_javas_order_from_that_of_the_request() -> None:
    """Asked in the other order, many requests are answered otherwise, so the recordings say something about Java's."""
    conversation = AssignorConversation()
    of_java = [step for step in exchanges(RECORDINGS[0]) if step["request"]["order"] == "hash"]
    others = [
        step
        for step in of_java
        if conversation.answer({**step["request"], "order": "given"}, 1)["result"] != step["response"]["result"]
    ]

    assert len(others) > len(of_java) / 2
