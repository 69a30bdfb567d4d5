"""A short search for differences from Kafka's share sessions, for each release whose rules the library has."""

from __future__ import annotations

import json
import os

import pytest
from attrs import evolve

from sharestate.broker.sessions import SESSIONS_4_3
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import RELEASES, OracleUnavailableError
from tests.oracle.coordinator.search import Task, search, task_of
from tests.oracle.sessions.search import SESSIONS
from tests.oracle.sessions.sequences import Sequence
from tests.support.session_data import RECORDINGS, exchanges

OPERATIONS = 20_000


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Task:
    """What searches beside Kafka's share sessions, of the release that is the parameter."""
    try:
        return task_of(request.param, SESSIONS)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.2.1", *RELEASES], indirect=True)
def test_a_short_search_finds_no_difference(task: Task) -> None:
    """Random requests are answered as Kafka answers them, with the same events and the same state."""
    compared, finding = search(task, operations=OPERATIONS)

    assert finding is None
    assert compared >= OPERATIONS


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.2.1", *RELEASES], indirect=True)
def test_kafka_answers_the_recordings_again(task: Task) -> None:
    """Every release gives the answers that were recorded of 4.3.1 and 4.4.0."""
    recorded = [exchange for recording in RECORDINGS for exchange in exchanges(recording)]
    with CommandPeer(task.command) as kafka:
        kafka.ask([json.dumps(request) for request, _ in recorded])
        answers = [json.loads(kafka.response()) for _ in recorded]

    assert answers == [response for _, response in recorded]


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.3.1"], indirect=True)
@pytest.mark.parametrize("quirk", [quirk for quirk in SESSIONS_4_3.quirks if quirk.value <= "S4"])
def test_a_healed_bug_is_found_and_made_small(task: Task, quirk: object) -> None:
    """Without one of Kafka's bugs the library differs soon, in a conversation of a few requests."""
    healed = evolve(SESSIONS_4_3, quirks=SESSIONS_4_3.quirks - {quirk})

    _, finding = search(evolve(task, profile=healed), operations=OPERATIONS)

    assert finding is not None
    assert len(finding.exchanges) <= 8


def test_a_number_stands_for_the_same_requests() -> None:
    """A sequence is the same every time, opens sessions first and shows everything at the end."""
    first, again, other = (Sequence(number).requests() for number in (7, 7, 8))

    assert first == again
    assert first != other
    assert (first[0]["op"], first[-1]["op"]) == ("open", "state")
