"""A short search for differences from Kafka's share coordinator, for each release whose rules the library has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.conversation import CoordinatorConversation, Level, ReplayVerdict, replay
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import RELEASES, OracleUnavailableError
from tests.oracle.coordinator.search import Task, search, task_of, write
from tests.oracle.coordinator.sequences import LENGTH, Sequence
from tests.support.coordinator_data import REPEATED, exchanges

OPERATIONS = 20_000


@pytest.fixture
def task(request: pytest.FixtureRequest) -> Task:
    """What searches beside Kafka's share coordinator, of the release that is the parameter."""
    try:
        return task_of(request.param)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("task", RELEASES, indirect=True)
def test_a_short_search_finds_no_difference(task: Task) -> None:
    """Random requests are answered as Kafka answers them, with the same records and the same state."""
    compared, finding = search(task, operations=OPERATIONS)

    assert finding is None
    assert compared >= OPERATIONS


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.2.1", *RELEASES], indirect=True)
def test_a_release_starts_anew_when_an_initialization_comes_again(task: Task) -> None:
    """C2 is answered by every release as it was recorded, record by record and byte by byte."""
    recorded = [*exchanges(REPEATED, "4.3.1")]
    with CommandPeer(task.command) as kafka:
        answers = [kafka(request) for request, _ in recorded]

    assert answers == [response for _, response in recorded]


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.3.1"], indirect=True)
def test_a_rule_of_another_release_is_found_and_made_small(task: Task, tmp_path: Path) -> None:
    """With the rules of 4.4 the library differs from 4.3.1 soon, in a conversation of a few requests."""
    _, finding = search(evolve(task, profile=COORDINATOR_4_4), operations=OPERATIONS)
    assert finding is not None
    assert len(finding.exchanges) <= 5

    file = tmp_path / "found.jsonl"
    write(finding, "4.3.1", file)
    assert replay(file, KAFKA_4_4, Level.FULL).verdict is ReplayVerdict.FAILED
    assert replay(file, KAFKA_4_3, Level.FULL).verdict is ReplayVerdict.PASSED


@pytest.mark.oracle
@pytest.mark.parametrize("task", ["4.3.1"], indirect=True)
def test_a_planted_change_is_found(task: Task) -> None:
    """With a change planted, a search stops; the conversation shows it, and without the change it shows nothing."""
    _, finding = search(evolve(task, plants=("hashes_have_no_sign",)), operations=OPERATIONS)

    assert finding is not None
    conversation = CoordinatorConversation(COORDINATOR_4_3)
    answered = [conversation.answer(request, 1) for request, _ in finding.exchanges]
    assert answered == [response for _, response in finding.exchanges]
    assert finding.ours != answered[-1]


def test_a_number_stands_for_the_same_requests() -> None:
    """A sequence is the same every time, opens a coordinator first and shows everything at the end."""
    first, again, other = (Sequence(number).requests() for number in (7, 7, 8))

    assert first == again
    assert first != other
    assert (first[0]["op"], first[-1]["op"], len(first)) == ("open", "state", LENGTH + 2)
