"""Redrive plans: all records in order, with those that are left out, and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sharestate.dead_letter_topic import (
    LetterAnalysis,
    PatternRule,
    analyze_letters,
    redrive_ranges,
    write_redrive_plan,
)
from tests.support.dead_letter_topics import MINUTE, SECOND, Planted, contents_of

OUTAGE = [Planted(offset, offset * SECOND) for offset in range(10, 40)]
POISON = [Planted(90, 30 * MINUTE), Planted(90, 31 * MINUTE, group="h")]
AGAIN = [Planted(offset, MINUTE) for offset in (12, 13, 13)]


def planted() -> LetterAnalysis:
    """Return an outage of which three letters came again, a poison record of two groups, and one more partition."""
    letters = [*OUTAGE, *AGAIN, *POISON, Planted(3, 90 * MINUTE, partition=1)]
    return analyze_letters("q", contents_of(reversed(letters)))


def test_ranges_are_in_order_and_have_one_kind_each() -> None:
    """A range ends where the rule, or the number of letters of each record, is another one."""
    found = [
        (each.key.group_id, each.key.partition, each.first_offset, each.last_offset, each.letters_of_each, each.rule)
        for each in redrive_ranges(planted())
    ]

    assert found == [
        ("g", 0, 10, 11, 1, PatternRule.MANY_TOGETHER),
        ("g", 0, 12, 12, 2, PatternRule.MANY_TOGETHER),
        ("g", 0, 13, 13, 3, PatternRule.MANY_TOGETHER),
        ("g", 0, 14, 39, 1, PatternRule.MANY_TOGETHER),
        ("g", 0, 90, 90, 1, PatternRule.SEVERAL_GROUPS),
        ("g", 1, 3, 3, 1, PatternRule.ALONE_UNKNOWN),
        ("h", 0, 90, 90, 1, PatternRule.SEVERAL_GROUPS),
    ]


def test_a_plan_is_lines_with_a_header(tmp_path: Path) -> None:
    """Poison records are excluded, with the reason; the header counts all."""
    counts = write_redrive_plan(planted(), tmp_path / "plan.jsonl")
    header, *ranges = (json.loads(line) for line in (tmp_path / "plan.jsonl").read_text().splitlines())
    excluded: list[Any] = [each for each in ranges if not each["redrive"]]

    assert counts._asdict() == {"redriven": 31, "excluded": 2, "duplicates": 3, "ranges": 7}
    assert header == {
        "sharestate_redrive_plan": 1,
        "queue": "q",
        "queue_partitions": [{"partition": 0, "start_offset": 0, "end_offset": 36}],
        **counts._asdict(),
    }
    assert sum(each["records"] for each in ranges if each["redrive"]) == 31
    assert [(each["group_id"], each["first_offset"], each["rule"]) for each in excluded] == [
        ("g", 90, "several groups"),
        ("h", 90, "several groups"),
    ]
    assert {each["excluded_because"] for each in excluded} == {
        "groups have consumers of their own, and this record fails with each of them."
    }
