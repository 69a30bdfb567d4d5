"""Each thing that must hold is seen not to hold where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_4
from sharestate.testing.explore.expansion import steps
from sharestate.testing.explore.properties import ALWAYS, contradictions
from sharestate.testing.explore.steps import ExploredGroup
from sharestate.values.records import AcquiredRecords
from tests.support.explorations import ACCEPT, configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from sharestate.testing.explore import ExploredState, Step

AROUND: Final = ExploredGroup(configuration=configuration((0, 0), types=ACCEPT), profile=KAFKA_4_4.healed)
ACQUIRED: Final = AcquiredRecords(0, 0, 1)


def walk() -> list[Step]:
    """Return the steps in which a record is fetched, accepted, and passed."""
    walked = [AROUND.begin()]
    for kind in ("fetch", "acknowledge", "succeed"):
        walked.append(next(step for _, step in steps(AROUND, walked[-1].after) if step.event.kind == kind))
    return walked


def accepted_again(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step that delivers what was accepted."""
    return before._replace(confirmed=frozenset({0})), step._replace(acquired=(ACQUIRED._replace(first_offset=0),))


def too_often(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step that delivers a record for the third time."""
    return before, step._replace(acquired=(AcquiredRecords(1, 1, 3),))


def lost(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step in which the SPSO passes what nobody has done."""
    return before, step._replace(after=step.after._replace(finished=frozenset()))


def below(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step that delivers what lies below the SPSO."""
    return before, step._replace(acquired=(ACQUIRED,))


def back(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step in which the SPSO moves back."""
    return before._replace(leader=evolve(before.leader, start_offset=9)), step


def miscounted(before: ExploredState, step: Step) -> tuple[ExploredState, Step]:
    """Return a step after which the count is wrong."""
    return before, step._replace(after=step.after._replace(leader=evolve(step.after.leader, delivery_complete_count=5)))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("accepted is final", accepted_again),
        ("delivery limit", too_often),
        ("nothing is lost", lost),
        ("nothing below the SPSO", below),
        ("the SPSO moves on", back),
        ("complete count", miscounted),
    ],
)
def test_sees_what_does_not_hold(name: str, spoil: Callable[[ExploredState, Step], tuple[ExploredState, Step]]) -> None:
    """What must hold holds in a step, and does not once the step is spoiled."""
    walked = walk()
    before, step = walked[-2].after, walked[-1]
    assert not list(contradictions(AROUND, before, step))
    assert name in {each.name for each in contradictions(AROUND, *spoil(before, step))}


def test_each_has_a_test() -> None:
    """Everything that must always hold is among those above."""
    (mark,) = test_sees_what_does_not_hold.pytestmark  # type: ignore[attr-defined]
    assert {name for name, _ in mark.args[1]} == {each.name for each in ALWAYS}
