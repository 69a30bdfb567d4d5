"""The command ``diagnose``: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.diagnose import diagnose, read_facts
from tests.support.hand_made_stories import Story

DATA: Final = Path(__file__).parents[2] / "data"
BAD, GOOD = DATA / "diagnose/bad.jsonl.gz", DATA / "diagnose/good.jsonl.gz"


def run(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["diagnose", *map(str, arguments)])


def test_findings_end_it_with_1() -> None:
    """The table, what shows it, and what to do."""
    result = run(BAD)

    assert result.exit_code == 1
    assert "2 findings in 1 share partition, 45 events." in result.stdout
    assert "warning: acquisition locks are shorter than processing takes (lock-too-short)" in result.stdout
    assert "What to do: Set share.record.lock.duration.ms of the group to 2000" in result.stdout


def test_nothing_found_ends_it_with_0() -> None:
    """What was done is said, and nothing else."""
    result = run(GOOD)

    first, second = result.stdout.splitlines()

    assert (result.exit_code, first) == (0, "Nothing found in 1 share partition, 38 events.")
    assert second.startswith("group billing: 200 records delivered, 200 deliveries; half were done within ")
    assert second.endswith("; 1 member; lag 0 at the end")


def test_what_is_not_checked_ends_it_with_2(tmp_path: Path) -> None:
    """Nothing was found, but not everything could be."""
    story = Story(log=10)
    story.happens("fetch", "m1", {"max_records": 10}, {"acquired": ()})
    result = run(story.save(tmp_path / "history.jsonl"))

    assert result.exit_code == 2
    assert "Not checked in group g, orders-0, because 1 time something was observed" in result.stdout


def test_json_is_one_document() -> None:
    """It is that of the library."""
    assert json.loads(run(BAD, "--json").stdout) == diagnose(read_facts(BAD)).to_json()


@pytest.mark.parametrize("options", [("--group", "billing"), ("--topic", "payments"), ("--partition", "0")])
def test_options_choose_share_partitions(options: tuple[str, str]) -> None:
    """By group, by the topic's name, by partition."""
    assert json.loads(run(BAD, "--json", *options).stdout)["share_partitions"] == 1


@pytest.mark.parametrize("options", [("--group", "bills"), ("--topic", "orders"), ("--partition", "1")])
def test_options_that_choose_nothing_are_refused(options: tuple[str, str]) -> None:
    """Nothing found would be no answer."""
    result = run(BAD, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such share partition is in" in result.stderr


def test_a_comparison_says_what_differs() -> None:
    """It ends with 1 if something does, with 0 if nothing does."""
    result, same = run(BAD, "--against", GOOD), run(BAD, "--against", BAD)

    assert (result.exit_code, same.exit_code) == (1, 0)
    assert "group billing: the setting record_lock_duration_ms is 1000, where it was 3000" in result.stdout
    assert same.stdout == "Nothing has changed by a half or more.\n"
    assert json.loads(run(BAD, "--against", GOOD, "--json").stdout)["groups"] == ["billing"]


def test_histories_without_a_common_group_are_not_comparable(tmp_path: Path) -> None:
    """That ends it with 2."""
    other = Story(log=10)
    other.work("m1")
    result = run(BAD, "--against", other.save(tmp_path / "other.jsonl"))

    assert result.exit_code == 2
    assert "Not comparable: they have no group in common." in result.stdout


def test_the_page_has_what_the_command_prints(tmp_path: Path) -> None:
    """A page without a script."""
    page = tmp_path / "page.html"
    run(BAD, "--html", page)
    text = page.read_text()

    assert "acquisition locks are shorter than processing takes" in text
    assert "60 deliveries of 240 (25 %) have expired" in text
    assert "<script" not in text


def test_the_state_topic_is_judged() -> None:
    """Of segments of a broker, with what they do not say."""
    result = run("--state", DATA / "segments")

    assert "The state topic does not say:" in result.stdout
    assert result.exit_code in {1, 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'HISTORY'."),
        ((BAD, "--state", DATA / "segments"), "Give either a history, or --bootstrap or --state."),
        (("--state", DATA / "segments", "--against", BAD), "--against compares two histories"),
        ((DATA / "README.md",), "expected a name that ends with"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str | Path, ...], message: str) -> None:
    """With exit code 2."""
    result = run(*arguments)

    assert result.exit_code == 2
    assert message in result.output
