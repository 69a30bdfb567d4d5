"""``sharestate spark replay``, ``rebuild`` and ``tables``, each a program of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from sharestate.history import ReplaySettings, replay_files
from sharestate.history.synthetic import SyntheticHistory, generate_file
from sharestate.spark.analysis_columns import ANALYSIS
from tests.spark.conftest import QUICK
from tests.support.terminals import on_terminal

pytestmark = pytest.mark.spark

SEGMENTS: Final = Path(__file__).parents[1] / "data" / "segments"
JAVA: Final = {"JDK_JAVA_OPTIONS": QUICK["spark.driver.extraJavaOptions"]}


def spark(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the group."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    command = [sys.executable, "-m", "sharestate", "spark", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, text=True, env={**kept, **JAVA, **environment})


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic history."""
    path = tmp_path_factory.mktemp("history") / "history.parquet"
    generate_file(SyntheticHistory(share_partitions=4, events=500, seed=3), path)
    return path


def test_a_replay_counts_what_the_plain_runner_counts(history: Path, tmp_path: Path) -> None:
    """The summary is that of the runner without Spark; tables are made of the rows, and nothing else is printed."""
    settings = ReplaySettings(outputs=ReplaySettings().outputs | {"transition"})
    expected = replay_files(history, tmp_path / "plain", settings)

    replayed = spark("replay", "--json", history, tmp_path / "rows")
    tables = spark("tables", "--json", "--master", "local[1]", tmp_path / "rows", tmp_path / "tables")

    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert json.loads(replayed.stdout) == {"history_replay": 1, **expected.to_json()}
    assert (tables.returncode, tables.stderr) == (0, "")
    assert json.loads(tables.stdout)["deliveries"] == expected.metrics["records_acquired"]
    assert {path.name for path in (tmp_path / "tables").iterdir()} == set(ANALYSIS)


def test_what_stops_a_job_is_one_line(history: Path, tmp_path: Path) -> None:
    """Events that are there twice end the job with their share partition and number, and no traceback."""
    for name in ("once.parquet", "again.parquet"):
        shutil.copy(history, tmp_path / name)

    run = spark("replay", tmp_path, tmp_path / "rows")

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("Error: seq: ")
    assert run.stderr.count("\n") == 1
    assert "group-0" in run.stderr


def test_a_rebuild_shows_on_a_terminal_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts the share partitions that Kafka's own shard has, writes both tables, and shows what it does."""
    rebuilt = map(json.loads, (SEGMENTS / "rebuilt.jsonl").read_text().splitlines())
    states = [key for line in rebuilt if line["dump"] == "segments/state.jsonl" for key in line["keys"]]

    for name, value in JAVA.items():
        monkeypatch.setenv(name, value)
    arguments = ("spark", "rebuild", "--json", SEGMENTS, tmp_path / "tables")
    shown = on_terminal(tmp_path / "out", *arguments, is_process=True)

    assert json.loads((tmp_path / "out").read_text())["share_partitions"] == len(states)
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {"states", "health"}
    assert "rebuilding" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["OUT"], "Expected IN and OUT, or --bootstrap and OUT."),
        (["--bootstrap", "localhost:1", "IN", "OUT"], "Expected IN and OUT, or --bootstrap and OUT."),
        (["--command-config", __file__, "IN", "OUT"], "--command-config needs --bootstrap."),
        (["--bootstrap", "localhost:1", "--format", "parquet", "OUT"], "--format describes IN"),
    ],
)
def test_it_is_clear_what_is_rebuilt(arguments: list[str], message: str) -> None:
    """Either what is in files, or what a cluster has; Spark is not started to find out."""
    result = CliRunner().invoke(sharestate, ["spark", "rebuild", *arguments])

    assert result.exit_code == 2
    assert message in result.stderr


def test_without_java_it_says_what_is_missing(tmp_path: Path) -> None:
    """There is nothing to read in what Java's launcher would print."""
    run = spark("tables", tmp_path, tmp_path / "tables", PATH="/nowhere", JAVA_HOME="")

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "Error: Spark needs a JDK, 17 or 21: there is no java on the path, and JAVA_HOME is not set\n"
