"""The page on diagnoses: its commands print what it shows, and it names each rule."""

from __future__ import annotations

import gzip
import re
import shutil
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Final

import pytest

from sharestate.diagnose.diagnosis import PARTITION_RULES
from sharestate.diagnose.group_rules import GROUP_RULES
from sharestate.diagnose.stored_rules import STORED_RULES
from sharestate.simulate import SETTINGS_OF_RULES
from tests.support.protocol_pages import rows, sections
from tests.support.recipes import commands, run

PAGE: Final = "diagnose.md"
DATA: Final = Path(__file__).parents[1] / "data"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader has copied what a broker has left, with the history of a later day, and its state topic."""
    log, good = DATA / "diagnose/bad-log", DATA / "diagnose/good.jsonl.gz"
    (tmp_path / "kafka-request.log").write_bytes(gzip.decompress((log / "request.log.gz").read_bytes()))
    (tmp_path / "good.jsonl").write_bytes(gzip.decompress(good.read_bytes()))
    shutil.copytree(log / "segments", tmp_path / "data")
    shutil.copy(log / "server.properties", tmp_path)
    shutil.copytree(DATA / "segments", tmp_path / "segments")
    shutil.copy(DATA / "simulate/two-loads.jsonl.gz", tmp_path / "history.jsonl.gz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "heading",
    [
        'From "my group redelivers" to a changed setting',
        "What another setting would have changed",
        "The state topic alone",
    ],
)
def test_commands_print_what_the_page_shows(heading: str) -> None:
    """On histories of a real broker, and on its state topic."""
    for step in commands(PAGE, heading):
        printed = run(step.text).output
        assert OutputChecker().check_output(step.output, f"{printed.rstrip()}\n", ELLIPSIS), printed


def test_the_table_says_what_is_tried() -> None:
    """Each rule of which settings are computed has its row."""
    named = [row[0] for row in rows(sections(PAGE)["What another setting would have changed"]) if row[0] != "finding"]

    assert {name.strip("` ") for cell in named for name in cell.split(",")} == set(SETTINGS_OF_RULES)


def test_each_rule_has_its_place_on_the_page() -> None:
    """In the table of what one sees, but for settings and notices, which explain nothing by themselves."""
    named = set(re.findall(r"`([a-z-]+)`", (Path(__file__).parents[2] / "docs" / PAGE).read_text()))
    rules = {rule.name for rule in PARTITION_RULES} | {rule.name for rule in GROUP_RULES}
    rules |= {rule.name for rule in STORED_RULES}

    assert {name for name in rules - named if not name.startswith("stored-")} == UNNAMED


UNNAMED: Final = {"near-limit", "limit-of-one", "renewed-in-vain", "broker-threw"}
