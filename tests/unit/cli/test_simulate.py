"""``sharestate simulate``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.simulate import Load, simulate

TWO: Final = Path(__file__).parents[2] / "data/simulate/two-loads.jsonl.gz"
SMALL: Final = ("--set", "records=200", "--seeds", "2")


def ran(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["simulate", *map(str, arguments)])


def test_a_load_is_a_table() -> None:
    """With a row for each measure, and the values of ``simulate``."""
    result = ran("--set", "records=500", "--set", "lock=4s", "--seeds", 1)
    expected = simulate(Load(records=500, lock_duration_ms=4_000))

    assert result.exit_code == 0
    assert f"│ duplicates            │ {expected.duplicates:>9,} │" in result.output
    assert "│ ended                 │      done │" in result.output


def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    """A load in a file is changed by --set, and written by --save."""
    Load(records=100, members=3).write(tmp_path / "a.json")

    result = ran(tmp_path / "a.json", "--set", "lock=5s", "--save", tmp_path / "b.json", "--json")

    assert Load.read(tmp_path / "b.json") == Load(records=100, members=3, lock_duration_ms=5_000)
    assert json.loads(result.output)["load"] == Load.read(tmp_path / "b.json").to_json()


def test_a_grid_is_a_row_for_each_point() -> None:
    """With the settings in front."""
    result = ran(*SMALL, "--sweep", "lock=1s,5s", "--sweep", "members=1,2")

    assert result.exit_code == 0
    lines = [line for line in result.output.splitlines() if line.startswith("│")]
    assert [line.split("│")[1].strip() for line in lines] == ["1s", "1s", "5s", "5s"]


def test_what_if_of_a_history() -> None:
    """What was fitted, what is assumed, and three columns: the history, as it is, and changed."""
    result = ran("--like", TWO, "--group", "load-0", "--set", "lock=5s", "--seeds", 2)

    assert result.exit_code == 0
    assert "What the history does not show, and is assumed:" in result.output
    (row,) = (line for line in result.output.splitlines() if line.startswith("│ duplicates"))
    assert [cell.strip() for cell in row.split("│")[2:5:2]] == ["780", "0"]
    assert "lock_duration_ms=5s" in result.output


def test_advice_is_sentences(tmp_path: Path) -> None:
    """Also where there is none; a page has the same ones."""
    page = tmp_path / "page.html"
    result = ran("--set", "records=500", "--set", "lock=4s", "--advise", "--seeds", 2, "--html", page)

    (sentence,) = (line for line in result.output.splitlines() if line.startswith("share.record.lock.duration.ms"))
    assert "would have avoided" in sentence
    assert sentence in page.read_text()
    idle = ran("--set", "records=100", "--set", "arrival=constant:5/s", "--set", "members=2", "--advise")
    assert "No setting that was tried would have been better with every seed." in idle.output


def test_the_page_says_what_the_command_says(tmp_path: Path) -> None:
    """How simulations have ended, and of what the parts in the advice are parts."""
    page = tmp_path / "page.html"
    result = ran("--like", TWO, "--group", "load-1", "--advise", "--seeds", 2, "--html", page)
    (parts,) = (line for line in result.output.splitlines() if line.startswith("Parts are those of the simulated load"))

    assert "<td>ended</td><td></td><td>done</td>" in re.sub(r' data-head="[^"]*"', "", page.read_text())
    assert f'<p class="hint">{parts}</p>' in page.read_text()


def test_what_was_simulated_is_printed_though_the_page_cannot_be_written(tmp_path: Path) -> None:
    """Hours of simulations are not lost for it."""
    result = ran(*SMALL, "--html", tmp_path / "nowhere" / "page.html")

    assert isinstance(result.exception, FileNotFoundError)  # which ends the program with 2
    assert "│ duplicates" in result.output


def test_an_extra_that_is_missing_is_said_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages need one that draws charts."""
    monkeypatch.setitem(sys.modules, "sharestate.report.simulations", None)
    monkeypatch.setattr("sharestate.cli.simulate.sweep", lambda *_, **__: pytest.fail("was simulated"))
    result = ran(*SMALL, "--html", tmp_path / "page.html")

    assert (result.exit_code, result.stdout) == (2, "")


def test_json_has_everything() -> None:
    """The version, the grid, the fit and the advice."""
    value = json.loads(ran("--like", TWO, "--group", "load-1", "--advise", "--seeds", 2, "--json").output)

    assert (value["simulated"], value["grid"]) == (1, 1)
    assert value["fit"]["group"] == "load-1"
    assert len(value["points"][0]["results"]) == len(value["advice"]["results"]) == 2


def test_a_page_has_charts_of_a_grid(tmp_path: Path) -> None:
    """Drawn as SVG, with nothing that loads or runs; equal runs give equal pages."""
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        assert ran(*SMALL, "--set", "lock=1s", "--sweep", "members=1,2", "--html", page).exit_code == 0
    first, second = (page.read_text() for page in pages)

    assert first == second
    assert first.count("<svg") >= 3
    assert "<script" not in first
    assert "default-src 'none'" in first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "speed=5"], "no such setting"),
        (["--set", "lock=0s"], "lock_duration_ms"),
        (["--sweep", "lock=soon"], "expected a time"),
        (["--advise", "--sweep", "lock=5s"], "--advise is about one load"),
        (["--advise", "--seeds", "1"], "--advise needs two seeds"),
        (["--group", "g"], "--like names one"),
        (["--like", str(TWO)], "2 groups are in it"),
        ([str(TWO), "--like", str(TWO)], "not from both"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    """With exit code 2, and what is wrong."""
    result = ran(*arguments)

    assert result.exit_code == 2
    assert message in result.output
