"""The command line as a whole."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from sharestate import __version__, is_compiled
from sharestate.cli.commands import sharestate

WITHOUT = """
import sys
sys.modules[{name!r}] = None
from sharestate.cli import main
main()
"""


def test_the_version_is_shown() -> None:
    """--version shows the version of the library, and whether it is compiled."""
    result = CliRunner().invoke(sharestate, ["--version"], prog_name="sharestate")

    build = "compiled" if is_compiled() else "pure Python"
    assert result.output == f"sharestate {__version__} ({build})\n"


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


@pytest.mark.parametrize("module", ["__init__.py", "console.py"], ids=["of all", "of the command"])
@pytest.mark.parametrize(("ignored", "code"), [(False, 130), (True, 0)])
def test_ctrl_c_while_modules_are_loaded(tmp_path: Path, module: str, *, ignored: bool, code: int) -> None:
    """The command ends with 130 and says nothing, unless it was started so that it ignores Ctrl-C."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich/__init__.py").touch()
    (tmp_path / "rich" / module).write_text(
        "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; exit(0)"
    )
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else "pass"
    path = f"sys.path.insert(0, {str(tmp_path)!r})"
    command = f"import signal, sys; {ignore}; {path}; from sharestate.cli import main; main()"

    result = subprocess.run([sys.executable, "-c", command, "kip"], capture_output=True, check=False, text=True)

    assert (result.returncode, result.stdout, result.stderr) == (code, "", "")


def groups(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words that lead to each group of commands."""
    if isinstance(command, click.Group):
        yield path
        for name, below in command.commands.items():
            yield from groups(below, *path, name)


@pytest.mark.parametrize("path", list(groups(sharestate)), ids=" ".join)
def test_a_narrow_terminal_shows_what_each_command_is_for(path: tuple[str, ...]) -> None:
    """At 60 columns each command has a line, and none ends in the middle of a sentence."""
    result = CliRunner().invoke(sharestate, [*path, "--help"], env={"COLUMNS": "60"})

    _, _, listed = result.output.partition("Commands:\n")
    lines = listed.splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"  [\w-]+ +\w.*\w\.", line) or len(line) > 60] == []


BASH: Final = shutil.which("bash")

SCRIPT: Final = """
PATH="$1:$PATH"
eval "$(_SHARESTATE_COMPLETE=bash_source sharestate)"
COMP_WORDS=(sharestate "${@:2}")
COMP_CWORD=$(($# - 1))
_sharestate_completion sharestate
printf "%s\\n" "${COMPREPLY[@]}"
"""
"""Reads our script, and asks what can follow the arguments; the first one has the command."""


@pytest.mark.parametrize(
    ("words", "expected"), [(("log", "v"), ["verify"]), (("kip", "--table", "c"), ["control", "checkpoint"])]
)
@pytest.mark.skipif(BASH is None, reason="it asks bash")
def test_bash_completes_commands_and_choices(tmp_path: Path, words: tuple[str, ...], expected: list[str]) -> None:
    """What the docs say to put into ~/.bashrc completes words."""
    command = tmp_path / "sharestate"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sharestate "$@"\n')
    command.chmod(0o755)

    result = subprocess.run(
        [str(BASH), "-c", SCRIPT, "bash", tmp_path, *words], capture_output=True, check=False, text=True, timeout=60
    )

    assert (result.stdout.split(), result.stderr) == (expected, "")


def test_a_completion_ends_with_0() -> None:
    """Nothing was wrong, so a shell that looks at exit codes goes on."""
    asked = {"_SHARESTATE_COMPLETE": "bash_complete", "COMP_WORDS": "sharestate lo", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "sharestate"], env=os.environ | asked, capture_output=True, check=False, text=True
    )

    assert (result.returncode, result.stdout) == (0, "plain,log\n")
