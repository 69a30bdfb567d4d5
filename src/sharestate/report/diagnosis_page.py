"""The page of a diagnosis: findings with what shows them and what to do, and what was not checked; without a script."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from string import Template
from typing import Final

from sharestate.diagnose import Diagnosis, DiagnosisFinding, computed_lines
from sharestate.explain.words import counted
from sharestate.report.elements import Link, list_of, outline_of, read_part, table_of, text_of

_PLACES: Final = 50
"""How many share partitions of a finding are shown. [share partitions]"""

_NOT_CHECKED: Final = 500
"""How many rows the table of what was not checked has. [rows]"""


def diagnosis_page(found: Diagnosis, *, title: str, of: str = "events") -> str:
    """
    Return a diagnosis as one page of HTML, which needs neither network nor other files nor scripts.

    What it says is what ``Diagnosis.to_json`` has. Equal arguments give equal pages.

    Args:
        found: What was found out.
        title: What was diagnosed: the name of a file.
        of: What was read, in the plural: events, or records of the state topic.
    """
    said = f"{counted(found.share_partitions, 'share partition')}, {found.events:,} {of}"
    return Template(read_part("sections.html")).substitute(
        title=text_of(f"Diagnosis of {title}"),
        subtitle=text_of(said),
        style=read_part("page.css"),
        sections="\n".join(_sections(found)),
    )


def _sections(found: Diagnosis) -> Iterator[str]:
    rules = [list(those) for _, those in groupby(found.findings, key=lambda each: each.rule.name)]
    rows = [(each[0].rule.severity.value, Link(each[0].rule.title, each[0].rule.name), len(each)) for each in rules]
    summary = table_of(("severity", "finding", "in"), rows) if rows else "<p>Nothing found.</p>"
    yield f'<section id="findings"><h2>Findings</h2>{summary}{list_of(found.summary)}</section>'
    for findings in rules:
        yield _section(findings, found)
    if found.not_checked:
        rows_left = [
            (each.rule.name if each.rule else "all that need the state", each.place.named(found.topics), each.reason)
            for each in found.not_checked[:_NOT_CHECKED]
        ]
        table = table_of(("rule", "where", "because"), rows_left)
        yield f'<section id="not-checked"><h2>Not checked</h2>{table}</section>'
    if found.notes:
        yield f'<section id="notes"><h2>To know</h2>{outline_of(found.notes)}</section>'


def _section(findings: list[DiagnosisFinding], found: Diagnosis) -> str:
    rule = findings[0].rule
    shown = [f"{each.place.named(found.topics)}: {each.evidence}" for each in findings[:_PLACES]]
    left = len(findings) - len(shown)
    more = f"<p>and {left:,} more</p>" if left else ""
    is_grave = " stalled" if rule.severity.value == "critical" else ""
    advice = f"<h3>What to do</h3><p>{text_of(findings[0].advice)}</p>"
    if computed := list(computed_lines(findings)):
        advice += f"<h3>Computed</h3>{list_of(computed)}"
    badge = f'<p class="badge">{rule.severity.value}</p>'
    return (
        f'<section id="{rule.name}" class="finding{is_grave}"><h2>{text_of(rule.title)}</h2>{badge}'
        f"{list_of(shown)}{more}{advice}</section>"
    )
