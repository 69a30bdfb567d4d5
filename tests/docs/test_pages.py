"""The pages as a whole: generated ones are fresh, all are listed, people find them, and samples fit their column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from generate.data import read_rows
from generate.how_we_know import recordings
from generate.markdown import WIDEST
from generate.pages import DOCS, PAGES
from sharestate.kip932 import TABLES, read_table

README: Final = DOCS.parent / "README.md"

SOUGHT: Final = {
    "why": {"duplicate", "redelivered", "delivered twice", "stuck", "lag", "lost"},
    "leader": {"restart", "failover"},
    "install": {"install", "completion"},
    "log-to-answers": {"kubernetes", "request log"},
    "kips": {"KIP"},
    "monitor": {"monitor", "lag exporter", "Prometheus", "KEDA"},
    "dead-letter-topics": {"DLQ", "poison record", "redrive"},
}
"""What people type into the search, by the page that answers it."""


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    """What is committed is what `make diagrams` would write."""
    assert (DOCS / name).read_text() == PAGES[name](), "run make diagrams"


def listed() -> dict[str, list[str]]:
    """Return the pages below each caption of the index."""
    trees = re.findall(r":caption: (.+)\n\n((?:\S+\n)+)```", (DOCS / "index.md").read_text())
    return {caption: pages.split() for caption, pages in trees}


def test_each_page_is_listed_once_for_its_readers() -> None:
    """The captions are those of the readers that the README names; what maintainers read stands below the last."""
    pages = listed()

    assert list(pages) == ["Embed", "On call", "Data on Spark", "Test and contribute"]
    assert sorted(page for each in pages.values() for page in each) == sorted(
        page.stem for page in DOCS.glob("*.md") if page.stem != "index"
    )
    assert {"planted-bugs", "oracle", "growth", "where-rules-live"} <= {*pages["Test and contribute"]}


@pytest.mark.parametrize(("page", "words"), SOUGHT.items())
def test_the_search_finds_the_page_that_answers(page: str, words: set[str]) -> None:
    """Entries of the index rank before headings, names of the API and text."""
    (entries,) = re.findall(r"^```{index} (.+)$", (DOCS / f"{page}.md").read_text(), re.MULTILINE)

    assert set(entries.split(", ")) == {f"!{word}" for word in words}  # those that are not main ones come last


def test_each_kip_that_is_spoken_of_has_a_status() -> None:
    """A reader who knows a KIP by its number finds what the library has of it."""
    texts = [README, *DOCS.glob("*.md"), *(DOCS.parent / "src").rglob("*.py")]
    spoken = {number for path in texts for number in re.findall(r"\bKIP-(\d+)", path.read_text())}
    rows = re.findall(r"^\| \[?(\d+)\b.* \| (modelled|partly|not) \| \S", (DOCS / "kips.md").read_text(), re.MULTILINE)

    assert spoken - {number for number, _ in rows} == set()


def test_the_readme_begins_with_a_short_sample() -> None:
    """A stranger sees what the library is, what it and its broker look like, and which two commands try it."""
    begin, _, _ = README.read_text().partition("## ")
    samples = re.findall(r"```python\n(.*?)\n```", begin, re.DOTALL)

    assert "(docs/share-partition.svg)" in begin
    assert [("SharePartition" in each, "TestBroker" in each) for each in samples] == [(True, False), (False, True)]
    assert all(0 < len(sample.strip().splitlines()) <= 12 for sample in samples)
    assert re.findall(r"^\$ (make \w+)", begin, re.MULTILINE) == ["make demo", "make test"]


def test_the_figures_of_the_readme_are_those_of_the_data() -> None:
    """How often something was compared with Kafka is counted, and never more than that is claimed."""
    begin, _, _ = README.read_text().partition("## ")
    compared = sum(row["operations"] for row in read_rows("comparisons.json", "comparisons"))
    tests, of_4_4, vectors = recordings()
    rows = sum(len(read_table(name).rows) for name in TABLES)

    assert f"| {compared // 1_000_000} million, no difference without a known reason |" in begin
    assert f"| {tests} tests of 4.3.1, {of_4_4} of 4.4.0 |" in begin
    assert f"conversations with Kafka's class, recorded | {vectors} |" in begin
    assert f"| {rows} of {rows} |" in begin


def samples(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of code of a page, with their numbers."""
    fence = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.match(r"\s*````*(.*)", line):
            fence = found[1] if fence is None else None
        elif fence is not None and fence not in {"{eval-rst}", "{toctree}", "{warning}"}:
            yield number, line


@pytest.mark.parametrize("path", [README, *sorted(DOCS.glob("*.md"))], ids=lambda path: path.stem)
def test_samples_fit_their_column(path: Path) -> None:
    """No line of code has to be scrolled."""
    assert [f"{path.name}:{number}" for number, line in samples(path) if len(line) > WIDEST] == []
