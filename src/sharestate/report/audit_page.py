"""
The page of an audit: the verdicts, what is broken with the lives of its records, and what came again over time.

It has no script: where pages of a build server are shown, scripts often may not run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from string import Template
from typing import Final

from sharestate.audit import (
    Audit,
    AuditFinding,
    AuditVerdict,
    DuplicateCause,
    Duplicates,
    GuaranteeVerdict,
)
from sharestate.explain.words import counted, duration
from sharestate.report.elements import Link, list_of, read_part, strip_of, table_of, text_of

_PLACES: Final = 20
"""How many places of a finding are listed: its life names each of its own, too. [places]"""

_PARTITIONS: Final = 200
"""How many share partitions are listed. [share partitions]"""

_CAUSES: Final = 20
"""How many causes are drawn over time; faults may have any names. [causes]"""

_PARTS: Final = 500
"""How many rows the table of duplicates over time has: all of 60 parts of time and eight causes. [rows]"""

_US_OF_MS: Final = 1000

_BADGES: Final = (
    (AuditVerdict.BROKEN, "broken"),
    (AuditVerdict.DIFFERENT, "not as Kafka's"),
    (AuditVerdict.UNDECIDED, "cannot be told"),
    (AuditVerdict.HELD, "held"),
    (AuditVerdict.NOTHING, "without anything to check"),
)
"""The verdicts in the order of the summary, and what it says of so many guarantees."""


def audit_page(judged: Audit, *, title: str) -> str:
    """
    Return what an audit found out as one page of HTML, which needs neither network nor other files nor scripts.

    Its numbers are those of ``Audit.to_json``. Equal arguments give equal pages.

    Args:
        judged: What was found out.
        title: What was judged: the name of a file.
    """
    said = f"{counted(judged.operations, 'operation')} of {counted(judged.clients, 'client')}"
    on = f"{counted(judged.records, 'record')} of {counted(len(judged.share_partitions), 'share partition')}"
    sections = (
        _summary(judged),
        _broken(judged),
        _undecided(judged),
        _ambiguous(judged),
        _again(judged.duplicates),
        _clocks(judged),
        _partitions(judged),
    )
    return Template(read_part("sections.html")).substitute(
        title=text_of(f"Audit of {title}"),
        subtitle=text_of(f"{said}; {on}"),
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


# ---- verdicts


def _summary(judged: Audit) -> str:
    verdicts = Counter(each.verdict for each in judged.verdicts)
    said = ", ".join(f"{verdicts[verdict]} {words}" for verdict, words in _BADGES if verdicts[verdict])
    is_broken = AuditVerdict.BROKEN in verdicts
    heads = ("guarantee", "verdict", "checked", "of", "broken", "cannot tell", "what it says")
    badge = _paragraph("broken", "badge") if is_broken else ""
    limits = f"<h3>What limits the judgment</h3>{list_of(judged.notes)}" if judged.notes else ""
    standing = f"{badge}{_paragraph(f'Of {len(judged.verdicts)} guarantees: {said}.')}{limits}"
    mark = " stalled" if is_broken else ""
    return _section(
        "verdicts",
        "Verdicts",
        f'<div class="standing{mark}">{standing}</div>',
        table_of(heads, [_verdict(each) for each in judged.verdicts]),
    )


def _verdict(each: GuaranteeVerdict) -> tuple[object, ...]:
    """Return the row of a guarantee, which leads to what is broken, or to why it is undecided."""
    fragment = _name(each) if each.broken else "cannot-tell"
    name = Link(each.guarantee.value, fragment) if each.broken or each.unknown else each.guarantee.value
    unknown = sum(each.unknown.values())
    sentence = each.guarantee.sentence
    return name, each.verdict.value, each.checked, each.counted, each.broken, unknown, sentence


def _name(each: GuaranteeVerdict) -> str:
    return f"broken-{each.guarantee.value}"


def _broken(judged: Audit) -> str:
    broken = [each for each in judged.verdicts if each.broken]
    return _section("broken", "Broken", *map(_findings, broken)) if broken else ""


def _findings(verdict: GuaranteeVerdict) -> str:
    guarantee = verdict.guarantee
    heading = f'<h3 id="{_name(verdict)}">{guarantee.value}: {counted(verdict.broken, "finding")}</h3>'
    what = _paragraph(f"What should be: {guarantee.sentence} Where to look: {guarantee.look_at}.")
    found = (_finding(each, is_open=not place) for place, each in enumerate(verdict.findings))
    return f"{heading}{what}{''.join(found)}{_and_more(verdict.broken - len(verdict.findings), 'finding')}"


def _finding(finding: AuditFinding, *, is_open: bool) -> str:
    """Return a finding with the life of its records, which is open or folded."""
    first, last = finding.first_offset, finding.last_offset
    offsets = f"offset {first}" if first == last else f"offsets {first}-{last}"
    places = [f"{place}" for place in finding.places[:_PLACES]]
    parts = (
        f"<h4>What was done to {'it' if first == last else 'them'}</h4>{list_of(finding.life, 'ol')}"
        if finding.life
        else "",
        _paragraph(f"Operations: {', '.join(places)}") if places else "",
        _and_more(len(finding.places) - len(places), "operation"),
        _paragraph(f"Bugs of Kafka that look so: {', '.join(finding.known_bugs)} (docs/kafka-bugs.md)")
        if finding.known_bugs
        else "",
    )
    state = " open" if is_open else ""
    summary = text_of(f"{finding.key}, {offsets}: {finding.what}")
    return f'<details class="finding"{state}><summary>{summary}</summary>{"".join(parts)}</details>'


def _undecided(judged: Audit) -> str:
    rows = [
        (verdict.guarantee.value, count, verdict.counted, reason)
        for verdict in judged.verdicts
        for reason, count in sorted(verdict.unknown.items(), key=lambda each: -each[1])
    ]
    heads = ("guarantee", "how many", "of", "why it is undecided")
    return _section("cannot-tell", "What cannot be told", table_of(heads, rows)) if rows else ""


def _ambiguous(judged: Audit) -> str:
    rows = (("clear", judged.records - judged.ambiguous), ("ambiguous", judged.ambiguous))
    said = (
        "Ambiguous are the lives that rest on operations without an answer, on crashes or on faults: more than one "
        "thing may have happened to these records, and they are found broken only if none of it follows the rules."
    )
    return _section("ambiguous", "Ambiguous lives", _paragraph(said), table_of(("lives", "records"), rows))


# ---- what was delivered again


def _again(duplicates: Duplicates) -> str:
    if not duplicates.causes:
        return _section("again", "Delivered again", _paragraph("No record was delivered again."))
    times = ("least", "median", "most")
    rows = [
        (each.cause, each.records, *(f"{each.held_ms[name] / 1000:,.3f} s" for name in times))
        for each in duplicates.causes
    ]
    heads = ("what had made them free", "records", "after: least", "median", "most")
    said = "A record counts each time. The times are those since the delivery, the renewal or the release before."
    total = _paragraph(f"{counted(duplicates.records, 'record')} in all.")
    return _section(
        "again", "Delivered again", total, _paragraph(said, "hint"), table_of(heads, rows), _over_time(duplicates)
    )


def _over_time(duplicates: Duplicates) -> str:
    """Return a strip of bars for each cause, on the same axes, and the same as a table."""
    strips: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for begin_ms, cause, records in duplicates.over_time:
        strips[cause][begin_ms // duplicates.width_ms] = records
    parts = 1 + max(begin_ms for begin_ms, _, _ in duplicates.over_time) // duplicates.width_ms
    most = max(records for _, _, records in duplicates.over_time)
    drawn = "".join(
        _strip(each, strips[each.cause], duplicates.width_ms, parts, most) for each in duplicates.causes[:_CAUSES]
    )
    ticks = "".join(f"<span>{_at(part * duplicates.width_ms)}</span>" for part in dict.fromkeys((0, parts / 2, parts)))
    width = _at(duplicates.width_ms)
    hint = f"Each bar is {width}; all causes have the same scale. The time is that since the log's first operation."
    rows = [(_at(begin_ms), cause, records) for begin_ms, cause, records in duplicates.over_time[:_PARTS]]
    table = table_of(("from", "what had made them free", "records"), rows)
    return (
        f"<h3>Over time</h3>{_paragraph(hint, 'hint')}{drawn}"
        f'<div class="ticks">{ticks}</div>{_and_more(len(duplicates.causes) - _CAUSES, "cause")}'
        f'<details><summary>The same as a table</summary><div class="long scroll" tabindex="0">{table}</div>'
        f"{_and_more(len(duplicates.over_time) - _PARTS, 'row')}</details>"
    )


def _strip(cause: DuplicateCause, bars: Mapping[int, int], width_ms: int, parts: int, most: int) -> str:
    words = f"{cause.cause}: {counted(cause.records, 'record')}, at the most {max(bars.values()):,} in {_at(width_ms)}"
    titles = {
        part: f"{_at(part * width_ms)} to {_at((part + 1) * width_ms)}: {counted(records, 'record')}"
        for part, records in bars.items()
    }
    return strip_of(words, bars, titles, parts, most)


def _at(ms: float) -> str:
    return duration(round(ms * _US_OF_MS))


# ---- what it rests on


def _clocks(judged: Audit) -> str:
    said: Sequence[str] = judged.clocks or ("All clients have one clock.",)
    hint = "These bounds follow from what happened. What any difference within them explains is not found broken."
    return _section("clocks", "Clocks", _paragraph(hint, "hint"), list_of(said))


def _partitions(judged: Audit) -> str:
    rows = [tuple(key) for key in judged.share_partitions[:_PARTITIONS]]
    table = table_of(("group", "topic", "partition"), rows)
    left = _and_more(len(judged.share_partitions) - len(rows), "share partition")
    title = counted(len(judged.share_partitions), "share partition")
    return f'<details id="share-partitions"><summary>{title}</summary>{table}{left}</details>'
