"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(("ignored", "code"), [(False, 130), (True, 0)])
def test_ctrl_c_while_modules_are_loaded(tmp_path: Path, *, ignored: bool, code: int) -> None:
    """The command ends with 130 and says nothing, unless it was started so that it ignores Ctrl-C."""
    (tmp_path / "rich.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; exit(0)")
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else "pass"
    path = f"sys.path.insert(0, {str(tmp_path)!r})"
    command = f"import signal, sys; {ignore}; {path}; from sharestate.cli import main; main()"

    result = subprocess.run([sys.executable, "-c", command, "kip"], capture_output=True, check=False, text=True)

    assert (result.returncode, result.stdout, result.stderr) == (code, "", "")
