"""Tables for people, and a block for each row where a terminal is too narrow for one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from textwrap import wrap
from typing import Final

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

_UNLIMITED: Final = 100_000
"""A width that no table has. [characters]"""

_INDENT: Final = "  "

Cell = str | Text


def print_rows(  # noqa: PLR0913 - what a table has
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    named: int = 1,
    title: str | None = None,
    legend: Mapping[str, str] | None = None,
) -> None:
    """
    Print a table, or a block for each row if the terminal is too narrow for it.

    Args:
        console: Where to.
        columns: The headings; those of numbers end with a dot, which is not shown.
        rows: The cells of each row.
        named: How many columns say what a row is of: a block begins with them.
        title: What stands above.
        legend: What headings mean, for terminals: people read these, programs read what is in a pipe.
    """
    table = Table(*map(_column, columns), title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    widest = table.__rich_measure__(console, console.options.update(width=_UNLIMITED)).maximum
    if not console.is_terminal:
        console.width = max(console.width, widest)
    if widest <= console.width:
        console.print(table)
    else:
        names = [name.rstrip(".") for name in columns]
        blocks = (block(list(zip(names, map(str, row), strict=True)), console.width, named=named) for row in rows)
        _print_lines(console, [*([] if title is None else [title]), *chain.from_iterable(blocks)])
    if legend is not None and console.is_terminal and rows:
        words = "; ".join(f"{name}: {meaning}" for name, meaning in legend.items())
        _print_lines(console, wrap(words, console.width))


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(Text(line))


def block(cells: Sequence[tuple[str, str]], width: int, *, named: int = 1) -> Iterator[str]:
    """
    Yield the lines of a block: what the first *named* cells say, and the others below, without those that are empty.

    >>> list(block([("group", "g"), ("partition", "0"), ("lag", "5"), ("stuck", ""), ("SPSO", "10")], 12, named=2))
    ['group g,', 'partition 0', '  lag 5,', '  SPSO 10']
    """
    head, rest = cells[:named], [cell for cell in cells[named:] if cell[1]]
    yield from _filled(head, width, "")
    yield from _filled(rest, width, _INDENT)


def _filled(cells: Sequence[tuple[str, str]], width: int, indent: str) -> Iterator[str]:
    """Yield lines of *cells*, each of which is broken only if it is longer than a line."""
    line = ""
    for name, value in cells:
        text = f"{name} {value}"
        if line and len(indent) + len(line) + len(text) + len(", ") + 1 > width:
            yield f"{indent}{line},"
            line = text
        else:
            line = f"{line}, {text}" if line else text
    if line:
        yield f"{indent}{line}"


def _column(name: str) -> Column:
    return Column(name.rstrip("."), justify="right" if name.endswith(".") else "left", overflow="fold")
