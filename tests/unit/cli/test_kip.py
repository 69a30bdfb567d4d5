"""``sharestate kip``."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate


def kip(*arguments: str, columns: int | None = None) -> Result:
    """Run kip with *arguments*, where there is no terminal, or as if in one of so many *columns*."""
    terminal = {} if columns is None else {"FORCE_COLOR": "1", "COLUMNS": str(columns)}
    return CliRunner().invoke(sharestate, ["kip", *arguments], env=terminal)


STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""What a terminal takes for bold and colors."""

VERDICTS = {
    "write": "12 of 12 rows, 8 of 8 requests as the KIP prints them; 5 corrections",
    "control": "12 of 12 rows, 9 of 9 records as the KIP prints them; 5 corrections",
    "checkpoint": "12 of 12 rows, 2 of 2 records as the KIP prints them; 4 corrections",
    "keys": "6 of 6 rows, 6 of 6 records as the KIP prints them; 1 correction",
}


SECTIONS = {
    "write": 'KIP-932, "Examples with share-group state"',
    "control": 'KIP-932, "Examples with control records", in an older version',
    "checkpoint": 'KIP-932, "Examples", in an older version',
    "keys": 'KIP-932, "Share-group state records", in an older version',
}

KIP = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka"

VERSIONS = "https://cwiki.apache.org/confluence/pages/viewpreviousversions.action?pageId=255070434"


def test_all_tables_agree() -> None:
    """Without options every table is shown, each with its verdict."""
    result = kip()

    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if "as the KIP prints them" in line] == list(VERDICTS.values())
    assert "✗" not in result.stdout


@pytest.mark.parametrize("name", VERDICTS)
def test_one_table_can_be_chosen(name: str) -> None:
    """Its title comes first and its verdict last."""
    lines = kip("--table", name).stdout.strip().splitlines()

    assert lines[0] == SECTIONS[name]
    assert lines[1] == (KIP + "#KIP932:QueuesforKafka-Exampleswithshare-groupstate" if name == "write" else VERSIONS)
    assert lines[-1] == VERDICTS[name]


def test_the_lines_of_the_texts_are_told_on_demand() -> None:
    """They are those of files that nobody else has, so it takes an option."""
    assert "001:" not in kip().stdout + kip("--json").stdout
    assert "(001:126-363)" in kip("--table", "write", "--source").stdout.splitlines()[0]
    assert kip("--json", "--source").stdout.count('"file": "001_291c6f4088378437.txt"') == 12 + 12 + 12 + 6


def marks(result: Result) -> tuple[int, int]:
    """Return how many marks for and against there are."""
    return result.stdout.count("✓"), result.stdout.count("✗")


def test_everything_that_was_compared_has_a_mark() -> None:
    """State changes and cumulative state of twelve rows, and what is written in them."""
    assert marks(kip("--table", "write")) == (12 + 12 + 8, 0)
    assert marks(kip("--table", "control")) == (12 + 12 + 9, 0)
    assert marks(kip("--table", "checkpoint")) == (12 + 12 + 2, 0)
    assert marks(kip("--table", "keys")) == (6, 0)


def test_a_difference_is_marked_and_shown() -> None:
    """Under a broker's rules the eight requests differ: each is marked, and what was written stands below it."""
    result = kip("--table", "write", "--profile", "kafka-4.3")

    assert result.exit_code == 1
    assert marks(result) == (12 + 12, 8)
    assert "4 of 12 rows, 0 of 8 requests as the KIP prints them" in result.stdout
    assert (
        result.stdout.count("the leader:") == 8
    )  # of the ten writes of brokers, one less for the first row and one more for two locks


def test_corrections_are_listed_below_the_table() -> None:
    """Each one has its row and a reason, and its text a star."""
    lines = kip("--table", "control").stdout.splitlines()

    told = [line for line in lines if line.startswith("* row")]
    assert [line.split(":")[0] for line in told] == ["* row 1", "* row 1", "* row 6", "* row 10", "* row 11"]
    assert sum(" * " in line and "│" in line for line in lines) == 4


def test_captions_stand_between_the_rows() -> None:
    """The KIP's sentences stand where it prints them."""
    lines = kip("--table", "write").stdout.splitlines()

    (messy,) = [number for number, line in enumerate(lines) if line.startswith("With a messier sequence")]
    (before,) = [number for number, line in enumerate(lines) if "SPSO=110, SPEO=110" in line]
    (after,) = [number for number, line in enumerate(lines) if "Consumer 1 gets" in line]
    assert before < messy < after


def test_an_alternative_stands_below_what_it_replaces() -> None:
    """The KIP's words for it stand between the two records."""
    output = kip("--table", "control").stdout

    delta, words, checkpoint = map(output.index, ("DELTA offset 137", "or alternatively", "CHECKPOINT offset 137"))
    assert delta < words < checkpoint


@pytest.mark.parametrize(("columns", "width"), [(60, 60), (80, 80), (100, 100), (140, 100)])
def test_a_table_fits_its_terminal(columns: int, width: int) -> None:
    """But for the address, no line is wider than the terminal or than 100 characters, and no word is broken."""
    lines = STYLE.sub("", kip("--table", "write", columns=columns).stdout).splitlines()

    assert max(len(line) for line in lines if not line.startswith("https:")) == width
    assert {len(line) for line in lines if line.startswith("│")} == {width}
    assert sum("topic-partition" in line for line in lines) == 1
    assert sum('"TopicId": topic_uuid' in line for line in lines) == 8


def test_json_has_the_rows_of_one_table() -> None:
    """One array, with these members and no others."""
    result = kip("--table", "write", "--json")

    rows: Any = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(rows) == 12
    assert {tuple(row) for row in rows} == {("operation", "state_changes", "cumulative_state", "request", "source")}
    assert sum(row["request"] is not None for row in rows) == 8


def test_json_of_all_tables_is_one_array() -> None:
    """Their rows follow each other, in the form that those of one table have."""
    together: Any = json.loads(kip("--json").stdout)

    apart = [json.loads(kip("--json", "--table", table).stdout) for table in ("write", "control", "checkpoint", "keys")]
    assert together == [row for rows in apart for row in rows]


def test_a_terminal_without_the_signs_shows_others() -> None:
    """The table is shown all the same, with a question mark where the terminal lacks a character."""
    result = CliRunner(charset="ascii").invoke(sharestate, ["kip", "--table", "write"])

    assert result.exit_code == 0
    assert VERDICTS["write"] in result.stdout
    assert "SPSO=100, SPEO=100 ?" in result.stdout


def test_json_ends_with_1_too() -> None:
    """The exit code tells programs whether everything agrees."""
    assert kip("--json", "--table", "write", "--profile", "kafka-4.3").exit_code == 1


def test_other_tables_are_refused() -> None:
    """The KIP has four."""
    result = kip("--table", "read")

    assert result.exit_code == 2
    assert "'write', 'control', 'checkpoint', 'keys'" in result.stderr
