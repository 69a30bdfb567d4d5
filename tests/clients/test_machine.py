"""The kit of `sharestate.testing.groups` at clients' door: through the socket of the test broker, nothing is found."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_3, KAFKA_4_4, Profile
from tests.clients.confluent_machine import ConfluentMachine, Office
from tests.clients.wire_machine import WireMachine
from tests.support.failover_runs import TIMES
from tests.support.node_machine import ALLOWANCES

pytestmark = pytest.mark.clients

STEPS = 40
"""Events of a run."""


def wire_machine(profile: Profile) -> type[WireMachine]:
    """Return a machine of a broker by the rules of a release, or healed ones; its runs are counted from 0."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else (), "runs": 0}
    return type("TheMachine", (WireMachine,), fields)


def confluent_runs(office: Office, profile: Profile, count: int) -> Iterator[int]:
    """Let clients live, each time otherwise, and say which run comes next; what becomes of clients is not for Hypothesis, who wants the same thing to happen again."""
    machine_type = type("TheMachine", (ConfluentMachine,), {"profile": profile, "office": office, "runs": 0})
    for seed in range(count):
        yield seed
        pick = Random(seed).choice
        machine = machine_type()
        try:
            machine.pick_kinds(pick)
            machine.group_starts(machine.pick_settings(pick), pick((1, 2, 3)))
            for _ in range(STEPS):
                machine.happens(machine.pick_event(pick))
        finally:
            machine.teardown()


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4, KAFKA_4_4.healed], ids=lambda profile: f"ours-{profile.name}")
def test_requests_by_hand(profile: Profile) -> None:
    """Whatever members, producers and leaders ask over the wire, every guarantee holds."""
    machine = wire_machine(profile)
    machine.TestCase.settings = settings(max_examples=30 * TIMES, stateful_step_count=STEPS, deadline=None)

    machine.TestCase().runTest()


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4], ids=lambda profile: f"ours-{profile.name}")
def test_clients_of_librdkafka(profile: Profile) -> None:
    """Whatever librdkafka's consumers, producers and administrators do, every guarantee holds."""
    with Office(profile) as office:
        runs = [*confluent_runs(office, profile, 20 * TIMES)]

    assert len(runs) == 20 * TIMES
