"""What an exploration costs is counted beside the commands that it gives."""

from __future__ import annotations

from bench.explore import GROUPS, cost, report


def test_each_group_has_a_row() -> None:
    """With its bytecodes, of which commands and copies are parts, and which are the same each time."""
    lines = list(report(5))
    assert len(lines) == 2 + len(GROUPS)
    of = cost(GROUPS["a write that fails"], 5)
    assert of.commands > 0
    assert of.copies > 0
    assert of.all > of.commands + of.copies
    assert cost(GROUPS["a write that fails"], 5) == of
