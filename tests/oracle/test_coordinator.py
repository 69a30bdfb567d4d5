"""A short search for differences from Kafka's share coordinator, for each release whose rules the library has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_4_4
from tests.oracle.build import RELEASES, Oracle, OracleUnavailableError
from tests.oracle.coordinator.search import DRIVER, coordinator, difference, profile_of, search, write
from tests.oracle.coordinator.sequences import LENGTH, Sequence
from tests.oracle.search.kafka import Kafka

OPERATIONS = 20_000


@pytest.fixture
def built(request: pytest.FixtureRequest) -> Oracle:
    """Kafka's share coordinator, of the release that is the parameter."""
    try:
        return coordinator(request.param)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("built", RELEASES, indirect=True)
def test_a_short_search_finds_no_difference(built: Oracle, tmp_path: Path) -> None:
    """Random requests are answered as Kafka answers them, with the same records and the same state."""
    with Kafka(built.command(DRIVER), tmp_path / "log") as kafka:
        compared, finding = search(kafka, profile_of(built.kafka), operations=OPERATIONS, seed=0)

    assert finding is None
    assert compared >= OPERATIONS


@pytest.mark.oracle
@pytest.mark.parametrize("built", ["4.3.1"], indirect=True)
def test_a_rule_of_another_release_is_found_and_made_small(built: Oracle, tmp_path: Path) -> None:
    """With the rules of 4.4 the library differs from 4.3.1 soon, in a conversation of a few requests."""
    with Kafka(built.command(DRIVER), tmp_path / "log") as kafka:
        _, finding = search(kafka, COORDINATOR_4_4, operations=OPERATIONS, seed=0)
        assert finding is not None
        assert len(finding.exchanges) <= 5
        assert difference(kafka, COORDINATOR_4_3, [request for request, _ in finding.exchanges]) is None

    file = tmp_path / "found.jsonl"
    write(finding, built.kafka, file)
    header, *rows = map(json.loads, file.read_text().splitlines())
    assert header["source"] == "Kafka 4.3.1 ShareCoordinatorShard"
    assert [(row["request"], row["response"]) for row in rows] == list(finding.exchanges)


def test_a_number_stands_for_the_same_requests() -> None:
    """A sequence is the same every time, opens a coordinator first and shows everything at the end."""
    first, again, other = (Sequence(number).requests() for number in (7, 7, 8))

    assert first == again
    assert first != other
    assert (first[0]["op"], first[-1]["op"], len(first)) == ("open", "state", LENGTH + 2)
