"""Tables as Markdown, and the width of samples."""

from collections.abc import Iterable, Sequence
from typing import Final

NOTICE: Final = "<!-- Made by `make diagrams`: change what it is made from, then run that again. -->"
"""Begins every page that is made, for those who open it to change it."""

WIDEST: Final = 90
"""What the column of furo shows of a line of code, in Chromium: 708 pixels by 7.827. [characters]"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """
    Return a table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [_row(head), "|" + "---|" * len(head), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
