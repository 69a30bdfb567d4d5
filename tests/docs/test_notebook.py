"""The notebooks in `examples` run, and show what is committed."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.notebooks import shown

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURES = {"kip_tables.ipynb": 10, "sizing.ipynb": 1}
"""How many pictures each notebook has."""


@pytest.mark.parametrize("name", PICTURES)
def test_the_notebook_runs_and_shows_what_is_committed(name: str, tmp_path: Path) -> None:
    """Each of its claims holds, and running it again changes nothing that it says."""
    notebook = nbformat.read(EXAMPLES / name, nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]

    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    copy = tmp_path / name
    copy.write_text(json.dumps(notebook))

    assert shown(copy) == shown(EXAMPLES / name), "run make notebook"


@pytest.mark.parametrize(("name", "pictures"), PICTURES.items())
def test_the_notebook_is_small_and_says_nothing_of_the_machine(name: str, pictures: int) -> None:
    """It has its pictures in less than a megabyte, and no times, versions or warnings."""
    text = (EXAMPLES / name).read_text()
    notebook = json.loads(text)
    kinds = [
        kind for cell in notebook["cells"] for output in cell.get("outputs", ()) for kind in output.get("data", ())
    ]

    assert len(text) < 1_000_000
    assert kinds.count("image/svg+xml") == pictures
    assert notebook["metadata"].keys() == {"kernelspec"}
    assert [cell["metadata"] for cell in notebook["cells"] if cell["metadata"]] == []
    assert "stderr" not in text
