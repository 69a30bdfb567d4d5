"""What a release of Kafka has changed, as a page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sharestate.testing.search.command import CommandPeer
from sharestate.values.profiles import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from tests.kafka_bugs.junit import Outcome, Result, expected_in
from tests.oracle import release_watch
from tests.oracle.record import STORED, Recordings, read
from tests.oracle.release_watch import (
    DATA,
    LEFT_OUT,
    MOST_LISTED,
    Part,
    answered_otherwise,
    asked_again,
    by_the_rules,
    has_tests,
    listed,
    page,
    part_of_bugs,
    part_of_recordings,
    recorded,
)

VECTOR = DATA / "vectors-4.4/dlq-reject-batch.jsonl"

PARROT = """
import json, sys
file, wrong = sys.argv[1:]
answers = [json.loads(line)["response"] for line in open(file).readlines()[1:]]
for answer, line in zip(answers, sys.stdin):
    answer["state"]["end_offset"] += json.loads(line)["op"] == wrong
    print(json.dumps(answer), flush=True)
"""
"""A release that answers as the file has it, but for one operation."""


def test_the_recordings_are_those_of_the_releases_up_to_the_profiles() -> None:
    """Under the rules of 4.3 nothing is asked that only a later release was asked."""
    assert {file.relative_to(DATA).parts[0] for file in recorded(KAFKA_4_3)} == {"kafka-tests", "vectors"}
    assert set(recorded(KAFKA_4_4)) > set(recorded(KAFKA_4_3))


@pytest.mark.parametrize(("wrong", "line"), [("", None), ("acknowledge", 4)])
def test_what_is_answered_otherwise_is_told_with_its_line(wrong: str, line: int | None) -> None:
    """A release that answers as before has changed nothing; else the first line that differs is named."""
    with CommandPeer([sys.executable, "-c", PARROT, str(VECTOR), wrong]) as release:
        changed = [each for each, _ in asked_again([VECTOR], release)]

    assert [each.line for each in changed] == ([] if line is None else [line])
    assert all("state.end_offset: expected" in str(each) for each in changed)


def test_what_the_rules_of_its_line_say_is_no_change() -> None:
    """4.2 keeps the limit that it was opened with, as the profile does; what nobody's rules say is told."""
    file = STORED["4.3"] / "testDynamicDeliveryCountDecreaseCausesArchival.jsonl"
    command = [sys.executable, "-m", "sharestate", "serve", "--profile", "kafka-4.2"]
    with CommandPeer(command) as release:
        ((changed, answered),) = asked_again([file], release)

    assert by_the_rules([(changed, answered)], KAFKA_4_2) == ([], [changed])
    assert by_the_rules([(changed, answered)], KAFKA_4_3) == ([changed], [])


def test_tests_that_the_rules_do_not_know_are_told() -> None:
    """A test of 4.4.0 is answered otherwise by the rules of 4.3, and as it was by those of 4.4."""
    name = "testAcknowledgePerOffsetRejectWithDlqEnabled"
    made = Recordings({name: read(STORED["4.4"] / f"{name}.jsonl")}, {})

    assert [changed.name for changed in answered_otherwise(made, [name], KAFKA_4_3)] == [name]
    assert answered_otherwise(made, [name], KAFKA_4_4) == []


def test_a_call_that_only_a_test_can_make_is_no_change() -> None:
    """A lock that is fired before its time says nothing about a release."""
    name = "testLsoMovementForArchivingAllAvailableBatches"
    made = Recordings({name: read(STORED["4.3"] / f"{name}.jsonl")}, {})

    assert answered_otherwise(made, [name], KAFKA_4_3.healed) == []


@pytest.mark.parametrize(
    ("kafka", "tests", "has"),
    [
        ("4.2.2", [], False),
        ("4.3.1", [], True),
        ("4.3.2", [], False),
        ("4.4.0", [], False),
        ("4.4.0", [Path("tests.jar")], True),
    ],
)
def test_tests_are_recorded_where_there_are_any(kafka: str, tests: list[Path], has: bool) -> None:  # noqa: FBT001
    """Up to 4.3.1 they are published; later a jar has to be named. Of 4.2 none can be recorded."""
    assert has_tests(kafka, tests) is has


def test_the_page_is_markdown_with_a_verdict() -> None:
    """It says how much has changed, and has a heading for each part."""
    asked = part_of_recordings(7, [], [], "kafka-4.4")
    parts = [asked, Part("Kafka's own tests", (LEFT_OUT,)), Part("Search", ("1", "- x"), 1)]

    lines = page("5.0.0", KAFKA_4_4, parts).splitlines()

    assert lines[0] == "# Kafka 5.0.0 beside `kafka-4.4`"
    assert lines[2] == "Made by `make release-watch KAFKA=5.0.0 PROFILE=kafka-4.4`. 1 things are answered otherwise."
    assert [line for line in lines if line.startswith("##")] == [
        "## What was recorded before",
        "## Kafka's own tests",
        "## Search",
    ]
    assert "Nothing is answered otherwise." in page("5.0.0", KAFKA_4_4, parts[:2])


@pytest.mark.parametrize(
    ("arguments", "profile"),
    [
        (["--kafka", "4.2.2"], "kafka-4.2"),
        (["--kafka", "4.3.2"], "kafka-4.3"),
        (["--kafka", "5.0.0"], "kafka-4.4"),
        (["--kafka", "4.4.0", "--profile", "kafka-4.3"], "kafka-4.3"),
    ],
)
def test_a_release_is_held_against_the_rules_of_its_line(
    arguments: list[str], profile: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One with two numbers in common with a profile is compared with that one, and any other with the latest."""
    monkeypatch.setattr(sys, "argv", ["release_watch", *arguments])
    monkeypatch.setattr(release_watch, "watch", lambda *_: [])

    with pytest.raises(SystemExit) as ended:
        release_watch.main()

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"# Kafka {arguments[1]} beside `{profile}`")


def test_a_release_that_fixes_a_bug_has_changed_something() -> None:
    """What is fixed, and what is not known, is named and counted; what is as before is neither."""
    results = {
        "F1": Result(Outcome.PRESENT, "as known"),
        "F2": Result(Outcome.FIXED),
        "F3": Result(Outcome.FIXED),
        "F4": Result(Outcome.BROKEN, "an error"),
    }

    part = part_of_bugs(results, "4.3.1", {"F1": True, "F2": True, "F3": False, "F4": True})

    assert part.changes == 2
    assert part.text[0] == "Of 4 bugs that have a JUnit test, 1 are present. Beside 4.3.1, fixed: F2."
    assert part.text[-1] == "- F4: an error"


def test_a_long_list_is_cut() -> None:
    """What is not listed is counted."""
    assert listed(range(MOST_LISTED)).count("\n") == MOST_LISTED - 1
    assert listed(range(MOST_LISTED + 5)).endswith("- and 5 more")


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
def test_a_release_whose_rules_the_library_has_changes_nothing(tmp_path: Path) -> None:
    """4.4.0 beside kafka-4.4: all recordings are answered as before, and a short search finds no difference."""
    arguments = ["--kafka", "4.4.0", "--ops", "2000", "--jobs", "1", "--write", str(tmp_path / "page.md")]

    ended = subprocess.run(
        [sys.executable, "-m", "tests.oracle.release_watch", *arguments], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout == (tmp_path / "page.md").read_text()
    assert f"{len(recorded(KAFKA_4_4))} conversations with other releases were repeated; 0 are" in ended.stdout
    assert json.dumps(LEFT_OUT)[1:-1] in ended.stdout
    present = sum(expected_in("4.4.0").values())
    assert f"bugs that have a JUnit test, {present} are present. Beside 4.4.0, the same." in ended.stdout
