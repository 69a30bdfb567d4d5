"""The tables of ``make bench``."""

from __future__ import annotations

import pyperf
import pytest

from bench import report
from bench.operations import OPERATIONS, SERVED
from bench.timings import timings
from bench.workloads import WORKLOADS

METADATA = {"name": "", "date": "2026-01-02 03:04:05", "cpu_model_name": "A CPU", "cpu_count": 2}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The page, had everything taken half a millisecond."""
    monkeypatch.setattr(report, "MEMORY", {})
    runs = (
        (name, pyperf.Run([0.0005], metadata=METADATA | {"name": name}, collect_metadata=False))
        for name, _, _ in timings()
    )
    return report.report(pyperf.BenchmarkSuite([pyperf.Benchmark([run]) for _, run in runs])).splitlines()


def test_every_workload_has_a_row_with_both_readings(lines: list[str]) -> None:
    """Beside what taking runs costs stands what reading every state batch costs, as a ratio."""
    head = next(line for line in lines if "acknowledged as" in line)

    assert [cell.strip() for cell in head.split("|")[2:-1]] == [
        "µs",
        "x whole",
        "every state batch read",
        "recording transitions",
    ]
    for name in WORKLOADS:
        assert [cell.strip() for cell in _row(lines, name)] == ["500.0", "1.00", "1.00", "1.00"]


def test_every_operation_has_a_row(lines: list[str]) -> None:
    """None is timed in vain."""
    assert all(_row(lines, name) for operations in OPERATIONS.values() for name in operations)


def test_what_is_served_is_told_in_requests_a_second(lines: list[str]) -> None:
    """Half a millisecond for a request makes 2,000 in a second."""
    for name in OPERATIONS[SERVED]:
        assert [cell.strip() for cell in _row(lines, name)] == ["2,000"] * 3


def _row(lines: list[str], name: str) -> list[str]:
    (row,) = (line for line in lines if line.startswith(f"| {name} "))
    return row.split("|")[2:-1]
