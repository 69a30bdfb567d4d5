"""The kit of `sharestate.testing.groups` at clients' door: through the socket of the test broker, nothing is found."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.broker import Fault
from sharestate.testing.groups import GuaranteeBrokenError
from tests.clients.confluent_machine import ConfluentMachine, Office
from tests.clients.wire_machine import WireMachine
from tests.planted.nodes import NodeBug
from tests.planted.servers import ANSWERED_ONLY, MISUNDERSTOOD
from tests.support.failover_runs import TIMES
from tests.support.node_machine import ALLOWANCES
from tests.support.searches import error_of

pytestmark = pytest.mark.clients

STEPS: Final = 40
"""Events of a run."""

SOON: Final = 40
"""Runs in which a bug is found: four times as many as it takes. [runs]"""


def wire_machine(profile: Profile = KAFKA_4_4, **fields: Any) -> type[WireMachine]:  # noqa: ANN401 - as classes have them
    """Return a machine of a broker by the rules of a release, or healed ones; its runs are counted from 0."""
    allowances = ALLOWANCES if profile.quirks else ()
    return type("TheMachine", (WireMachine,), {"profile": profile, "allowances": allowances, "runs": 0, **fields})


def run(office: Office, seed: int) -> None:
    """
    Let clients live.

    Hypothesis wants the same thing to happen again, and which of two clients is first is not always the same: so what
    they do is drawn from a seed.
    """
    pick = Random(seed).choice  # noqa: S311 - a replayable sequence
    fields = {"profile": office.profile, "office": office, "number": seed}
    machine: ConfluentMachine = type("TheMachine", (ConfluentMachine,), fields)()
    try:
        machine.pick_kinds(pick)
        machine.group_starts(machine.pick_settings(pick), pick((1, 2, 3)))
        for _ in range(STEPS):
            machine.happens(machine.pick_event(pick))
    finally:
        machine.teardown()


def error_of_runs(office: Office) -> GuaranteeBrokenError | None:
    """Return what the first runs find."""
    try:
        for seed in range(SOON):
            run(office, seed)
    except GuaranteeBrokenError as error:
        return error
    return None


@pytest.mark.parametrize(
    "profile", [KAFKA_4_3, KAFKA_4_4, KAFKA_4_4.healed], ids=lambda profile: f"ours-{profile.name}"
)
def test_requests_by_hand(profile: Profile) -> None:
    """Whatever members, producers and leaders ask over the wire, every guarantee holds."""
    machine = wire_machine(profile)
    machine.TestCase.settings = settings(max_examples=30 * TIMES, stateful_step_count=STEPS, deadline=None)

    machine.TestCase().runTest()


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4], ids=lambda profile: f"ours-{profile.name}")
def test_clients_of_librdkafka(profile: Profile) -> None:
    """Whatever librdkafka's consumers and producers do, every guarantee holds."""
    with Office(profile) as office:
        for seed in range(20 * TIMES):
            run(office, seed)


@pytest.mark.parametrize("fault", ANSWERED_ONLY.values(), ids=[f"ours-{name}" for name in ANSWERED_ONLY])
def test_requests_by_hand_find_what_is_only_answered(fault: Fault) -> None:
    """A broker that answers a request without carrying it out is found."""
    # an answer that no session gets is found, too
    assert error_of(wire_machine(faults=[fault]), AssertionError, max_examples=SOON) is not None


@pytest.mark.parametrize("bug", MISUNDERSTOOD.values(), ids=[f"ours-{name}" for name in MISUNDERSTOOD])
def test_requests_by_hand_find_what_is_misunderstood(bug: NodeBug) -> None:
    """A broker that takes a request for another one is found."""
    with bug.planted():
        assert error_of(wire_machine(), AssertionError, max_examples=SOON) is not None


def test_clients_of_librdkafka_find_what_is_only_answered() -> None:
    """A broker that answers acknowledgements without carrying them out is found by clients, too."""
    with Office(KAFKA_4_4) as office, office.server.fault(ANSWERED_ONLY["acknowledgements"]):
        assert error_of_runs(office) is not None


@pytest.mark.parametrize("bug", MISUNDERSTOOD.values(), ids=[f"ours-{name}" for name in MISUNDERSTOOD])
def test_clients_of_librdkafka_find_what_is_misunderstood(bug: NodeBug) -> None:
    """A broker that takes a request for another one is found by clients, too."""
    with bug.planted(), Office(KAFKA_4_4) as office:
        assert error_of_runs(office) is not None
