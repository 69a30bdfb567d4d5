"""The page about sizes: its commands print what it says, and its tables have every setting and every measure."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from sharestate.simulate import MEASURES, Load
from sharestate.simulate.load import SETTINGS, read_value
from tests.docs.test_log_to_answers import is_printed
from tests.support.protocol_pages import rows, sections
from tests.support.recipes import commands, run

PAGE: Final = "simulate.md"
TWO: Final = Path(__file__).parents[1] / "data/simulate/two-loads.jsonl.gz"


@pytest.mark.parametrize("heading", ['From "my group redelivers" to a changed setting', "Loads"])
def test_the_commands_print_what_the_page_shows(heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the history of a broker whose members lost most of their polls to a lock that was too short."""
    shutil.copy(TWO, tmp_path / "history.jsonl.gz")
    monkeypatch.chdir(tmp_path)

    steps = commands(PAGE, heading)
    assert steps
    for step in steps:
        result = run(step.text)
        assert result.exit_code == 0, result.output
        assert is_printed(step.output, result.output), (step.text, result.output)


def listed(heading: str) -> list[list[str]]:
    """Return the rows of a table without its head."""
    return [row for row in rows(sections(PAGE)[heading]) if row[0] not in {"setting", "measure"}]


def test_every_setting_is_on_the_page() -> None:
    """In the order of the class, with its default, and those of Kafka with its names."""
    settings = {
        name.strip("`"): (default.strip("`").replace(" ", ""), words) for name, default, words in listed("Loads")
    }

    assert list(settings) == list(SETTINGS)
    for name, (default, words) in settings.items():
        assert read_value(name, default) == getattr(Load(), name)
        assert SETTINGS[name].metadata["kafka"] in words


def test_the_example_of_a_file_is_a_load() -> None:
    """It is read."""
    (text,) = re.findall(r"```json\n(.*?)```", sections(PAGE)["Loads"], re.DOTALL)

    assert Load.from_json(json.loads(text)).members == 4


def test_measures_have_the_names_of_the_tables() -> None:
    """What the page explains of measures is what the tables call them."""
    explained = [name for row in listed("What comes of it") for name in row[0].split(", ")]

    assert {name for name in explained if name != "latency"} <= set(MEASURES.values())
