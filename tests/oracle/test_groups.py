"""Kafka's own group coordinator, of each release whose rules the library has."""

from __future__ import annotations

import json
import os

import pytest

from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import OracleUnavailableError, build
from tests.oracle.groups.search import GROUPS
from tests.support.group_data import DATA, exchanges


@pytest.fixture
def command(request: pytest.FixtureRequest) -> list[str]:
    """What runs Kafka's group coordinator, of the release that is the parameter."""
    try:
        return build(request.param, sources="groups").command(GROUPS.driver)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("command", "release"), [(kafka, kafka) for kafka in ("4.2.1", "4.3.1", "4.4.0")], indirect=["command"]
)
def test_kafka_answers_the_recordings_again(command: list[str], release: str) -> None:
    """A release gives the answers that were recorded of it, byte by byte."""
    recorded = [exchange for recording in sorted(DATA.glob(f"{release}/*.jsonl")) for exchange in exchanges(recording)]
    with CommandPeer(command) as kafka:
        kafka.ask([json.dumps(request) for request, _ in recorded])
        answers = [json.loads(kafka.response()) for _ in recorded]

    assert answers == [response for _, response in recorded]
