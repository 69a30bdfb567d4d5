"""Runs that are kept, for the page that tells of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sharestate.testing.search import SearchProgress
from tests.oracle.search.keeping import KeepError, keep

if TYPE_CHECKING:
    from pathlib import Path


def progress() -> SearchProgress:
    """Return what a search of two sequences has come to."""
    made = SearchProgress(next=2)
    made.tally.add_sequence("ordinary", 30)
    made.tally.add_sequence("wild", 12)
    made.tally.latent["wild", "B7"] += 1
    return made


def test_a_run_is_appended(tmp_path: Path) -> None:
    """Release, profile and what was compared, after the runs that were kept before."""
    file = tmp_path / "comparisons.json"
    for kafka in ("4.2.1", "4.3.1"):
        keep(progress(), kafka=kafka, profile="kafka-x", file=file)

    kept = json.loads(file.read_text())
    assert kept["comparisons"] == 1
    assert [row["kafka"] for row in kept["rows"]] == ["4.2.1", "4.3.1"]
    assert {name: kept["rows"][1][name] for name in ("profile", "sequences", "operations", "known", "differences")} == {
        "profile": "kafka-x",
        "sequences": 2,
        "operations": 42,
        "known": 1,
        "differences": 0,
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"comparisons": 2, "rows": []}', "nonsense"])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    """Nothing is lost for the sake of a run."""
    file = tmp_path / "other.json"
    file.write_text(text)

    with pytest.raises(KeepError, match=r"other\.json"):
        keep(progress(), kafka="4.3.1", profile="kafka-4.3", file=file)
    assert file.read_text() == text
