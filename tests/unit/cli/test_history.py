"""``sharestate history generate``, ``replay`` and ``show``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.history import Event, create_history, open_history
from sharestate.history.synthetic import SyntheticHistory
from tests.support.terminals import on_terminal

KEY = ("group-0", "AAAAAAAAAAAAAAAAAAAAAg", 1)


def history(*arguments: str | int | Path) -> Result:
    """Run a command of the group with *arguments*."""
    return CliRunner().invoke(sharestate, ["history", *map(str, arguments)])


@pytest.fixture
def synthetic(tmp_path: Path) -> Path:
    """A synthetic history of three share partitions."""
    path = tmp_path / "history.parquet"
    size = ("--share-partitions", "3", "--events", "400", "--hot", "25", "--seed", "7")
    result = history("generate", *size, path)
    assert (result.exit_code, result.output) == (0, "")
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_the_same_seed_gives_the_same_history(tmp_path: Path, synthetic: Path, suffix: str) -> None:
    """A history is the same in every format, and whether it is written or made by a program."""
    other = tmp_path / f"other{suffix}"
    history("generate", "--share-partitions", 3, "--events", 400, "--hot", 25, "--seed", 7, other)

    made = list(SyntheticHistory(share_partitions=3, events=400, hot_percent=25, seed=7))

    assert list(open_history(synthetic)) == list(open_history(other)) == made


def test_a_synthetic_history_has_the_size_that_was_asked_for(synthetic: Path) -> None:
    """The first share partition has its part of the events besides its share of the others."""
    counts = Counter(event.partition for event in open_history(synthetic))

    assert counts == {0: 200, 1: 100, 2: 100}


def test_a_synthetic_history_replays_without_differences(synthetic: Path, tmp_path: Path) -> None:
    """A replay counts what was replayed, writes a directory for each kind of rows, and ends with 0."""
    result = history("replay", "--json", synthetic, tmp_path / "rows")

    report = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (report["history_replay"], report["share_partitions"], report["events"]) == (1, 3, 400)
    assert {path.name for path in (tmp_path / "rows").iterdir()} == {f"kind={kind}" for kind in report["rows"]}
    assert "difference" not in report["rows"]


def test_differences_end_with_1(tmp_path: Path) -> None:
    """A history with an answer that cannot have been is replayed to the end; the table counts the differences."""
    path = tmp_path / "history.jsonl"
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    with create_history(path) as file:
        file.write(
            [
                Event.of(KEY, 0, "initialize", response=read),
                Event.of(KEY, 1, "close", member_id="m1", response={"error": "unknown_member_id"}),
            ]
        )

    result = history("replay", path, tmp_path / "rows.jsonl")

    assert result.exit_code == 1
    assert "rows: difference" in result.stdout


def test_progress_is_shown_on_a_terminal(synthetic: Path, tmp_path: Path) -> None:
    """Who waits at a terminal sees how far a replay is; the table is not disturbed by it."""
    shown = on_terminal(tmp_path / "table", "history", "replay", synthetic, tmp_path / "rows")

    assert "replaying" in shown
    assert "replaying" not in (tmp_path / "table").read_text()


@pytest.mark.parametrize("target", ["there.jsonl", "history.parquet"])
def test_what_is_there_is_not_written_over(synthetic: Path, tmp_path: Path, target: str) -> None:
    """A target that exists ends the command with 2."""
    (tmp_path / "there.jsonl").touch()

    result = history("replay", synthetic, tmp_path / target)

    assert result.exit_code == 2
    assert f"{target}: is there already" in result.stderr


def test_a_malformed_history_ends_with_2(tmp_path: Path) -> None:
    """The message names file, line and field."""
    path = tmp_path / "history.jsonl"
    path.write_text('{"sharestate_history":2,"order":"causal"}\n{"group_id":3}\n')

    result = history("replay", path, tmp_path / "rows.jsonl")

    assert result.exit_code == 2
    assert f"{path}:2: group_id: expected a string" in result.stderr


def test_a_name_that_says_no_format_is_refused(tmp_path: Path) -> None:
    """A history is written to a name that says how."""
    result = history("generate", tmp_path / "history.csv")

    assert result.exit_code == 2
    assert "ends with .jsonl" in result.stderr


def test_one_share_partition_is_shown(synthetic: Path) -> None:
    """The life of a share partition has a line for each event, in order, and below it what it has led to."""
    group_id, topic_id, partition = KEY
    where = ("--group", group_id, "--topic", topic_id, "--partition", partition)

    result = history("show", *where, synthetic)

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [line.split()[0] for line in lines if line[:8].strip()] == [str(number) for number in range(100)]
    assert any(line.startswith(" " * 10 + "transition ") for line in lines)


def test_a_share_partition_that_is_not_there_ends_with_2(synthetic: Path) -> None:
    """Those of which the history has something are listed."""
    result = history("show", "--group", "g", "--topic", "t", "--partition", 0, synthetic)

    assert result.exit_code == 2
    assert "; there are: --group group-0 --topic AAAAAAAAAAAAAAAAAAAAAg --partition " in result.stderr
    assert "--partition 1; " in result.stderr
