"""The page on the rules by which letters are called poison records or an outage, made from the rules' own data."""

from __future__ import annotations

from typing import Final

from generate.markdown import NOTICE, table
from sharestate.dead_letter_topic import RULES, Pattern

INTRODUCTION: Final = """\
The rules by which [`sharestate dead-letters`](dead-letter-topics.md#poison-record-or-outage) says what letters are
of. They are asked one after the other, and the first one that holds of a letter counts; duplicates are left out. An
interval is a minute, or `--interval`. Neighbors are letters of a share partition with at most five offsets from one
to the next, and at most an interval; *many together* are the neighbors of all share partitions of a group, as long
as there is no pause of more than an interval. The percentage is that of the offsets from the first to the last of
each row of neighbors.

Thresholds are chosen, and not measured: `tests/unit/dead_letter_topic/test_patterns.py` has a case on either side
of each."""

OF: Final = {
    Pattern.POISON: "**poison record**",
    Pattern.OUTAGE: "**outage**",
    Pattern.UNDECIDED: "cannot be told",
}


def page() -> str:
    """Return the page."""
    rows = [(rule.value, OF[row.pattern], row.sentence, row.reason) for rule, row in RULES.items()]
    rules = table(["rule", "the letters are of", "if", "because"], rows)
    return f"{NOTICE}\n\n# Poison records and outages\n\n{INTRODUCTION}\n\n{rules}\n"
