"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate

WITHOUT = """
import sys
sys.modules[{name!r}] = None
from sharestate.cli import main
main()
"""


def test_it_says_its_version() -> None:
    """--version tells the version that is installed."""
    result = CliRunner().invoke(sharestate, ["--version"], prog_name="sharestate")

    assert result.output == f"sharestate {version('sharestate')}\n"


@pytest.mark.parametrize("command", [[], ["serve"], ["replay"], ["kip"]])
def test_it_helps(command: list[str]) -> None:
    """Every command says what it is for."""
    result = CliRunner().invoke(sharestate, [*command, "--help"])

    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("name", ["click", "rich"])
def test_without_the_extra_it_says_how_to_install_it(name: str) -> None:
    """One line, no traceback."""
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(name=name)], capture_output=True, check=False, text=True
    )

    assert result.returncode == 2
    assert result.stderr == "sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'\n"
