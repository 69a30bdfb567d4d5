"""A node as its members see it: nothing is found, whatever becomes of connections and fetches that wait."""

from __future__ import annotations

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, Profile
from tests.support.failover_runs import TIMES
from tests.support.node_machine import NodeMachine, UnwrittenMachine, machine_of

RUNS = 40
"""How many of each: seconds together. `make members` has 72 times as many, 20,000. [runs]"""


@pytest.mark.parametrize(
    ("machine", "profile"),
    [
        (NodeMachine, KAFKA_4_2),
        (NodeMachine, KAFKA_4_3),
        (NodeMachine, KAFKA_4_4),
        (NodeMachine, KAFKA_4_4.healed),
        (NodeMachine, KIP_932),
        (UnwrittenMachine, KAFKA_4_4),
        (UnwrittenMachine, KAFKA_4_4.healed),
    ],
    ids=lambda value: getattr(value, "name", None) or value.__name__,
)
def test_members_get_what_they_may_expect(machine: type[NodeMachine], profile: Profile) -> None:
    """Whatever members, producers and leaders do, every guarantee holds at each partition; only releases may stall."""
    test = machine_of(machine, profile).TestCase
    test.settings = settings(max_examples=RUNS * TIMES, stateful_step_count=40)

    test().runTest()
