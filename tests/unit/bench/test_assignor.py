"""The benchmark of the assignor."""

from __future__ import annotations

from bench.assignor import SIZES, YARDSTICK, report, works


def test_each_work_is_a_row_with_its_ratio() -> None:
    """Milliseconds, and how many times the yardstick that is, for each size."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in report(rounds=1)][2:]

    assert [name for name, *_ in rows] == list(works(SIZES[0]))
    assert {name: ratios for name, *ratios in rows}[YARDSTICK][1::2] == ["1.0", "1.0"]
    assert all(float(time) > 0 for _, *figures in rows for time in figures[::2])
