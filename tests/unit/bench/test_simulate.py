"""What a simulation costs is measured of every load."""

from __future__ import annotations

from bench.simulate import in_commands, loads, report


def test_each_load_has_a_row() -> None:
    """With the time, and a part of it that is spent in commands."""
    lines = list(report(1_000))

    assert len(lines) == 1 + len(loads(1_000))
    assert 0 < in_commands(loads(1_000)["a request for each record"]) < 1
