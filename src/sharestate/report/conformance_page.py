"""The page of a conformance run: rule by rule, with the shortest conversation that fails; without a script."""

from __future__ import annotations

from collections.abc import Iterator
from string import Template

from sharestate.conformance import Conformance, ConformanceVerdict, RuleConformance
from sharestate.explain.words import counted
from sharestate.json_lines import write_json
from sharestate.report.elements import Link, list_of, read_part, table_of, text_of


def conformance_page(found: Conformance, *, title: str) -> str:
    """
    Return what became of each rule as one page of HTML, which needs neither network nor other files nor scripts.

    What it says is what ``Conformance.to_json`` has. Equal arguments give equal pages.

    Args:
        found: What became of the vectors.
        title: What was judged: the command.
    """
    kind = "script" if found.index.are_scripts else "vector"
    said = f"{counted(len(found.outcomes), kind)} of Kafka {found.release}, level {found.level.value}"
    return Template(read_part("sections.html")).substitute(
        title=text_of(f"Conformance of {title}"),
        subtitle=text_of(said),
        style=read_part("page.css"),
        sections="\n".join(_sections(found)),
    )


def _sections(found: Conformance) -> Iterator[str]:
    notes = [] if found.limit is None else [f"Not all vectors were asked: {found.limit}."]
    notes += [f"Rule {rule.number} is {rule.verdict.value}: {rule.reason}." for rule in found.rules if rule.reason]
    verdict = f"<p>{text_of(found.verdict.value)}: {text_of(found.summary)}.</p>{list_of(notes)}"
    heads = ("rule", "about", "verdict", *(each.value for each in ConformanceVerdict))
    table = table_of(heads, [_row(rule) for rule in found.rules])
    yield f'<section id="rules"><h2>Rules</h2>{verdict}{table}</section>'
    for rule in found.rules:
        if rule.shortest is not None:
            yield _failure(rule)
    if found.accidents:
        rows = [(each.vector.name, each.verdict.value, each.vector.accident) for each in found.accidents]
        heads = ("vector", "answered as by Kafka", "what Kafka did")
        yield f'<section id="accidents"><h2>Accidents of Kafka</h2>{table_of(heads, rows)}</section>'


def _row(rule: RuleConformance) -> tuple[object, ...]:
    name = rule.number or "none"
    number = Link(name, _fragment(rule)) if rule.shortest is not None else name
    counts = (rule.counts[verdict] for verdict in ConformanceVerdict)
    return number, rule.heading, rule.verdict.value, *counts


def _fragment(rule: RuleConformance) -> str:
    return f"rule-{rule.number or 'none'}"


def _failure(rule: RuleConformance) -> str:
    """Return the section of a rule that fails."""
    if rule.shortest is None:
        return ""
    title = text_of(f"Rule {rule.number}: {rule.heading}" if rule.number else rule.heading)
    asked = [f"{write_json(request)} → {write_json(response)}" for request, response in rule.shortest.exchanges]
    said = f"Vector {rule.shortest.name}; Kafka's responses. The last one differs:"
    if rule.shortest.got is not None:
        said = (
            f"Script {rule.shortest.name}; the responses of {rule.shortest.source}. "
            f"To the last request came {write_json(rule.shortest.got)}:"
        )
    return (
        f'<section id="{_fragment(rule)}" class="finding stalled"><h2>{title}</h2>{list_of(asked, "ol")}'
        f"<p>{text_of(said)}</p>{list_of(rule.shortest.differences)}</section>"
    )
