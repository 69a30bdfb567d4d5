"""A short search for differences from Kafka's group coordinator, for each release whose rules the library has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.broker.groups import GROUPS_4_3
from sharestate.conversation import Level, ReplayVerdict, replay
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import RELEASES, OracleUnavailableError
from tests.oracle.coordinator.search import Task, search, task_of, write
from tests.oracle.groups.search import GROUPS
from tests.oracle.groups.sequences import Sequence
from tests.support.group_data import DATA, exchanges

OPERATIONS = 4_000


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Task:
    """What searches beside Kafka's group coordinator, of the release that is the parameter."""
    try:
        return task_of(request.param, GROUPS)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.2.1", *RELEASES], indirect=True)
def test_a_short_search_finds_no_difference(task: Task) -> None:
    """Random requests are answered as Kafka answers them, with the same records and the same state."""
    compared, finding = search(task, operations=OPERATIONS)

    assert finding is None
    assert compared >= OPERATIONS


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("task", "release"), [(kafka, kafka) for kafka in ("4.2.1", "4.3.1", "4.4.0")], indirect=["task"]
)
def test_kafka_answers_the_recordings_again(task: Task, release: str) -> None:
    """A release gives the answers that were recorded of it, byte by byte."""
    recorded = [exchange for recording in sorted(DATA.glob(f"{release}/*.jsonl")) for exchange in exchanges(recording)]
    with CommandPeer(task.command) as kafka:
        kafka.ask([json.dumps(request) for request, _ in recorded])
        answers = [json.loads(kafka.response()) for _ in recorded]

    assert answers == [response for _, response in recorded]


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.4.0"], indirect=True)
def test_a_rule_of_another_release_is_found_and_made_small(task: Task, tmp_path: Path) -> None:
    """With the rules of 4.3 the library differs from 4.4.0 soon, in a conversation of a few requests."""
    _, finding = search(evolve(task, profile=GROUPS_4_3), operations=OPERATIONS)
    assert finding is not None
    assert len(finding.exchanges) <= 5

    file = tmp_path / "found.jsonl"
    write(finding, "4.4.0", file, GROUPS.recorded)
    assert replay(file, KAFKA_4_3, Level.FULL).verdict is ReplayVerdict.FAILED
    assert replay(file, KAFKA_4_4, Level.FULL).verdict is ReplayVerdict.PASSED


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.4.0"], indirect=True)
def test_a_planted_change_is_found(task: Task) -> None:
    """With a change planted a search stops, at a conversation of a few requests."""
    _, finding = search(evolve(task, plants=("sessions_last_a_millisecond_longer",)), operations=OPERATIONS)

    assert finding is not None
    assert len(finding.exchanges) <= 8


def test_a_number_stands_for_the_same_requests() -> None:
    """A sequence is the same every time, opens a coordinator first and shows everything at the end."""
    first, again, other = (Sequence(number).requests() for number in (7, 7, 8))

    assert first == again
    assert first != other
    assert (first[0]["op"], first[-1]["op"]) == ("open", "state")
