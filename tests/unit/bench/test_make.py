"""What the targets that measure run."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from bench.__main__ import BEGIN as FIGURES
from bench.instruction_table import BEGIN as INSTRUCTIONS
from bench.jvm.__main__ import BEGIN as COMPARISON
from bench.jvm.library import ROOT

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="targets are made by make, in a clone"
)


def commands(*arguments: str) -> list[str]:
    """Return the commands that make would run, without the texts of the steps."""
    # Nothing is older than the Makefile, so that no environment has to be set up first.
    command = ["make", "-n", "-o", ".venv/ready", "-C", str(ROOT), *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (recipe,) = re.findall(r"\(set -e; (.*)\); status=", printed)
    parts = re.sub(r'echo "[^"]*"', "", recipe).split(";")
    return [" ".join(part.split()) for part in parts if part.strip()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["bench"], "-m bench --rounds 5"),
        (["bench", "ROUNDS=1", "WRITE=page.md"], "-m bench --rounds 1 --write 'page.md'"),
        (["bench", "BASE=main"], "-m bench.jvm --no-jvm --rounds 5 --base 'main'"),
        (
            ["bench", "BASE=main", "OPERATIONS=1"],
            "-m bench.jvm --no-jvm --rounds 5 --base 'main' --operations",
        ),
        (["bench", "INSTRUCTIONS=1", "ROUNDS=1"], "-m bench.jvm --no-jvm --rounds 1 --instructions"),
        (["bench-jvm", "WORKLOAD=whole"], "-m bench.jvm --rounds 5 --workload 'whole'"),
    ],
)
def test_a_target_runs_one_program(arguments: list[str], expected: str) -> None:
    """Variables become options; a comma in the text of a step would cut the command off."""
    assert commands(*arguments) == [f".venv/bin/python {expected}"]


def test_the_demo_runs_its_programs() -> None:
    """The story, the KIP's table, twice the recordings, a broker's log; a comma in a text would cut a command off."""
    assert [" ".join(command.split()[:3]) for command in commands("demo")] == [
        ".venv/bin/python examples/story.py",
        ".venv/bin/sharestate kip --table",
        ".venv/bin/sharestate replay --known-differences",
        ".venv/bin/sharestate replay --known-differences",
        "mkdir -p build/demo",
        ".venv/bin/sharestate log import",
        ".venv/bin/sharestate log verify",
        "rm -f build/demo/rows.jsonl",
        ".venv/bin/sharestate history replay",
        ".venv/bin/sharestate log explain",
        ".venv/bin/sharestate log report",
    ]


def test_one_target_writes_all_figures() -> None:
    """Both sets of figures go into the same page, those that may fail for want of Java first."""
    assert [command for command in commands("growth", "ROUNDS=2", "PAGE=page.md") if "python" in command] == [
        ".venv/bin/python -m bench.jvm --rounds 2 --instructions --write 'page.md'",
        ".venv/bin/python -m bench --rounds 2 --write 'page.md'",
    ]


def test_the_docs_have_no_other_figures_that_are_written() -> None:
    """Each of the marks stands once, in the page into which the figures are written unless another is named."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    found = {page.name: re.findall(r"<!-- .* is written by .* -->", page.read_text("utf-8")) for page in pages}

    assert {name: marks for name, marks in found.items() if marks} == {
        "growth.md": [FIGURES, COMPARISON],
        "install.md": [INSTRUCTIONS],
    }
