"""What Kafka's share coordinator itself answered: replayed, and compared in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharestate.coordinator import COORDINATOR_4_2, COORDINATOR_4_3, COORDINATOR_4_4, CoordinatorProfile
from tests.support.coordinator_data import DATA, RECORDINGS, comparable, differences, exchanges
from tests.support.coordinator_peer import CoordinatorPeer

RELEASES = {"4.2.1": COORDINATOR_4_2, "4.3.1": COORDINATOR_4_3, "4.4.0": COORDINATOR_4_4}


def test_all_recordings_are_here() -> None:
    """There are 41 of random requests and 39 of Kafka's own tests (tests/data/README.md)."""
    assert len(RECORDINGS) == 41 + 39


@pytest.mark.parametrize(("kafka", "profile"), RELEASES.items(), ids=RELEASES)
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: file.stem)
def test_we_answer_as_kafka_did(recording: Path, kafka: str, profile: CoordinatorProfile) -> None:
    """Every answer, record, byte and state comes out as it did in Kafka."""
    peer = CoordinatorPeer(profile)
    for number, (request, response) in enumerate(exchanges(recording, kafka)):
        assert comparable(peer.ask(request)) == comparable(response), (number, request)


@pytest.mark.parametrize("kafka", ["4.2.1", "4.4.0"])
def test_every_difference_is_of_a_recording(kafka: str) -> None:
    """What another release has answered otherwise belongs to a request that is recorded."""
    recorded = {
        (recording.stem, number) for recording in RECORDINGS for number, _ in enumerate(exchanges(recording, "4.3.1"))
    }

    assert differences(kafka).keys() <= recorded
    assert differences(kafka)


def test_a_request_that_kafka_never_answers_is_refused() -> None:
    """A reversed state batch, for which Kafka 4.2.1 and 4.3.1 loop for ever, is an invalid request to each release."""
    (recording,) = DATA.glob("found/*.jsonl")
    *before, (request, silence) = exchanges(recording, "4.3.1")
    assert silence is None
    for profile in RELEASES.values():
        peer = CoordinatorPeer(profile)
        assert [peer.ask(earlier) for earlier, _ in before] == [response for _, response in before]
        (result,) = peer.ask(request)["result"]
        assert result["error"] == "INVALID_REQUEST"


def test_every_divergence_is_documented() -> None:
    """The page has what Kafka does in each case that is answered otherwise on purpose."""
    page = (DATA.parents[2] / "docs" / "coordinator.md").read_text()
    content = json.loads((DATA / "divergences.json").read_text())

    assert content["coordinator_divergences"] == 1
    assert [row["id"] for row in content["rows"] if row["kafka"] not in page] == []
