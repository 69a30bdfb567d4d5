"""Kafka's own class has the bugs that explorations find."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_4
from sharestate.json_lines import Json, read_json, write_json
from sharestate.testing import InProcessServer
from sharestate.testing.explore import explore
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import Oracle
from tests.support.explorations import BUGS

pytestmark = pytest.mark.oracle


def seen(answer: Json) -> str:
    """Return the state in an *answer*, without the mark that Kafka keeps on records archived outside a write."""
    return write_json(answer["state"]).replace('"t"]', '""]')


@pytest.mark.parametrize("oracle", ["4.4.0"], indirect=True)
def test_kafka_answers_the_conversations(oracle: Oracle) -> None:
    """
    Kafka comes to the states of the library with its bugs, by the conversation of each bug, and not to those without.

    Of locks with equal deadlines Kafka's timer chooses which expires first, so the order of events is not compared.
    """
    wrong, healed = [], set()
    with CommandPeer(oracle.command()) as kafka:
        for name, bug in BUGS.items():
            found = explore(bug.configuration, bug.profile).counterexample
            assert found is not None
            kafka.ask([write_json(request) for request in found.conversation])
            ours, without = InProcessServer(KAFKA_4_4), InProcessServer(KAFKA_4_4.healed)
            for number, request in enumerate(found.conversation):
                answer: Json = read_json(kafka.response())
                expected = ours(request)
                if (answer["result"], seen(answer)) != (expected["result"], seen(expected)):
                    wrong.append(f"{name}:{number}")
                if seen(answer) != seen(without(request)):
                    healed.add(name)

    assert wrong == []
    assert healed == BUGS.keys() - {"B10", "B15"}  # these two show in what does not follow
