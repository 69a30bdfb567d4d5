"""The notebook in `examples` that runs on Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.spark.conftest import QUICK
from tests.support.broker_answers import RUNS
from tests.support.notebooks import shown

pytestmark = pytest.mark.spark

NOTEBOOK: Final = Path(__file__).parents[2] / "examples" / "redeliveries.ipynb"


def test_the_notebook_runs_and_shows_what_is_committed(tmp_path: Path) -> None:
    """Each of its claims holds for the log of a broker, and running it again changes nothing that it says."""
    copy = Path(shutil.copy(NOTEBOOK, tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK.items()))
    environment = {**os.environ, "RUN": str(RUNS / "k440-settings"), "SPARK_CONF_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", str(copy)]
    run = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, text=True, env=environment)

    assert run.returncode == 0, run.stderr
    assert shown(copy) == shown(NOTEBOOK), "run make notebook-spark"


def test_the_notebook_is_small_and_says_nothing_of_the_machine() -> None:
    """It has its pictures in less than half a megabyte, and no times, versions or warnings."""
    notebook = json.loads(NOTEBOOK.read_text())
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]

    assert NOTEBOOK.stat().st_size < 500_000
    assert sum("image/svg+xml" in output.get("data", {}) for output in outputs) == 3
    assert notebook["metadata"].keys() == {"kernelspec"}
    assert [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]] == []
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
