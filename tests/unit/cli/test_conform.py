"""The command ``conform``: its table, its files and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from tests.support.conforming import HEADER, VECTOR, planted, served


def run(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["conform", *map(str, arguments)])


def test_a_failure_is_shown_everywhere(tmp_path: Path) -> None:
    """In the table, on the page and on the badge, with the vector in which closing a session stops too early (B3)."""
    page, badge = tmp_path / "page.html", tmp_path / "badge.svg"

    result = run("--html", page, "--badge", badge, "--", *planted("b3"))

    assert result.exit_code == 1
    assert "Rule 9 fails, at the shortest in change-B3:" in result.stdout
    assert "Vector change-B3;" in page.read_text()
    assert '<a href="#rule-9">9</a>' in page.read_text()
    title = ET.fromstring(badge.read_text()).findtext("{*}title")  # noqa: S314 - our own file
    assert title == f"share groups: {result.stdout.splitlines()[-1].removeprefix('failed: ')}"


def test_json_and_the_badge_for_shields_count_alike(tmp_path: Path) -> None:
    """Both say how many rules have passed."""
    badge = tmp_path / "badge.json"

    result = run("--release", "4.3.1", "--json", "--badge", badge, "--", *served("kafka-4.3"))

    found = json.loads(result.stdout)
    passed = sum(bool(rule["rule"]) and rule["verdict"] == "passed" for rule in found["rules"])
    assert (result.exit_code, found["conformance"], found["verdict"]) == (0, 1, "passed")
    assert json.loads(badge.read_text())["message"] == f"{passed} of {passed} rules of 4.3.1"


def test_what_cannot_be_judged_ends_with_2(tmp_path: Path) -> None:
    """No such release, program or answer, and a file that is none of vectors."""
    file = tmp_path / "vectors.jsonl"
    file.write_text(json.dumps(HEADER | {"vectors": 9}))
    silent = [sys.executable, "-c", ""]

    results = [
        run("--release", "3.0", "--", *silent),
        run("--", "no-such-program"),
        run("--", *silent),
        run("--vectors", file, "--", *silent),
    ]

    assert [result.exit_code for result in results] == [2] * 4
    assert "no such program" in results[1].stderr


def test_other_vectors_are_asked(tmp_path: Path) -> None:
    """A file of one's own takes the place of those of the library."""
    file = tmp_path / "vectors.jsonl"
    file.write_text(f"{json.dumps(HEADER)}\n{json.dumps(VECTOR)}\n")
    program = "import sys\nfor line in sys.stdin: print('{}', flush=True)"

    result = run("--vectors", file, "--", sys.executable, "-c", program)

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "passed: 1 of 1 rules of 4.4.0")
