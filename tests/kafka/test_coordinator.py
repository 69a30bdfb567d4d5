"""What Kafka's share coordinator itself answered: replayed, and compared in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.conversation import CoordinatorConversation, Level, ReplayVerdict, open_trace, replay, write_trace
from sharestate.coordinator import COORDINATOR_PROFILES, CoordinatorProfile
from tests.support.coordinator_data import DATA, RECORDINGS, differences, exchanges

RELEASES = {"4.2.1": KAFKA_4_2, "4.3.1": KAFKA_4_3, "4.4.0": KAFKA_4_4}


def test_all_recordings_are_here() -> None:
    """There are 41 of random requests, one of errors, 39 of Kafka's own tests, and a bug (tests/data/README.md)."""
    assert len(RECORDINGS) == 41 + 1 + 39 + 1


@pytest.mark.parametrize(("kafka", "profile"), RELEASES.items(), ids=RELEASES)
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: file.stem)
def test_we_answer_as_kafka_did(recording: Path, kafka: str, profile: Profile, tmp_path: Path) -> None:
    """Every answer, record, byte and state comes out as it did in Kafka."""
    with open_trace(recording) as trace:
        header = trace.header
    trace_file = tmp_path / recording.name
    with trace_file.open("w") as stream:
        write_trace(stream, header, exchanges(recording, kafka))

    outcome = replay(trace_file, profile, Level.FULL)

    assert (outcome.verdict, outcome.deviation) == (ReplayVerdict.PASSED, None)


@pytest.mark.parametrize("kafka", ["4.2.1", "4.4.0"])
def test_every_difference_is_of_a_recording(kafka: str) -> None:
    """What another release has answered otherwise belongs to a request that is recorded."""
    recorded = {
        (recording.stem, number) for recording in RECORDINGS for number, _ in enumerate(exchanges(recording, "4.3.1"))
    }

    assert differences(kafka).keys() <= recorded
    assert differences(kafka)


@pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=lambda profile: profile.name)
def test_a_request_that_kafka_never_answers_is_refused(profile: CoordinatorProfile) -> None:
    """A reversed state batch, for which Kafka 4.2.1 and 4.3.1 loop for ever, is an invalid request to each release."""
    *before, (request, silence) = exchanges(DATA / "found/reversed-batch.jsonl", "4.3.1")
    conversation = CoordinatorConversation(profile)

    assert silence is None
    assert [conversation.answer(earlier, 1) for earlier, _ in before] == [response for _, response in before]
    (result,) = conversation.answer(request, 1)["result"]
    assert result["error"] == "INVALID_REQUEST"


def test_every_divergence_is_documented() -> None:
    """The page has what Kafka does in each case that is answered otherwise on purpose."""
    page = (DATA.parents[2] / "docs" / "coordinator.md").read_text()
    content = json.loads((DATA / "divergences.json").read_text())

    assert content["coordinator_divergences"] == 1
    assert [row["id"] for row in content["rows"] if row["kafka"] not in page] == []
