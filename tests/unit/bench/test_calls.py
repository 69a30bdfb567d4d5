"""Counting the calls of a workload."""

from __future__ import annotations

import sys

import pytest

from bench.calls import calls, main
from bench.workloads import WHOLE


def test_each_command_is_counted_once_for_a_batch() -> None:
    """A batch that is acknowledged whole is one acquire, one acknowledge and one answered write."""
    counted = calls(WHOLE)

    commands = ("acquire", "acknowledge", "write_succeeded")
    assert [counted[f"partition.share_partition.SharePartition.{command}"] for command in commands] == [1, 1, 1]


def test_calls_of_single_offsets_are_counted_one_by_one() -> None:
    """500 calls of one offset are 500 calls of acknowledge."""
    assert calls("500 calls of one offset")["partition.share_partition.SharePartition.acknowledge"] == 500


def test_the_same_is_counted_every_time() -> None:
    """Counting twice gives the same figures, for functions in Python and in C, and ends with nobody counting."""
    counted = calls(WHOLE)

    assert counted == calls(WHOLE)
    assert any(name.endswith(" (C)") for name in counted)
    assert sys.getprofile() is None


def test_rare_calls_are_left_out_of_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums count every call; the rows below them are the functions that are called often enough."""
    monkeypatch.setattr("sys.argv", ["calls", "--workload", "500 entries in one call", "--least", "500"])

    main()

    head, _, in_python, in_c, *rows, end = capsys.readouterr().out.split("\n")[:-1]
    assert "500 records: 500 entries in one call" in head
    assert ("written in Python" in in_python, "written in C" in in_c, end) == (True, True, "")
    assert any("AcknowledgementBatch" in row for row in rows)
    assert all(float(row.split("|")[2].replace(",", "")) >= 500 for row in rows)
