"""``sharestate spark`` where Spark is not installed, and what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from sharestate.cli.exits import exit_code_of
from sharestate.cli.spark import say_what_was_checked
from sharestate.spark.largest_partition import Size


@pytest.mark.parametrize("command", ["replay", "rebuild", "tables", "verify", "audit"])
def test_without_spark_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, command: str, tmp_path: Path) -> None:
    """One line names the extra."""
    monkeypatch.setitem(sys.modules, "pyspark", None)

    result = CliRunner().invoke(sharestate, ["spark", command, "in", str(tmp_path / "out")])

    assert result.exit_code == 2
    assert result.output == "Error: sharestate.spark needs the extra 'spark': pip install 'sharestate[spark]'\n"


@pytest.mark.parametrize(("events", "is_named"), [(26, True), (25, False)])
def test_a_hot_share_partition_is_named(events: int, is_named: bool, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001 - a parameter
    """One with more than a quarter of all events is, as no more than four tasks help then."""
    largest = Size("g", "t", 3, events, 100)

    say_what_was_checked({"explained": 5}, largest, as_json=False)
    assert ("g, t-3 has 26 of 100 events, which one task has checked." in capsys.readouterr().out) is is_named

    say_what_was_checked({"explained": 5}, largest, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["share_partitions"], printed["explained"]) == (5, 5)
    assert (printed["hot"] is not None) is is_named


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({"explained", "kafka_defect", "not_checked"}, 0),
        ({"explained", "search_bound_reached"}, 2),
        ({"contradiction", "search_bound_reached"}, 1),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_verdict(verdicts: set[str], code: int) -> None:
    """A contradiction is 1; a check that was given up has no verdict."""
    assert exit_code_of(verdicts) == code
