"""The benchmark of writes to a file."""

from __future__ import annotations

from bench.state_log import GROUPED, report


def test_each_way_to_write_has_a_row() -> None:
    """Rates of both, and their ratio."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in report(2, 1, 1)][2:]

    assert [name for name, *_ in lines] == ["single", f"{GROUPED} requests together", f"{GROUPED} in a request"]
    for _, *figures in lines:
        ours, bare, ratio = (float(figure.replace(",", "")) for figure in figures)
        assert ours > 0 < bare
        assert abs(ratio - ours / bare) < 0.1
