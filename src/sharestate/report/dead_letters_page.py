"""
The page of a dead-letter topic: what letters are of, with the evidence, what is lost, and when they came.

It has no script, as that of an audit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from string import Template
from typing import Final

from sharestate.dead_letter_topic import RULES, LetterAnalysis, Pattern, PatternFinding, PatternRule
from sharestate.dead_letter_topic.words import check_lines, copied_line, finding_line, headline, members_line
from sharestate.explain.words import counted, duration, instant
from sharestate.report.elements import list_of, outline_of, read_part, strip_of, table_of, text_of

_ROWS: Final = 200
"""How many rows a table has. [rows]"""

_FINDINGS: Final = 20
"""How many findings of a rule are shown. [findings]"""

_STRIPS: Final = 20
"""How many groups and causes are drawn over time. [strips]"""


def dead_letters_page(analysis: LetterAnalysis) -> str:
    """
    Return what a dead-letter topic says as one page of HTML, which needs neither network nor other files nor scripts.

    Its numbers are those of ``LetterAnalysis.to_json``. Equal arguments give equal pages.
    """
    sections = (
        _summary(analysis),
        _patterns(analysis),
        _checks(analysis),
        _over_time(analysis),
        _counts(analysis),
        _duplicates(analysis),
        _partitions(analysis),
    )
    return Template(read_part("sections.html")).substitute(
        title=text_of(f"Dead letters of {analysis.topic}"),
        subtitle=text_of(headline(analysis)),
        style=read_part("page.css"),
        sections="\n".join(filter(None, sections)),
    )


def _section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{"".join(parts)}</section>'


def _paragraph(text: str, css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f"<p{kind}>{text_of(text)}</p>"


def _and_more(left: int, noun: str) -> str:
    return _paragraph(f"and {counted(left, noun)} more") if left > 0 else ""


def _summary(analysis: LetterAnalysis) -> str:
    is_wrong = analysis.lost + analysis.unarchived > 0
    words = [
        *([f"{counted(analysis.lost, 'letter')} lost"] if analysis.lost else []),
        *([f"{counted(analysis.unarchived, 'letter')} without an archived record"] if analysis.unarchived else []),
    ]
    badge = _paragraph(", ".join(words), "badge") if is_wrong else ""
    of = ", ".join(f"{pattern.value} {count:,}" for pattern, count in analysis.patterns.by_pattern().items())
    doubts = f"<h3>Not checked</h3>{list_of(analysis.doubts)}" if analysis.doubts else ""
    standing = f"{badge}{_paragraph(f'Records: {of}.')}{_paragraph(copied_line(analysis))}{doubts}"
    mark = " stalled" if is_wrong else ""
    return _section("summary", "Summary", f'<div class="standing{mark}">{standing}</div>')


# ---- what letters are of


def _patterns(analysis: LetterAnalysis) -> str:
    letters = analysis.patterns.letters()
    if not letters:
        return ""
    rows = [
        (RULES[rule].pattern.value, rule.value, count, RULES[rule].sentence, RULES[rule].reason)
        for rule, count in letters.items()
    ]
    table = table_of(("what letters are of", "rule", "letters", "what has to be so", "why"), rows)
    interval = duration(analysis.patterns.interval_ms * 1000)
    hint = _paragraph(f"The first rule that holds counts; letters within {interval} are of one interval.", "hint")
    found = "".join(
        f"<h3>{text_of(f'{RULES[rule].pattern.value}: {rule.value}')}</h3>{''.join(_findings(analysis, rule))}"
        for rule in letters
    )
    return _section("patterns", "Poison records and outages", hint, table, found)


def _findings(analysis: LetterAnalysis, rule: PatternRule) -> Iterator[str]:
    found = [each for each in analysis.patterns.findings if each.rule is rule]
    for place, each in enumerate(found[:_FINDINGS]):
        yield _finding(analysis, each, is_open=place == 0 and each.pattern is not Pattern.UNDECIDED)
    unlisted = sum(count for of, count in analysis.patterns.unlisted.items() if of is rule)
    yield _and_more(len(found[_FINDINGS:]) + unlisted, "finding")


def _finding(analysis: LetterAnalysis, finding: PatternFinding, *, is_open: bool) -> str:
    """Return a finding with the lives of its records, which is open or folded."""
    member = members_line(analysis, finding)
    lives = [f"{each.key}: {each.sentence}" for each in analysis.lives_of(finding)]
    ranges = [f"{each.key}: {each.offsets}" for each in finding.ranges]
    parts = (
        _paragraph(member) if member is not None else "",
        f"<h4>Lives of the first ones</h4>{list_of(lives)}" if lives else "",
        f"<h4>Records</h4>{list_of(ranges)}",
    )
    state = " open" if is_open else ""
    summary = text_of(finding_line(finding))
    return f'<details class="finding"{state}><summary>{summary}</summary>{"".join(parts)}</details>'


# ---- what the queue lacks


def _checks(analysis: LetterAnalysis) -> str:
    said = {f"Compared with the {check.source}": check_lines(check) for check in analysis.checks}
    parts = [f"<h3>{text_of(title)}</h3>{outline_of(list(lines))}" for title, lines in said.items()]
    rows = [
        (check.source, *each.records.key, each.records.offsets, _at(each.at_ms))
        for check in analysis.checks
        for each in check.lost_ranges[:_ROWS]
    ]
    table = table_of(("by the", "group", "topic", "partition", "offsets", "handed over"), rows)
    lost = f"<h3>Lost letters</h3>{table}" if rows else ""
    return _section("lost", "Lost letters", *(parts or [_paragraph("Nothing was compared.")]), lost)


def _at(at_ms: int | None) -> str:
    return "" if at_ms is None else instant(at_ms * 1000)


# ---- counts


def _over_time(analysis: LetterAnalysis) -> str:
    width_ms, parts = analysis.over_time()
    if not parts:
        return ""
    begin_ms = parts[0].begin_ms
    strips: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for each in parts:
        strips[each.group_id, each.cause or "not known"][(each.begin_ms - begin_ms) // width_ms] = each.letters
    count = 1 + (parts[-1].begin_ms - begin_ms) // width_ms
    most = max(each.letters for each in parts)
    width = duration(width_ms * 1000)
    drawn = "".join(
        strip_of(
            f"{group}, {cause}: {counted(sum(bars.values()), 'letter')}, at the most {max(bars.values()):,} in {width}",
            bars,
            {
                part: f"{_at(begin_ms + part * width_ms)}: {counted(letters, 'letter')}"
                for part, letters in bars.items()
            },
            count,
            most,
        )
        for (group, cause), bars in list(strips.items())[:_STRIPS]
    )
    hint = f"Each bar is {width}; all have the same scale. From {_at(begin_ms)}."
    rows = [(_at(each.begin_ms), each.group_id, each.cause or "not known", each.letters) for each in parts[:_ROWS]]
    table = table_of(("from", "group", "cause", "letters"), rows)
    folded = (
        f'<details><summary>The same as a table</summary><div class="long scroll" tabindex="0">{table}</div>'
        f"{_and_more(len(parts) - len(rows), 'row')}</details>"
    )
    return _section(
        "time", "Over time", _paragraph(hint, "hint"), drawn, _and_more(len(strips) - _STRIPS, "strip"), folded
    )


def _counts(analysis: LetterAnalysis) -> str:
    said = analysis.to_json()["by"]
    rows = [
        (of, name, count)
        for of, counts in said.items()
        if counts is not None
        for name, count in list(counts.items())[:_ROWS]
    ]
    reasons = [(reason, count) for reason, count in analysis.contents.reasons.most_common(_ROWS)]
    others = f"<h3>No letters</h3>{table_of(('why', 'records'), reasons)}" if reasons else ""
    return _section("counts", "Counts", table_of(("letters by", "", "letters"), rows), others)


def _duplicates(analysis: LetterAnalysis) -> str:
    rows = [
        (*each.key, each.offsets, letters)
        for (each, letters), _ in zip(analysis.repeated(), range(_ROWS), strict=False)
    ]
    if not rows:
        return ""
    said = "The same record of the same group again: a leader took over, or the group's offsets were reset."
    table = table_of(("group", "topic", "partition", "offsets", "letters of each"), rows)
    return _section("duplicates", "Duplicates", _paragraph(said, "hint"), table)


def _partitions(analysis: LetterAnalysis) -> str:
    counts = analysis.share_partitions()
    rows = [(*each.key, each.letters, each.duplicates, each.first_offset, each.last_offset) for each in counts[:_ROWS]]
    heads = ("group", "topic", "partition", "letters", "duplicates", "first offset", "last offset")
    queue = [tuple(each.to_json().values()) for _, each in sorted(analysis.contents.partitions.items())]
    columns = ("partition", "start offset", "end offset", "records", "missing", "first", "last")
    shown = [(*row[:5], _at(row[5]), _at(row[6])) for row in queue[:_ROWS]]
    return (
        f'<details id="share-partitions"><summary>{counted(len(counts), "share partition")}</summary>'
        f"{table_of(heads, rows)}{_and_more(len(counts) - len(rows), 'share partition')}</details>"
        f"<details><summary>{counted(len(queue), 'partition')} of the topic</summary>"
        f"{table_of(columns, shown)}</details>"
    )
