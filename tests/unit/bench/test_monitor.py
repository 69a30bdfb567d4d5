"""What the monitor takes, measured."""

from __future__ import annotations

from bench.monitor import Load, report


def test_each_load_has_a_row() -> None:
    """With a figure in each column, none of which is negative."""
    head, _, *rows = report((Load(20, 2), Load(30, 0)))

    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[0] for row in cells] == ["20 x 2", "30 x 0"]
    assert {len(row) for row in cells} == {head.count("|") - 1}
    assert all(float(cell) >= 0 for row in cells for cell in row[1:])
