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
