"""Which steps decide what a fetch acquires or a write says: those are moved first."""

from __future__ import annotations

import pytest

from sharestate.log_check.deciding_steps import acquiring_steps, deciding_steps
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import Step, What, schedule
from tests.support.hand_made_events import HandMadeLife


@pytest.mark.parametrize(
    ("observed", "computed", "expected"),
    [
        ([[0, 3, 1]], [[0, 9, 1]], ["m3", "m4"]),
        ([[0, 3, 1]], [[2, 9, 1]], ["m3", "m4"]),
        ([[0, 1, 1], [2, 3, 1]], [[0, 9, 1]], ["m3", "m4"]),
        ([[0, 3, 1]], [[0, 3, 2]], ["m2"]),
        ([], [[0, 3, 1]], ["m2"]),
        ([[0, 3, 1], [5, 9, 1]], [[0, 9, 1]], ["m3", "m4"]),
        ([[0, 9, 1]], [[0, 9, 1]], []),
    ],
)
def test_where_a_fetch_has_left_records_another_one_had_them(
    observed: list[list[int]], computed: list[list[int]], expected: list[str]
) -> None:
    """It is the one that has acquired the first record that was computed and not observed, or not with that count."""
    life = HandMadeLife()
    life.fetches(20, 2, "m1", 1, *[(first, last, count) for first, last, count in observed])
    life.fetches(30, 2, "m2", 1, (0, 3, 1))
    life.fetches(40, 2, "m3", 1, (4, 9, 1))
    life.fetches(50, 2, "m4", 1, (4, 4, 2))
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


def steps_of(life: HandMadeLife) -> list[Step]:
    """Return the steps of a life but for that of its settings."""
    return [step for step in schedule(enumerate(life.events)).steps if step.what is not What.CONFIG]


def test_where_a_fetch_has_left_records_they_may_have_been_given_back_only_later() -> None:
    """The answer to the write that says so is the nearest step, its arrival the next one."""
    life = HandMadeLife()
    life.writes(10, 100, (0, 0), (8, 9, 0, 1))
    life.writes(20, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(30, 2, "m1", 1)
    life.writes(40, 102, (0, 0), (0, 3, 0, 2))
    steps = steps_of(life)[2:]

    found = deciding_steps(steps, 2, Mismatch("fetch", [], [[0, 3, 2]]))

    assert [steps[at].what for at in found] == [What.OUTCOME, What.ARRIVAL]


def test_where_a_fetch_has_got_records_those_before_it_may_have_come_later() -> None:
    """All of them that have acquired its first record, the nearest first."""
    life = HandMadeLife()
    for number in range(3):
        life.fetches(10 * number, 2, f"m{number}", 1, (0, 3, number + 1))
    steps = steps_of(life)

    found = deciding_steps(steps, 2, Mismatch("fetch", [[0, 3, 3]], []))

    assert [steps[at].event.member_id for at in found] == ["m1", "m0"]


def test_where_a_fetch_has_got_records_they_may_have_been_given_back_before() -> None:
    """By what is answered right after it: that gives them back, and may make room; what was answered before did not."""
    life = HandMadeLife()
    life.writes(10, 100, (0, 0), (0, 3, 0, 1))
    life.fetches(20, 2, "m1", 1, (0, 3, 2))
    life.writes(30, 101, (0, 0), (0, 3, 0, 1))
    steps = [step for step in steps_of(life) if step.what is not What.ARRIVAL]

    found = deciding_steps(steps, 1, Mismatch("fetch", [[0, 3, 2]], []))

    assert [*found] == [2, 2]


def test_a_write_that_is_too_early_is_of_a_later_acknowledgement() -> None:
    """One of those that name its first record; not those before it, nor the one that has issued it."""
    life = HandMadeLife()
    for number, batch in enumerate([(0, 3, 1), (0, 3, 1), (0, 0, 1), (6, 9, 1), (3, 3, 1), (0, 1, 1)]):
        life.acknowledges(10 * number, 2, f"m{number}", 1, batch, None)
    steps = steps_of(life)
    observed = {"state_batches": [[0, 3, 2, 1], [6, 9, 2, 1]]}

    found = deciding_steps(steps, 1, Mismatch("write", observed, None))

    assert [steps[at].event.member_id for at in found] == ["m2", "m5"]


def test_a_write_that_divides_records_otherwise_depends_on_what_was_read_with_them() -> None:
    """By the fetches that have acquired the first range that is another one, the nearest first."""
    life = HandMadeLife()
    life.fetches(10, 2, "m1", 1, (0, 3, 1))
    life.fetches(20, 2, "m2", 1, (6, 9, 1))
    life.fetches(30, 2, "m3", 1, (6, 7, 2))
    life.fetches(40, 2, "m4", 1, (12, 15, 1))
    life.acknowledges(50, 2, "m2", 2, (0, 15, 1), None)
    steps = steps_of(life)
    observed = {"state_batches": [[0, 3, 2, 1], [6, 9, 2, 1], [12, 15, 2, 1]]}
    computed = {"state_batches": [[0, 3, 2, 1], [6, 6, 2, 1], [7, 9, 2, 1], [12, 12, 2, 1], [13, 15, 2, 1]]}

    found = deciding_steps(steps, len(steps) - 1, Mismatch("write", observed, computed))

    assert [steps[at].event.member_id for at in found] == ["m3", "m2"]


def test_a_write_that_nothing_has_issued_may_be_of_a_lock_that_is_older_than_it_seems() -> None:
    """That of one of the fetches which have acquired the first record of it, the nearest first; of no later one."""
    life = HandMadeLife()
    for number, acquired in enumerate([(6, 7, 1), (8, 9, 1), (6, 7, 2), (6, 6, 3)]):
        life.fetches(10 * number, 2, f"m{number}", 1, acquired)
    life.writes(1_010, 101, (0, 0), (6, 9, 0, 1))
    life.fetches(1_020, 2, "m4", 1, (6, 9, 4))
    steps = steps_of(life)
    index = next(at for at, step in enumerate(steps) if step.what is What.ARRIVAL)

    found = acquiring_steps(steps, index, Mismatch("write", {"state_batches": [[6, 9, 0, 1]]}, None))

    assert [steps[at].event.member_id for at in found] == ["m3", "m2", "m0"]
