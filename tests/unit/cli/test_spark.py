"""``sharestate spark`` where Spark is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate


@pytest.mark.parametrize("command", ["replay", "rebuild", "tables"])
def test_without_spark_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, command: str, tmp_path: Path) -> None:
    """One line names the extra."""
    monkeypatch.setitem(sys.modules, "pyspark", None)

    result = CliRunner().invoke(sharestate, ["spark", command, "in", str(tmp_path / "out")])

    assert result.exit_code == 2
    assert result.output == "Error: sharestate.spark needs the extra 'spark': pip install 'sharestate[spark]'\n"
