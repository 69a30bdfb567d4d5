"""A node as its members see it: nothing is found, whatever becomes of connections and fetches that wait."""

from __future__ import annotations

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, Profile
from sharestate.testing.groups import GroupSettings, Guarantee, GuaranteeBrokenError
from sharestate.testing.programs import Event
from tests.support.failover_runs import TIMES
from tests.support.node_machine import ALLOWANCES, NodeMachine, UnwrittenMachine, machine_of

RUNS = 40
"""How many of each: seconds together. `make members` has 72 times as many, 20,000. [runs]"""

LEFT_BELOW_LOG_START: tuple[Event, ...] = (
    ("at", 0, "member_waits", "m10", 2),  # and holds record 0, a log batch
    ("at", 0, "producer_sends", 300, None),  # 1-300, a log batch
    ("at", 0, "records_are_deleted", 176),
    ("at", 1, "every_member_fetches", 3),  # m1 gets 1-3 (B6), and 4-300 stay available
)
"""What leads to F8."""


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


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
def test_a_record_left_below_the_log_start_stalls_releases(profile: Profile) -> None:
    """Nobody gets what a log batch has above the log start, of which a member has got some below: F8, and no other."""
    strict = machine_of(UnwrittenMachine, profile)()
    strict.allowances = ()  # type: ignore[misc]  # of this one
    with pytest.raises(GuaranteeBrokenError) as broken:
        live(strict)
    live(machine_of(UnwrittenMachine, profile)())

    assert (broken.value.guarantee, broken.value.offset) == (Guarantee.NOTHING_LOST, 176)
    assert [row.bug for row in ALLOWANCES if row.applies(strict)] == ["F8"]


@pytest.mark.parametrize("profile", [KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
def test_no_record_is_left_below_the_log_start_of_healed_profiles(profile: Profile) -> None:
    """Members get all that is left, and no bug is excused."""
    machine = machine_of(UnwrittenMachine, profile)()
    live(machine)

    assert not any(row.applies(machine) for row in ALLOWANCES)


def live(machine: NodeMachine) -> None:
    """Let a group live through what leads to F8, to the end."""
    machine.group_starts(settings=GroupSettings(max_record_locks=200, lock_duration_ms=1_000), count=1)
    for event in LEFT_BELOW_LOG_START:
        machine.happens(event=event)
    machine.teardown()
