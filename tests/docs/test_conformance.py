"""The page on conformance, and the vectors that come with the library."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from zipfile import ZipFile

import pytest

from generate import vectors, vectors_archive
from tests.support.recipes import commands, run


def test_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own report, and that without Kafka's bugs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for step in commands("conformance.md", "A report"):
        printed = run(step.text).output
        assert OutputChecker().check_output(step.output, f"{printed.rstrip()}\n", ELLIPSIS), printed
    assert (tmp_path / "conformance.html").stat().st_size > 0
    assert (tmp_path / "badge.svg").read_text().count("56 of 56 rules of 4.4.0") == 3


def test_the_vectors_are_the_recordings() -> None:
    """The file is what is made of them; `make diagrams` makes it anew."""
    assert gzip.decompress(vectors.FILE.read_bytes()).decode().splitlines() == list(vectors.lines())


def test_names_lead_to_rules() -> None:
    """A rule by a name, one by Kafka's test, and a recording that is in no row."""
    assert vectors.rules_by_name("ex-7.11-c") == ("7.11",)
    assert vectors.rules_by_name("testRenewAcknowledgeWithPerOffsetAck") == ("20.2",)
    assert vectors.rules_by_name("found-overtaken-write") == ()


def test_the_archive_has_an_index_by_rule(tmp_path: Path) -> None:
    """Each vector and script stands there with its rules, releases and source; two archives are equal."""
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    vectors_archive.write(first)
    vectors_archive.write(second)

    with ZipFile(first) as archive:
        files = {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    assert first.read_bytes() == second.read_bytes()
    assert files.keys() == {"LICENSE", "index.csv", "scripts.jsonl", "vectors.jsonl"}
    assert "Apache License" in files["LICENSE"]
    rows = list(csv.DictReader(io.StringIO(files["index.csv"])))
    for name in ("scripts.jsonl", "vectors.jsonl"):
        assert len({row["name"] for row in rows if row["file"] == name}) == files[name].count("\n") - 1
    throttled = next(row for row in rows if (row["rule"], row["file"]) == ("20.3", "scripts.jsonl"))
    assert throttled["name"] == "throttled"
    assert throttled["source"] == "brokers of Kafka 4.2.1, 4.2.2, 4.3.1, 4.4.0"
