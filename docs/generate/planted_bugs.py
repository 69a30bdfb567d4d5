"""The page of the bugs that are planted to see that the test kit finds them, from ``tests/data/planted-bugs.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generate.data import read_rows
from generate.markdown import NOTICE, table

INTRODUCTION: Final = """\
A test that has never failed proves little. So bugs are planted in a small share group in memory, one at a time, and
[`ShareGroupMachine`](testing.md#from-the-clients-side) has to find each of them: `make test` searches for all of them
again, and runs the shortest programs that were found.

*Runs* is how many runs of up to 50 events it took, from a fixed seed; another seed needs more or fewer. *Steps* is the
length of the shortest program, the start of the group included. *Found by* is the guarantee that it breaks."""

PARTITIONS: Final = """\
## Share partitions

These are planted in [a model of single records](testing.md#by-an-independent-model), and
[`SharePartitionMachine`](testing.md#from-the-persisters-side) has to find each of them. *Found by* is what differs
first. `make test` runs the shortest programs, and searches again for what is found at once."""

BROKERS: Final = """\
## Mock brokers

These are planted in a mock broker with a log of its own, which [`compare`](testing.md#beside-the-library) has to tell
from the library by its answers alone. *Sequences* is how many it took, *steps* how many requests the shortest
conversation has. *Found by* is the request at which the two differ."""

NODES: Final = """\
## Nodes

These are planted in [a node](node.md), each in one function of its sessions, its fetches or its log. Its members,
producers and leaders are in the hands of [`ShareGroupMachine`](testing.md#from-the-clients-side), here with sessions,
connections that end, fetches that wait, and several partitions. *Found by* is a guarantee, or what an answer has to be.
`make test` runs the shortest programs. Eight more, in the order of a session's partitions and in target assignments,
are found by properties of these."""

PERSISTERS: Final = """\
## Persisters

These are planted in a persister in memory, and [`PersisterMachine`](testing.md#persisters) has to find each of them.
*Found by* is what is compared, *steps* how many requests the shortest program has, beside the two with which every run
begins. [The contract](persister.md#a-persister-of-your-own) has planted bugs of its own, some for each clause."""

EXAMPLE: Final = """\
## A program

The longest of these programs, as it is printed, is that for *{bug}*:"""


WIDTH: Final = 90
"""How wide a sample may be. [columns]"""


def page() -> str:
    """Return the page."""
    rows = read_rows("planted-bugs.json", "planted_bugs")
    longest = max(rows, key=lambda row: int(row["steps"]))
    parts = [
        NOTICE,
        "# Planted bugs",
        INTRODUCTION,
        table(["bug", "what it does", "found by", "runs", "steps"], _rows("planted-bugs.json")),
        EXAMPLE.format(bug=longest["bug"]),
        "\n".join(["```text", *map(_cut, longest["program"]), "```"]),
        PARTITIONS,
        table(["bug", "what it does", "found by", "runs", "steps"], _rows("planted-partition-bugs.json")),
        NODES,
        table(["bug", "what it does", "found by", "runs", "steps"], _rows("planted-node-bugs.json")),
        PERSISTERS,
        table(["bug", "what it does", "found by", "runs", "steps"], _rows("planted-persister-bugs.json")),
        BROKERS,
        table(["bug", "what it does", "found by", "sequences", "steps"], _rows("planted-broker-bugs.json")),
    ]
    return "\n\n".join(parts) + "\n"


def _cut(line: str) -> str:
    """Return a call with an argument on each line, if it is too long for one."""
    return line if len(line) <= WIDTH else line.replace(", ", ",\n  ")


def _rows(name: str) -> Iterator[list[str]]:
    for row in read_rows(name, "planted_bugs"):
        yield [row["bug"], row["what"], f"`{row['found_by']}`", str(row["runs"]), str(row["steps"])]
