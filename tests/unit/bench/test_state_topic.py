"""The benchmark of the state topic."""

from __future__ import annotations

from bench.state_topic import YARDSTICK, report, works


def test_each_work_is_a_row_with_its_ratio() -> None:
    """Microseconds, and how many times the yardstick that is."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in report(rounds=1)][2:]

    assert [name for name, *_ in rows] == list(works())
    assert {name: ratio for name, _, ratio in rows}[YARDSTICK] == "1.0"
    assert all(float(time) > 0 for _, time, _ in rows)
