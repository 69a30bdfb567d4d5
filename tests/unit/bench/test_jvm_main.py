"""What ``python -m bench.jvm`` does with its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.jvm import __main__ as program
from bench.jvm.comparing import BYTES, MICROSECONDS, Pair
from bench.workloads import WHOLE, WORKLOADS

HELD = Pair("record of split batches", BYTES, kafka=205.0, library=9.2)
HELD_AS_JSON = {"what": "record of split batches", "unit": "bytes", "kafka": 205.0, "library": 9.2, "later": None}
MARKS = "{}<!-- comparison: what follows is written by `make bench-jvm WRITE=docs/growth.md` -->\n{}{}{}"


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody measure anything."""

    def rounds(_: object, count: int, workloads: Sequence[str]) -> Iterator[Pair]:
        return (Pair(workload, MICROSECONDS, 1.0, 2.0, 1.0) for _ in range(count) for workload in workloads)

    monkeypatch.setattr(program, "build", lambda **_: None)
    monkeypatch.setattr(program, "rounds", rounds)
    monkeypatch.setattr(program, "memory", lambda _: iter([HELD]))
    monkeypatch.setattr(program, "_about", lambda rounds: [f"{rounds} rounds"])


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
    assert len(kept["pairs"]) == 3 * len(WORKLOADS) + 1
    assert kept["pairs"][-1] == HELD_AS_JSON


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
