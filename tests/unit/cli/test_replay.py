"""``sharestate replay``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from tests.support.own_streams import exit_code

DATA = Path(__file__).parents[2] / "data"
VECTORS = DATA / "vectors/section22"
KNOWN = DATA / "known-differences.json"


def replay(*arguments: str | Path) -> Result:
    """Run replay with *arguments*."""
    return CliRunner().invoke(sharestate, ["replay", *map(str, arguments)])


def last_line(result: Result) -> str:
    """Return the last line on standard output."""
    return result.stdout.splitlines()[-1]


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A trace below a directory whose third line expects another delivery count."""
    header, opened, acquired, *rest = (VECTORS / "ex-10-a.jsonl").read_text().splitlines()
    directory = tmp_path / "deep/er"
    directory.mkdir(parents=True)
    file = directory / "wrong.jsonl"
    file.write_text("\n".join([header, opened, acquired.replace('"ACQUIRED",1', '"ACQUIRED",7'), *rest]))
    return file


@pytest.mark.parametrize(
    ("profile", "recorded"),
    [
        ("kafka-4.3", ("kafka-tests", "vectors")),
        ("kafka-4.4", ("kafka-tests", "vectors", "kafka-tests-4.4", "vectors-4.4")),
    ],
)
def test_all_recordings_pass_but_for_known_differences(profile: str, recorded: tuple[str, ...]) -> None:
    """This is what the demo shows: all conversations agree, or are known to differ."""
    result = replay("--profile", profile, "--known-differences", KNOWN, *(DATA / name for name in recorded))

    traces = [file for name in recorded for file in (DATA / name).rglob("*.jsonl")]
    rows = {row["name"] for row in json.loads(KNOWN.read_text())["rows"]}
    known = sum(file.stem in rows for file in traces)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{known} known differences; the reasons: docs/how-we-know.md, or --list-known",
        f"{len(traces)} of {len(traces)} as expected",
    ]


def test_recordings_of_share_coordinators_are_replayed() -> None:
    """Their headers tell them from those of share partitions; with both, there is one report."""
    recordings = (DATA / "coordinator/4.3.1", DATA / "coordinator/kafka-tests", DATA / "coordinator/found")
    known = DATA / "coordinator/known-differences.json"

    result = replay("--profile", "kafka-4.3", "--level", "full", "--known-differences", known, *recordings, VECTORS)

    count = 42 + 39 + 2 + len(list(VECTORS.glob("*.jsonl")))
    assert "1 known difference" in result.stdout
    assert f"of {count} as expected" in last_line(result)


def test_a_difference_of_a_share_coordinator_is_shown_with_its_place() -> None:
    """By the rules of 4.4 another message is one at level full, and another start offset at either."""
    recording = DATA / "coordinator/4.3.1/coordinator-000.jsonl"

    result = replay("--profile", "kafka-4.4", recording)

    assert result.exit_code == 1
    assert f"{recording}:" in "".join(line.strip("│").strip() for line in result.stdout.splitlines())


def test_recordings_of_share_coordinators_are_skipped_under_other_profiles() -> None:
    """No share coordinator has the rules of the KIP's text."""
    result = replay("--profile", "kip-932", DATA / "coordinator/4.3.1/combiner.jsonl")

    assert (result.exit_code, last_line(result)) == (0, "0 of 0 as expected, 1 skipped")


def test_known_differences_can_be_listed() -> None:
    """The list gives the trace, the row and the reason of each."""
    result = replay("--list-known", "--known-differences", KNOWN, DATA / "vectors/section19")

    assert "ex-19.B4" in result.stdout
    assert "19 known differences" not in result.stdout
    assert "The log start splits a batch whose release is being written" in " ".join(result.stdout.split())


def test_a_difference_is_shown_with_its_place(wrong: Path, tmp_path: Path) -> None:
    """File, line, request and path are shown; a directory is searched with all below it."""
    shutil.copy(VECTORS / "ex-10-a.jsonl", tmp_path)

    result = replay(tmp_path)

    assert result.exit_code == 1
    assert last_line(result) == "1 of 2 as expected, 1 failed"
    text = "".join(line.strip("│").strip() for line in result.stdout.splitlines())
    assert f"{wrong}:3" in text
    assert '{"op":"acquire"' in text
    assert "state.batches[0].cell.delivery_count: expected 7, got 1" in text


def test_skipped_traces_are_counted(tmp_path: Path) -> None:
    """A trace that cannot be replayed is neither passed nor failed."""
    text = (VECTORS / "ex-10-a.jsonl").read_text()
    (tmp_path / "spy.jsonl").write_text(text.replace('"flags":[]', '"flags":["spy"]', 1))

    result = replay(tmp_path, VECTORS / "ex-10-a.jsonl")

    assert result.exit_code == 0
    assert last_line(result) == "1 of 1 as expected, 1 skipped"


def test_a_known_difference_that_is_gone_fails(tmp_path: Path) -> None:
    """A list of known differences has to be kept up to date."""
    row = {"name": "ex-10-a", "row": "B0", "reason": "It does not."}
    known = {"known_differences": 2, "profiles": ["kafka-4.4"], "level": "observable", "rows": [row]}
    (tmp_path / "known.json").write_text(json.dumps(known))
    arguments: list[str | Path] = ["--known-differences", tmp_path / "known.json", VECTORS / "ex-10-a.jsonl"]

    result = replay(*arguments)

    assert result.exit_code == 1
    assert "no longer differs: B0" in result.stdout
    assert replay("--profile", "kafka-4.3-healed", *arguments).exit_code == 0


def test_the_level_can_be_chosen(tmp_path: Path) -> None:
    """At level full, internals count."""
    text = (VECTORS / "ex-10-a.jsonl").read_text()
    file = tmp_path / "t.jsonl"
    file.write_text(text.replace('"find_next":false', '"find_next":true', 1))

    assert replay(file).exit_code == 0
    assert replay("--level", "full", file).exit_code == 1


def test_json_is_one_document(wrong: Path) -> None:
    """Programs get the counts, and each outcome but those that passed."""
    result = replay("--json", "--known-differences", KNOWN, wrong, VECTORS)

    document: Any = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (document["replay"], document["profile"], document["level"]) == (1, "kafka-4.4", "observable")
    assert (document["passed"], document["failed"], document["skipped"], document["known"]) == (75, 1, 0, 5)
    failure, *known = document["outcomes"]
    assert (failure["file"], failure["deviation"]["line"]) == (str(wrong), 3)
    assert failure["deviation"]["differences"] == [
        {"path": "state.batches[0].cell.delivery_count", "expected": "7", "got": "1"}
    ]
    assert {outcome["row"] for outcome in known} == {"orphans", "8.2"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"trace":9,"name":"t"}\n', "t.jsonl:1: trace: expected version 1, got 9"),
        ('{"trace":1,"name":"t"}\n{"request":3}\n', "t.jsonl:2: request: expected an object, got 3"),
        ('{"trace":1,"name":"t"}\nnonsense\n', "t.jsonl:2: not JSON"),
    ],
)
def test_a_bad_trace_ends_with_2(tmp_path: Path, content: str, words: str) -> None:
    """File, line and field are shown on standard error; there is no verdict."""
    file = tmp_path / "t.jsonl"
    file.write_text(content)

    result = replay(file)

    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_directory_without_traces_ends_with_2(tmp_path: Path) -> None:
    """Nothing was compared, so nothing can have passed."""
    assert "no *.jsonl" in replay(tmp_path).stderr
    assert replay(tmp_path).exit_code == 2
    assert replay(tmp_path / "nowhere").exit_code == 2
    assert replay().exit_code == 2


def test_a_pipe_gets_no_progress_bar_and_no_color(wrong: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard error stays empty, whatever the tables hold."""
    assert exit_code("replay", wrong, VECTORS) == 1

    output, errors = capfd.readouterr()
    assert errors == ""
    assert "\x1b" not in output
    assert f"{wrong}:3" in output
