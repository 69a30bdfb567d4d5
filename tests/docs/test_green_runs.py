"""What is said of green runs was measured of the bugs that are planted, and of the runs that there are by default."""

from __future__ import annotations

import pytest

from generate.data import read_rows
from generate.green_runs import JUDGES
from tests.planted.green_runs import DOORS

ROWS = {row["door"]: row for row in read_rows("green-runs.json", "green_runs")}


def test_each_door_was_measured() -> None:
    """The doors of the page are those that the command measures, in the same order."""
    assert list(ROWS) == list(DOORS) == list(JUDGES)


@pytest.mark.parametrize("name", DOORS)
def test_what_was_measured_is_what_there_is(name: str) -> None:
    """As many bugs, with as many runs; and of what is correct nothing was found."""
    door, row = DOORS[name](), ROWS[name]

    assert (row["bugs"], row["runs"], row["correct"]) == (len(door.bugs), door.runs, [*door.correct])
    assert row["within_1_s"] <= row["within_20_s"] <= row["searches"] - len(row["missed"])
    assert row["false_alarms"] == 0
