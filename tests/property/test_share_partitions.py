"""The leader's side in the hands of an adversary: `SharePartitionMachine` finds nothing in this library."""

from __future__ import annotations

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, Profile
from sharestate.testing.protocol.record_oracle import rules_of
from tests.support.failover_runs import TIMES
from tests.support.partition_machine import LibraryMachine


@pytest.mark.parametrize("profile", [KAFKA_4_3.healed, KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
def test_nothing_is_found_in_the_library(profile: Profile) -> None:
    """Whatever becomes of its writes, a share partition does what the model of single records says."""
    fields = {"profile": profile, "follows": rules_of(profile)}
    machine: type[LibraryMachine] = type("LibraryMachine", (LibraryMachine,), fields)
    test = machine.TestCase
    test.settings = settings(max_examples=settings().max_examples * TIMES, stateful_step_count=40)

    test().runTest()


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
def test_a_copy_of_kafka_names_its_bugs(profile: Profile) -> None:
    """With Kafka's quirks nothing is found but these, and each run ends where one of them shows."""
    quirks = frozenset(quirk.value for quirk in profile.quirks)
    fields = {"profile": profile, "follows": rules_of(profile.healed), "copied_bugs": quirks}
    machine: type[LibraryMachine] = type("LibraryMachine", (LibraryMachine,), fields)
    test = machine.TestCase
    test.settings = settings(max_examples=settings().max_examples * TIMES * 2, stateful_step_count=40)

    test().runTest()
