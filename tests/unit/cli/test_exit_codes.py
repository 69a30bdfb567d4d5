"""Exit codes: 0 and 1 are verdicts, and nothing else ends with them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from sharestate.cli.exits import run_command
from tests.support.own_streams import exit_code

VECTORS = Path(__file__).parents[2] / "data/vectors/section22"
AGREES = VECTORS / "ex-10-a.jsonl"
DATA = Path(__file__).parents[2] / "data"
STATE = DATA / "coordinator/state-4.4.0.jsonl"
SHARESTATE = [sys.executable, "-m", "sharestate"]

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")


def shell(redirection: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command line with *arguments* and a *redirection* of the shell's."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *SHARESTATE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


Here = Callable[..., tuple[int, bytes, bytes]]
"""Runs the command line with arguments in this process; returns its exit code, output and errors."""


@pytest.fixture
def here(capfdbinary: pytest.CaptureFixture[bytes]) -> Here:
    """The command line in this process, which has no streams to lose."""

    def run(*arguments: str | Path, output: int | None = None) -> tuple[int, bytes, bytes]:
        return (exit_code(*arguments, output=output), *capfdbinary.readouterr())

    return run


@needs_full
def test_a_process_whose_output_cannot_be_written_ends_with_2() -> None:
    """Nothing of the interpreter's comes after what is reported."""
    result = shell(">/dev/full", "--help")

    assert (result.returncode, result.stderr) == (2, b"Error: No space left on device\n")


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["serve"],
        ["replay", AGREES],
        ["replay", "--json", AGREES],
        ["kip", "--table", "keys"],
        ["state", "decode", STATE],
        ["state", "rebuild", STATE],
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_output_that_cannot_be_written_ends_with_2(
    arguments: list[str | Path], here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is reported in one line."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}\n")))
    with Path("/dev/full").open("wb") as full:
        assert here(*arguments, output=full.fileno()) == (2, b"", b"Error: No space left on device\n")


def test_memory_that_is_not_there_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no verdict either."""

    @click.command
    def hungry() -> None:
        bytearray(2**60)

    monkeypatch.setattr(sys, "argv", ["sharestate"])

    assert run_command(hungry) == 2
    assert capsys.readouterr().err == "Error: there is not enough memory\n"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, here: Here) -> None:
    """The system's own words say not which of several files it is."""
    page = tmp_path / "nowhere" / "page.html"
    code, _, errors = here("diagnose", DATA / "diagnose/good.jsonl.gz", "--html", page)

    assert (code, errors.decode()) == (2, f"Error: {page}: No such file or directory\n")


@needs_full
def test_an_error_that_cannot_be_shown_ends_with_2() -> None:
    """Where nothing can be written to, the exit code is all that is left."""
    assert shell(">/dev/full 2>/dev/full", "replay", AGREES).returncode == 2


@pytest.mark.parametrize("redirection", ["<&-", ">&-"])
def test_a_stream_that_is_closed_ends_serve_with_2(redirection: str) -> None:
    """Without input or output there is no conversation."""
    result = shell(redirection, "serve")

    assert (result.returncode, result.stderr) == (2, b"Error: standard input or standard output is closed\n")


@pytest.mark.parametrize("command", ["decode", "rebuild"])
def test_what_only_shows_something_ends_with_2_without_output(
    command: str, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are not read for nobody."""
    monkeypatch.setattr(sys, "stdout", None)  # what a closed one is

    assert here("state", command, STATE) == (2, b"", b"Error: standard output is closed\n")


def test_a_closed_standard_output_keeps_the_verdict(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is that of the comparison."""
    assert shell(">&-", "replay", AGREES).returncode == 0
    monkeypatch.setattr(sys, "stdout", None)
    assert here("kip", "--table", "write", "--profile", "kafka-4.3") == (1, b"", b"")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["tables", "json"])
def test_a_closed_pipe_ends_with_141(options: list[str], here: Here) -> None:
    """The exit code is the one that shells give to SIGPIPE, and nothing is reported (as a process: test_state.py)."""
    reader, writer = os.pipe()
    os.close(reader)

    ended = here("replay", *options, AGREES, output=writer)

    os.close(writer)
    assert ended == (141, b"", b"")


def test_ctrl_c_ends_with_130() -> None:
    """An interrupt is neither a verdict nor an error, and has no traceback."""
    with subprocess.Popen(
        [*SHARESTATE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b'{"op":"open"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors.strip()) == (130, b"")


def test_a_list_without_end_ends_with_2(here: Here) -> None:
    """Of a list of known differences only so much is read as a line may have."""
    code, output, errors = here("replay", "--known-differences", "/dev/zero", AGREES)

    assert (code, output) == (2, b"")
    assert errors.startswith(b"Error: /dev/zero: longer than")


def test_a_directory_is_searched_for_files_only(tmp_path: Path, here: Here) -> None:
    """A pipe or a directory that is named like a trace is passed over; opening a pipe would wait for ever."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "directory.jsonl").mkdir()
    (tmp_path / "trace.jsonl").write_bytes(AGREES.read_bytes())

    assert here("replay", tmp_path) == (0, b"1 of 1 as expected\n", b"")


def test_texts_of_a_trace_are_escaped(tmp_path: Path, here: Here) -> None:
    """Control characters, bidirectional marks and lone surrogates reach no terminal."""
    hostile = "\x1b[2J\u202e\ud800\r\n"
    trace = tmp_path / "\x1b[31m.jsonl"
    header = {"trace": 1, "name": hostile}
    step = {"request": {"op": "fence"}, "response": {hostile: hostile}}
    trace.write_text(f"{json.dumps(header)}\n{json.dumps(step)}\n")

    code, output, _ = here("replay", trace)

    assert code == 1
    assert rb"\x1b[2J\u202e\ud800\r\n" in output
    assert all(char.isprintable() or char == "\n" for char in output.decode())


def test_file_names_are_escaped_in_errors(tmp_path: Path, here: Here) -> None:
    """An error quotes the name of a file, too."""
    trace = tmp_path / "\x1b[31m\udcff.jsonl"
    trace.write_text("nonsense")

    code, _, errors = here("replay", trace)

    assert code == 2
    assert rb"\x1b[31m\udcff.jsonl:1: " in errors
