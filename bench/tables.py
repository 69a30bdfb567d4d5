"""Tables of figures as Markdown, and where they belong in a page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: text to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield _line(head, widths)
    yield "|".join(("", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""))
    for row in rows:
        yield _line(row, widths)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"| {' | '.join((first, *others))} |"


def put(file: Path, tables: str, begin: str, end: str) -> None:
    """
    Write *tables* into *file*, between the lines *begin* and *end* and in place of what is there.

    Raises:
        SystemExit: One of the lines is missing; nothing is written.
    """
    before, found, rest = file.read_text("utf-8").partition(f"{begin}\n")
    _, closed, after = rest.partition(f"{end}\n")
    if not found or not closed:
        sys.exit(f"{file} lacks the marks between which the figures belong")
    file.write_text(f"{before}{begin}\n\n{tables}\n{end}\n{after}", "utf-8")
