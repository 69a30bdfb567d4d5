"""What ``python -m bench.jvm`` does with its figures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from bench.calls import calls
from bench.jvm import __main__ as program
from bench.jvm.comparing import BYTES, MICROSECONDS, Round, readings
from bench.workloads import RUNS, WHOLE, WORKLOADS, as_read

HELD = Round("record of split batches", BYTES, kafka=205.0, library=9.2)
HELD_AS_JSON = {
    "what": "record of split batches",
    "unit": "bytes",
    "library": 9.2,
    "kafka": 205.0,
    "later": None,
    "base": None,
}
MARKS = "{}<!-- comparison: what follows is written by `make growth` -->\n{}{}{}"
CALLS = cache(calls)
"""Counts calls, which are the same each time."""


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody measure anything."""

    def rounds(count: int, names: Sequence[str], oracle: object, base: object) -> Iterator[Round]:
        kafka, other = (1.0 if oracle else None), (2.0 if base else None)
        return (
            Round(what, MICROSECONDS, 2.0, kafka, kafka, other)
            for _ in range(count)
            for name in names
            for what in readings(name)
        )

    monkeypatch.setattr(program, "build", lambda *_, **__: "Kafka")
    monkeypatch.setattr(program, "calls", CALLS)
    monkeypatch.setattr(program, "rounds", rounds)
    monkeypatch.setattr(program, "memory", lambda *_: iter([HELD]))
    monkeypatch.setattr(program, "_about", lambda arguments: [f"{arguments.rounds} rounds"])
    monkeypatch.setattr(program, "checked_out", nullcontext)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run the program."""
    monkeypatch.setattr("sys.argv", ["bench.jvm", *arguments])
    program.main()


def test_in_a_pipe_only_the_tables_are_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal there is no progress bar, and the tables are on standard output."""
    run(monkeypatch, "--rounds", "2")

    written = capsys.readouterr()
    assert written.err == ""
    assert written.out.startswith("2 rounds\n\n| 500 records")
    assert "| record of split batches |" in written.out


def test_one_workload_is_measured_without_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who asks for one workload waits for nothing else."""
    run(monkeypatch, "--workload", WHOLE)

    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("| whole")


def test_everything_that_was_measured_can_be_had_as_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file holds each figure of each round, and what was measured with what."""
    run(monkeypatch, "--rounds", "3", "--json", str(tmp_path / "figures.json"))

    kept = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert kept["about"] == ["3 rounds"]
    assert len(kept["rounds"]) == 3 * 2 * len(WORKLOADS) + 1
    assert kept["rounds"][-1] == HELD_AS_JSON


def test_the_tables_are_put_into_a_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --write they are in the file, between the marks, and not on standard output."""
    page = tmp_path / "growth.md"
    page.write_text(MARKS.format("before\n", "old\n", "<!-- end of the comparison -->\n", "after\n"), "utf-8")

    run(monkeypatch, "--write", str(page))

    before, *_, after = page.read_text("utf-8").splitlines()
    assert (before, after) == ("before", "after")
    assert "5 rounds" in page.read_text("utf-8")
    assert "old" not in page.read_text("utf-8")
    assert capsys.readouterr().out == ""


def test_two_trees_are_compared_without_java(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --no-jvm nothing of Kafka is built, and neither calls nor memory are counted."""
    monkeypatch.setattr(program, "build", lambda *_, **__: pytest.fail("Kafka was built"))

    run(monkeypatch, "--no-jvm", "--base", "HEAD", "--rounds", "1")

    written = capsys.readouterr().out
    assert "Kafka" not in written
    assert written.count("+0.0 %") == 3 * 2 * len(WORKLOADS)
    assert len(written.splitlines()) == 1 + 2 * (3 + len(WORKLOADS))


def _lines_without_git(*command: str) -> list[str]:
    """Return what *command* prints; where the tests of the wheel run there is no repository that could be asked."""
    if command[0] == "git":
        return ["Base: 0123abc of 2026-01-01."]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_instructions_are_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without valgrind the rest is measured, and the page says what it lacks and how to get it."""
    monkeypatch.undo()
    monkeypatch.setattr(program, "rounds", lambda *_: iter([Round(as_read(WHOLE, RUNS), MICROSECONDS, 2.0, base=2.0)]))
    monkeypatch.setattr(program, "checked_out", nullcontext)
    monkeypatch.setattr(program, "_lines", _lines_without_git)
    monkeypatch.setattr("shutil.which", lambda _: None)

    run(monkeypatch, "--no-jvm", "--base", "HEAD", "--instructions", "--rounds", "1")

    written = capsys.readouterr().out
    assert (
        "Instructions are not counted: there is no valgrind; on Debian or Ubuntu: apt-get install valgrind." in written
    )
    assert "| whole " in written
    assert "thousands of instructions" not in written
