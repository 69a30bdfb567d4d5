"""What Kafka's share sessions themselves answered: replayed, and compared in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.conversation import Level, ReplayVerdict, replay
from tests.support.session_data import RECORDINGS, exchanges

PROFILES = (KAFKA_4_2, KAFKA_4_3, KAFKA_4_4)


def test_all_recordings_are_here() -> None:
    """There are 60 of 4.3.1 and 40 of 4.4.0 (tests/data/README.md), with every operation."""
    assert len(RECORDINGS) == 60 + 40
    assert {request["op"] for recording in RECORDINGS for request, _ in exchanges(recording)} == {
        "open",
        "fetch",
        "respond",
        "size",
        "throttle",
        "acknowledge",
        "release",
        "disconnect",
        "jump",
        "disable",
        "state",
    }


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_we_answer_as_kafka_did(recording: Path, profile: Profile) -> None:
    """Every answer, event, size and state comes out as it did in Kafka; the releases answer alike."""
    outcome = replay(recording, profile, Level.FULL)

    assert (outcome.verdict, outcome.deviation) == (ReplayVerdict.PASSED, None)
