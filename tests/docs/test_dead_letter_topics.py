"""The page on dead-letter topics: its command prints what it says, on what a broker has left."""

from __future__ import annotations

import json
import shutil
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest

from tests.support.dead_letter_topics import RECORDED
from tests.support.protocol_pages import sections
from tests.support.recipes import commands, run

PAGE = "dead-letter-topics.md"


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three dots stand for anything."""
    shutil.copytree(RECORDED, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (command,) = commands(PAGE, "What it says")
    result = run(command.text)

    assert result.exit_code == 1
    assert OutputChecker().check_output(command.output, f"{result.output.rstrip()}\n", ELLIPSIS), result.output


def test_the_page_shows_a_line_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each field of it."""
    shutil.copytree(RECORDED, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (command,) = commands(PAGE, "What it says")
    run(f"{command.text} --redrive plan.jsonl")
    text = sections(PAGE)["A redrive plan"]
    shown = json.loads(text.partition("```json\n")[2].partition("```")[0])
    _, *ranges = map(json.loads, Path("plan.jsonl").read_text().splitlines())

    assert shown in ranges
    explained = {"redrive", "letters_of_each", "pattern", "rule", "excluded_because"}
    assert explained <= {name for each in ranges for name in each}
    assert all(f"`{name}`" in text for name in explained)
