"""The distribution of how late locks have expired."""

from __future__ import annotations

import pytest

from sharestate.log_check.verify import delays_ms


@pytest.mark.parametrize(
    ("late_us", "expected"),
    [
        ([], {}),
        ([7_000], {"min": 7, "median": 7, "p99": 7, "max": 7}),
        ([4_000, 1_000], {"min": 1, "median": 2.5, "p99": 4, "max": 4}),
        ([3_000, 1_000, 2_500], {"min": 1, "median": 2.5, "p99": 3, "max": 3}),
        (range(0, 1_001_000, 10_000), {"min": 0, "median": 500, "p99": 999.8, "max": 1_000}),
    ],
)
def test_delays_are_in_milliseconds(late_us: list[int], expected: dict[str, float]) -> None:
    """No delay without locks; the least and the most are those of a lock, and 99 of 100 are at most as late as p99."""
    assert delays_ms(late_us) == pytest.approx(expected)
