"""The notebook in `examples` runs, and shows what is committed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.notebooks import shown

NOTEBOOK = Path(__file__).parents[2] / "examples/kip_tables.ipynb"


def test_the_notebook_runs_and_shows_what_is_committed(tmp_path: Path) -> None:
    """Each of its claims holds, and running it again changes nothing that it says."""
    copy = Path(shutil.copy(NOTEBOOK, tmp_path))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbmake", "--overwrite", str(copy)]
    run = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, text=True)

    assert run.returncode == 0, run.stdout
    assert shown(copy) == shown(NOTEBOOK), "run make notebook"


def test_the_notebook_is_small_and_says_nothing_of_the_machine() -> None:
    """It has its pictures in less than a megabyte, and no times, versions or warnings."""
    notebook = json.loads(NOTEBOOK.read_text())
    kinds = [
        kind for cell in notebook["cells"] for output in cell.get("outputs", ()) for kind in output.get("data", ())
    ]

    assert NOTEBOOK.stat().st_size < 1_000_000
    assert kinds.count("image/svg+xml") == 10
    assert notebook["metadata"].keys() == {"kernelspec"}
    assert [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]] == []
    assert "stderr" not in NOTEBOOK.read_text()
