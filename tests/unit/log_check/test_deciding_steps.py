"""Which steps decide what a fetch acquires or a write says: those are moved first."""

from __future__ import annotations

import pytest

from sharestate.log_check.deciding_steps import deciding_steps
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import What, schedule
from tests.support.hand_made_events import HandMadeLife


@pytest.mark.parametrize(
    ("observed", "computed", "expected"),
    [
        ([[0, 3, 1]], [[0, 9, 1]], ["m3"]),
        ([[0, 3, 1]], [[2, 9, 1]], ["m3"]),
        ([[0, 1, 1], [2, 3, 1]], [[0, 9, 1]], ["m3"]),
        ([[0, 3, 1]], [[0, 3, 2]], ["m2"]),
        ([], [[0, 3, 1]], ["m2"]),
        ([[0, 9, 1]], [[0, 9, 1]], []),
    ],
)
def test_where_a_fetch_has_left_records_another_one_had_them(
    observed: list[list[int]], computed: list[list[int]], expected: list[str]
) -> None:
    """It is the one that has acquired the first record that was computed and not observed, or not with that count."""
    life = HandMadeLife()
    life.fetches(20, 2, "m1", 1)
    life.fetches(30, 2, "m2", 1, (0, 3, 1))
    life.fetches(40, 2, "m3", 1, (4, 9, 1))
    steps = [step for step in schedule(enumerate(life.events)).steps if step.what is What.FETCH]

    found = deciding_steps(steps, 0, Mismatch("fetch", observed, computed))

    assert [steps[at].event.member_id for at in found] == expected


def test_where_a_fetch_has_got_records_those_that_had_them_came_later() -> None:
    """The nearest of them comes first; then those that make room, of which some are answers to writes after it."""
    life = HandMadeLife()
    life.fetches(10, 2, "m1", 1, (0, 3, 1))
    life.fetches(20, 2, "m2", 1, (0, 9, 1))
    life.fetches(30, 2, "m3", 1, (4, 9, 1))
    life.fetches(40, 2, "m4", 1, (0, 3, 1))
    life.writes(50, 101, (0, 0), (20, 23, 0, 1))
    steps = schedule(enumerate(life.events)).steps
    index = next(at for at, step in enumerate(steps) if step.event.member_id == "m4")

    found = [steps[at] for at in deciding_steps(steps, index, Mismatch("fetch", [[0, 3, 1]], []))]

    assert [step.event.member_id for step in found] == ["m2", "m1", None]
    assert found[-1].what is What.OUTCOME
