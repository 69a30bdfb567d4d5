"""The command ``explore``: its exit codes, and the files that it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from sharestate import KAFKA_4_3
from sharestate.cli.commands import sharestate
from sharestate.conformance import read_vectors
from sharestate.testing import InProcessServer
from sharestate.testing.explore import BEYOND, Configuration
from tests.support.explorations import BUGS

if TYPE_CHECKING:
    from click.testing import Result


def run(*arguments: object) -> Result:
    """Run the command in one process."""
    return CliRunner().invoke(sharestate, ["explore", "--jobs", "1", *map(str, arguments)])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of a configuration in which B15 shows."""
    file = tmp_path / "small.json"
    file.write_text(BUGS["B15"].configuration.to_json())
    return file


def test_all_holds(small: Path) -> None:
    """It ends with 0 if all states were looked at and everything holds."""
    result = run("--profile", "kafka-4.4-healed", "--configuration", small)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[-1] == "everything holds"
    profile, group, *_ = lines
    assert (profile, Configuration.from_json(group)) == ("kafka-4.4-healed", BUGS["B15"].configuration)


def test_says_of_each_rule_what_is_known(small: Path) -> None:
    """Each rule is one that was met, one that was not, or one that no exploration meets, with the reason."""
    options = "--profile", "kafka-4.4-healed", "--configuration", small
    said = json.loads(run(*options, "--json").output)
    text = run(*options).output
    assert said["rules"].keys() | said["rules_beyond"].keys() == set(read_vectors().rules)
    assert f"8.2, 24.3: {BEYOND['8.2']}" in " ".join(text.split())
    assert said["rules"]["5"] == said["events"]["fetch"]
    assert "rules not met: 1.4, " in text


def test_something_does_not_hold(small: Path, tmp_path: Path) -> None:
    """It ends with 1 if something does not hold, and writes a conversation that the library takes."""
    out = tmp_path / "found.jsonl"
    result = run("--profile", "kafka-4.3", "--configuration", small, "--out", out, "--json")
    found = json.loads(result.output)
    assert (result.exit_code, found["holds"], found["counterexample"]["name"]) == (1, False, "nothing stalls")
    server = InProcessServer(KAFKA_4_3)
    requests = [json.loads(line) for line in out.read_text().splitlines()]
    assert requests == found["counterexample"]["conversation"]
    assert [server(request) for request in requests][-1]["state"]["start_offset"] == 0


def test_a_bound_was_met(small: Path, tmp_path: Path) -> None:
    """It ends with 3 if a bound was met, and goes on from the file that it has written."""
    file = tmp_path / "explored.jsonl.gz"
    arguments = "--profile", "kafka-4.4-healed", "--configuration", small, "--resume", file
    bounded = run(*arguments, "--states", 10)
    assert (bounded.exit_code, bounded.output.splitlines()[-1]) == (
        3,
        f"not all was looked at: the bound on states was met; the same command goes on from {file}",
    )
    assert run(*arguments).exit_code == 0
    other = run("--profile", "kafka-4.3", "--resume", file)
    assert other.exit_code == 2
    assert "another configuration" in other.output


def test_serves_until_a_signal_comes(small: Path) -> None:
    """The first line is the address, a page is there, and SIGTERM ends it with the code of the exploration."""
    options = "--profile", "kafka-4.3", "--jobs", "1", "--configuration", str(small), "--serve"
    command = [sys.executable, "-m", "sharestate", "explore", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        with urlopen(address) as page:  # noqa: S310 - its own
            text = page.read().decode()
        process.send_signal(signal.SIGTERM)
        rest, errors = process.stdout.read(), process.stderr.read()
    assert address.startswith("http://127.0.0.1:")
    assert 'href="/0.0.0.1"' in text
    assert rest.splitlines()[-1].endswith("SPSO 0")
    assert (process.returncode, errors) == (1, "")


def test_no_document_and_pages() -> None:
    """A JSON document and pages exclude each other."""
    result = run("--json", "--serve")
    assert result.exit_code == 2
    assert "--json and --serve exclude each other" in result.output


def test_no_configuration(tmp_path: Path) -> None:
    """It ends with 2, and the field that is wrong, if the file is no configuration."""
    file = tmp_path / "other.json"
    file.write_text('{"sharestate_exploration": 1, "log": []}')
    result = run("--configuration", file)
    assert result.exit_code == 2
    assert "log" in result.output


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"sharestate_exploration":1,"log":[[0,0]],"dead_letter_queue":true}', "config.dead_letter_queue: "),
        ('{"sharestate_exploration":1,"log":[[0,2],[1,3]]}', "log[1]: "),
        ('{"sharestate_exploration":1,"log":[[0,0]]}' + 70_000 * " " + "?", "longer than 65536 characters"),
    ],
)
def test_names_file_and_field(tmp_path: Path, text: str, field: str) -> None:
    """What is wrong with a configuration is said with the file and the field, whoever finds it."""
    file = tmp_path / "group.json"
    file.write_text(text)
    result = run("--configuration", file, "--profile", "kafka-4.3")
    assert (result.exit_code, result.output.strip().startswith(f"Error: {file}: {field}")) == (2, True), result.output


def test_asks_for_directories_before_it_explores(small: Path, tmp_path: Path) -> None:
    """A file that cannot be written is refused before anything is explored."""
    for option in ("--resume", "--out"):
        result = run("--configuration", small, option, tmp_path / "none" / "file")
        assert result.exit_code == 2
        assert result.output == f"Error: {tmp_path}/none/file: nothing can be written into {tmp_path}/none\n"


def test_a_file_that_is_there_needs_no_directory(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--out` writes to it where nothing else could be written; one that is only to be read is refused at once."""
    out = tmp_path / "out"
    out.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path) == out)
    assert run("--configuration", small, "--profile", "kafka-4.3", "--out", out).exit_code == 1
    assert out.stat().st_size

    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    result = run("--configuration", small, "--profile", "kafka-4.3", "--out", out)
    assert (result.exit_code, result.output) == (2, f"Error: {out}: it cannot be written\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_says_what_was_found_though_the_disk_is_full(small: Path) -> None:
    """Where a counterexample cannot be written it is shown all the same, and the error names the file."""
    result = run("--configuration", small, "--profile", "kafka-4.3", "--out", "/dev/full")
    assert result.exit_code == 2
    assert "does not hold: nothing stalls" in result.output
    assert "Error: /dev/full: No space left on device" in result.output


def test_no_time_that_is_none(small: Path) -> None:
    """A bound of nan seconds, which would be none, is refused."""
    assert run("--configuration", small, "--seconds", "nan").exit_code == 2
