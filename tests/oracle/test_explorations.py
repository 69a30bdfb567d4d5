"""Kafka's own class has the bugs that explorations find."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_4
from sharestate.json_lines import read_json, write_json
from sharestate.testing import InProcessServer
from sharestate.testing.explore import explore
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import Oracle
from tests.support.explorations import BUGS

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("oracle", ["4.4.0"], indirect=True)
def test_kafka_answers_the_conversations(oracle: Oracle) -> None:
    """Kafka answers the conversation of each bug like the library with its bugs; without them it is another one."""
    wrong, healed = [], set()
    with CommandPeer(oracle.command()) as kafka:
        for name, bug in BUGS.items():
            found = explore(bug.configuration, bug.profile).counterexample
            assert found is not None
            kafka.ask([write_json(request) for request in found.conversation])
            ours, without = InProcessServer(KAFKA_4_4), InProcessServer(KAFKA_4_4.healed)
            for number, request in enumerate(found.conversation):
                answer, expected = read_json(kafka.response()), ours(request)
                wrong += [f"{name}:{number}"] if answer != expected else []
                if answer != without(request):
                    healed.add(name)

    assert wrong == []
    assert healed == BUGS.keys()
