"""What the pages about the line protocol have in their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[2] / "docs"

_HEADS: Final = {"field", "item", "event", "answer", "append", "limit", "response", "exit code"}


def sections(name: str) -> dict[str, str]:
    """Return the text below each heading of the page *name*."""
    page = (DOCS / name).read_text()
    return {
        heading.strip(): body for heading, body in re.findall(r"^#+ (.+)\n((?:(?!^#+ ).*\n?)*)", page, re.MULTILINE)
    }


def operations(texts: dict[str, str]) -> dict[str, str]:
    """Return the text about each operation, whose headings are in code spans."""
    return {
        operation: body
        for heading, body in texts.items()
        if heading.startswith("`")
        for operation in re.findall(r"\w+", heading)
    }


def rows(section: str, *, columns: int | None = None) -> Iterator[list[str]]:
    """Yield the rows of the tables of *section* with so many *columns*, without their heads."""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] not in _HEADS and columns in {None, len(cells)}:
            yield cells


def fields(section: str) -> dict[str, str]:
    """Return the default of each field of *section*, by the fields' names."""
    return {name.strip("`"): default for name, _, default, _ in rows(section, columns=4)}


def names(section: str) -> frozenset[str]:
    """Return the names in the first column of the tables of *section*."""
    return frozenset(name.strip("`") for name, *_ in rows(section))
