"""The page of the bugs that are planted to see that the test kit finds them, from ``tests/data/planted-bugs.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generate.data import read_rows
from generate.markdown import NOTICE, table

INTRODUCTION: Final = """\
A test that has never failed proves little. So bugs are planted in a small share group in memory, one at a time, and
[`ShareGroupMachine`](testing.md#from-the-clients-side) has to find each of them: `make test` searches for all of them
anew, and runs the shortest programs that were found.

*Runs* is how many runs of up to 50 events it took, from a fixed seed; another seed needs more or fewer. *Steps* is the
length of the shortest program, the start of the group included. *Found by* is the guarantee that it breaks."""

EXAMPLE: Final = """\
## A program

The longest of these programs, as Hypothesis prints it, is that for *{bug}*:"""


def page() -> str:
    """Return the page."""
    rows = read_rows("planted-bugs.json", "planted_bugs")
    longest = max(rows, key=lambda row: int(row["steps"]))
    parts = [
        NOTICE,
        "# Planted bugs",
        INTRODUCTION,
        table(["bug", "what it does", "found by", "runs", "steps"], _rows()),
        EXAMPLE.format(bug=longest["bug"]),
        "\n".join(["```text", *longest["program"], "```"]),
    ]
    return "\n\n".join(parts) + "\n"


def _rows() -> Iterator[list[str]]:
    for row in read_rows("planted-bugs.json", "planted_bugs"):
        yield [row["bug"], row["what"], f"`{row['found_by']}`", str(row["runs"]), str(row["steps"])]
