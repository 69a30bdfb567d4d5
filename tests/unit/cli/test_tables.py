"""Tables of commands, on terminals that are wide enough for them or not, and in pipes."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from sharestate.cli.tables import print_rows

COLUMNS = ("group", "topic", "partition.", "fetches", "codes", "writes", "near limit.")
ROWS = [
    ("billing", "payments-of-last-year", "0", "143 of 143", "1,151 of 1,151", "12,300 of 12,300", ""),
    ("billing", "payments-of-last-year", "11", "141 of 141", "1,200 of 1,200", "12,400 of 12,400", "7"),
]
LEGEND = {"codes": "answers to acknowledgements"}


def printed(width: int, *, is_terminal: bool) -> list[str]:
    """Return the lines of a table."""
    console = Console(file=StringIO(), width=width, force_terminal=is_terminal, highlight=False, no_color=True)
    print_rows(console, COLUMNS, ROWS, named=3, title="Share partitions: 2", legend=LEGEND)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()


def test_where_a_terminal_is_too_narrow_each_row_is_a_block() -> None:
    """Nothing is cut and no line is too long; a cell without a value is left out, and the legend comes last."""
    assert printed(60, is_terminal=True) == [
        "Share partitions: 2",
        "group billing, topic payments-of-last-year, partition 0",
        "  fetches 143 of 143, codes 1,151 of 1,151,",
        "  writes 12,300 of 12,300",
        "group billing, topic payments-of-last-year, partition 11",
        "  fetches 141 of 141, codes 1,200 of 1,200,",
        "  writes 12,400 of 12,400, near limit 7",
        "codes: answers to acknowledgements",
    ]


@pytest.mark.parametrize("width", [60, 200])
def test_in_a_pipe_a_row_is_a_line(width: int) -> None:
    """However wide that is: programs read it, and need no legend."""
    lines = printed(width, is_terminal=False)

    assert [sum(part in line for line in lines) for part in ("143 of 143", "141 of 141", "codes:")] == [1, 1, 0]
    assert all("12,300 of 12,300" in line for line in lines if "143 of 143" in line)


def test_where_a_table_fits_it_is_one() -> None:
    """A row is a line, below its headings; the legend comes last."""
    lines = printed(140, is_terminal=True)

    assert sum("12,300 of 12,300" in line and "143 of 143" in line for line in lines) == 1
    assert lines[-1] == "codes: answers to acknowledgements"
