"""The kit of `sharestate.testing.groups` at clients' door: through the socket of the test broker, nothing is found."""

from __future__ import annotations

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_3, KAFKA_4_4, Profile
from tests.clients.wire_machine import BrokerMachine, WireMachine
from tests.support.failover_runs import TIMES
from tests.support.node_machine import ALLOWANCES

pytestmark = pytest.mark.clients


def machine_of(machine: type[BrokerMachine], profile: Profile) -> type[BrokerMachine]:
    """Return a machine of a broker by the rules of a release, or healed ones; its runs are counted from 0."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else (), "runs": 0}
    return type(machine.__name__, (machine,), fields)


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4, KAFKA_4_4.healed], ids=lambda profile: f"ours-{profile.name}")
def test_requests_by_hand(profile: Profile) -> None:
    """Whatever members, producers and leaders ask over the wire, every guarantee holds."""
    machine = machine_of(WireMachine, profile)
    machine.TestCase.settings = settings(max_examples=30 * TIMES, stateful_step_count=40, deadline=None)

    machine.TestCase().runTest()
