"""What Kafka's group coordinator itself answered about share groups: replayed, and compared in full."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.conversation import Level, ReplayVerdict, replay
from tests.support.group_data import RECORDINGS, exchanges

PROFILES: Final[dict[str, Profile]] = {"4.2.1": KAFKA_4_2, "4.3.1": KAFKA_4_3, "4.4.0": KAFKA_4_4}


def test_all_recordings_are_here() -> None:
    """There are some of each release (tests/data/README.md), with every operation."""
    assert Counter(recording.parent.name for recording in RECORDINGS) == {"4.2.1": 15, "4.3.1": 60, "4.4.0": 63}
    assert {request["op"] for recording in RECORDINGS for request, _ in exchanges(recording)} == {
        "open",
        "heartbeat",
        "initialized",
        "uninitialized",
        "metadata",
        "advance",
        "alter",
        "delete_offsets",
        "deleted_offsets",
        "delete_state",
        "delete_group",
        "describe",
        "reload",
        "state",
    }


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_we_answer_as_kafka_did(recording: Path) -> None:
    """Every answer, every record with its bytes, and every state comes out as it did in Kafka."""
    outcome = replay(recording, PROFILES[recording.parent.name], Level.FULL)

    assert (outcome.verdict, outcome.deviation) == (ReplayVerdict.PASSED, None)
