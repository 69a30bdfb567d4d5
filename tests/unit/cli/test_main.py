"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from sharestate import __version__
from sharestate.cli.commands import sharestate

WITHOUT = """
import sys
sys.modules[{name!r}] = None
from sharestate.cli import main
main()
"""


def test_the_version_is_shown() -> None:
    """--version shows the version of the library."""
    result = CliRunner().invoke(sharestate, ["--version"], prog_name="sharestate")

    assert result.output == f"sharestate {__version__}\n"


@pytest.mark.parametrize("command", [[], ["serve"], ["replay"], ["kip"]])
def test_every_command_has_a_help(command: list[str]) -> None:
    """Every command says what it is for."""
    result = CliRunner().invoke(sharestate, [*command, "--help"])

    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("name", ["click", "rich"])
def test_a_missing_extra_is_named(name: str) -> None:
    """The command that installs it is shown in one line, without a traceback."""
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(name=name)], capture_output=True, check=False, text=True
    )

    assert result.returncode == 2
    assert result.stderr == "sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'\n"
