"""
States that are taken for the same are the same: whatever may follow one of them may follow the other.

`make explore` compares a thousand pairs of each group.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_2, KAFKA_4_4, KIP_932, Profile
from sharestate.testing.explore.expansion import steps
from sharestate.testing.explore.explored_state import digest
from sharestate.testing.explore.steps import ExploredGroup
from tests.support.explorations import BUGS, CROWDED, WITH_QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sharestate.testing.explore import Configuration, ExploredState

PAIRS: Final = 1000 if int(os.environ.get("SHARESTATE_TIMES", "1")) > 1 else 60

GROUPS: Final[Mapping[str, Configuration]] = {
    "crowded": CROWDED,
    "two leaders": BUGS["F5"].configuration,
    "compaction": BUGS["F6"].configuration,
    "queue": evolve(WITH_QUEUE, failovers=1, members=2),
    "transactions": BUGS["B22"].configuration,
}


def pairs(around: ExploredGroup, most: int) -> Iterator[tuple[ExploredState, ExploredState]]:
    """Yield states that differ and are taken for the same, the nearest ones first."""
    begin = around.begin().after
    first, met, to_do = {digest(begin): begin}, {begin}, [begin]
    for state in to_do:
        for _, step in steps(around, state):
            known = first.setdefault(digest(step.after), step.after)
            if known is step.after:
                to_do.append(known)
            elif step.after not in met:
                yield known, step.after
                most -= 1
                if not most:
                    return
            met.add(step.after)


def follows(around: ExploredGroup, state: ExploredState) -> set[tuple[str, bytes]]:
    """Return by what events which states follow *state*."""
    return {(step.event.kind, digest(step.after)) for _, step in steps(around, state)}


CASES: Final = [
    pytest.param(configuration, profile, id=f"{name} {profile.name}")
    for name, configuration in GROUPS.items()
    for profile in (KAFKA_4_4.healed, KAFKA_4_2, KIP_932)
    if profile.has_dead_letter_queue or not configuration.dead_letter_queue
]


@pytest.mark.parametrize(("configuration", "profile"), CASES)
def test_the_same_follows(configuration: Configuration, profile: Profile) -> None:
    """By the same kinds of events the same states follow states that are taken for the same."""
    around = ExploredGroup(configuration=configuration, profile=profile)
    seen = 0
    for one, other in pairs(around, PAIRS):
        assert follows(around, one) == follows(around, other)
        seen += 1
    assert seen > PAIRS // 2
